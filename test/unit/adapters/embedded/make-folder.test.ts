import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeFolder } from '../../../../adapters/embedded/make-folder.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { run } from '../../cli/run.ts';

function folder(): string {
  const { path, remove } = temporaryFolder('make-folder');
  onTestFinished(remove);
  return path;
}

test('makes the folders above it too, with the mode, and leaves existing ones alone', () => {
  const root = folder();
  mkdirSync(join(root, 'a'), { mode: 0o755 });
  makeFolder(join(root, 'a/b/c'), 0o700);
  const modes = ['a', 'a/b', 'a/b/c'].map((path) => statSync(join(root, path)).mode & 0o777);
  expect(modes).toEqual([0o755, 0o700, 0o700]);
  makeFolder(join(root, 'a/b/c'), 0o711);
  expect(statSync(join(root, 'a/b/c')).mode & 0o777).toBe(0o700);
});

test('a file in its place, or above it, is an error', () => {
  const root = folder();
  writeFileSync(join(root, 'file'), '');
  expect(() => makeFolder(join(root, 'file'))).toThrow('EEXIST');
  expect(() => makeFolder(join(root, 'file/below'))).toThrow('ENOTDIR');
});

// /proc takes no folders and answers ENOENT.
test.runIf(process.platform === 'linux')('a file system that takes no folders is an error at once', async () => {
  expect(() => makeFolder('/proc/nope/below')).toThrow('ENOENT');
  for (const argv of [
    ['ca', 'init'],
    ['dev', '--port', '0'],
  ]) {
    const ran = await run([...argv, '--data', '/proc/nope']);
    expect([ran.code, ran.err]).toEqual([3, expect.stringContaining("no such file or directory, mkdir '/proc/nope'")]);
  }
});
