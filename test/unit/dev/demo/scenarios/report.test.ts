import { readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { main } from '../../../../../dev/demo.ts';
import { createTerminal } from '../../../../../dev/demo/terminal.ts';

test('the report demo writes a page about the attack, and checks it', async () => {
  let text = '';
  const code = await main(['report'], { terminal: createTerminal((more) => (text += more), false) });
  expect([code, text.match(/✓ /g)?.length, text.includes('✗')]).toEqual([0, 4, false]);
  expect(text).toContain('  act                     1 first-use conflict in the last 25 hours\n');
  const [, file = ''] = /^ {2}open +(\S+)$/m.exec(text) ?? [];
  onTestFinished(() => rmSync(dirname(file), { recursive: true }));
  const page = readFileSync(file, 'utf8');
  expect(page).toMatch(/^\s*<!doctype html>/);
  expect(page).toContain('demo-node-1');
});
