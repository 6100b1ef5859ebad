import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const program = resolve(import.meta.dirname, '../main.ts');

test('npm test -- --help is ours, and nothing is got or run for it', () => {
  // Without a PATH no tool could be.
  const said = execFileSync(process.execPath, [program, '--help'], { encoding: 'utf8', env: {} });
  expect(said).toMatch(/^Installs the test tools[^]*\n {2}--fast [^]*\nExamples:\n[^]*\nExit codes: 0 /);
});

test('the end of the output names each failed test and each file that could not run, with the first line of the error', () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-failing-'));
  try {
    writeFileSync(
      join(folder, 'a.test.js'),
      "test('adds', () => { throw new Error('one\\ntwo'); }); test('holds', () => {});",
    );
    writeFileSync(join(folder, 'b.test.js'), "throw new Error('no module');");
    const { stdout, status } = spawnSync(process.execPath, [program, '.test.js', '--root', folder, '--globals'], {
      encoding: 'utf8',
    });
    const tail = stdout.trimEnd().split('\n').slice(-3);
    expect(tail.slice(0, 2).toSorted()).toEqual([
      expect.stringMatching(/^FAILED: .*a\.test\.js > adds: one$/),
      expect.stringMatching(/^FAILED: .*b\.test\.js > no module$/),
    ]);
    expect(tail[2]).toBe('1 passed, 2 failed');
    expect(status).toBe(1);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
