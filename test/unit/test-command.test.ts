import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

test('npm test -- --help is ours, and nothing is got or run for it', () => {
  const program = resolve(import.meta.dirname, '../main.ts');
  // Without a PATH no tool could be.
  const said = execFileSync(process.execPath, [program, '--help'], { encoding: 'utf8', env: {} });
  expect(said).toMatch(/^Installs the test tools[^]*\n {2}--fast [^]*\nExamples:\n[^]*\nExit codes: 0 /);
});
