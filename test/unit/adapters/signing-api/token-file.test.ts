import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { bearerFromFile } from '../../../../adapters/signing-api/token-file.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';

const folder = temporaryFolder('token-file');
const path = join(folder.path, 'token');
beforeEach(() => rmSync(path, { force: true }));
afterAll(() => folder.remove());

test('the token is that of now, without the line break', async () => {
  const authorize = bearerFromFile(path);
  writeFileSync(path, 'a.b.c\n');
  expect(await authorize()).toEqual({ ok: true, value: { authorization: 'Bearer a.b.c' } });
  writeFileSync(path, 'd.e.f');
  expect(await authorize()).toEqual({ ok: true, value: { authorization: 'Bearer d.e.f' } });
});

test('kubelet swaps the folder behind a link', async () => {
  const turn = (name: string): void => {
    mkdirSync(join(folder.path, name));
    writeFileSync(join(folder.path, name, 'token'), name);
    symlinkSync(name, join(folder.path, '..new'));
    renameSync(join(folder.path, '..new'), join(folder.path, '..data'));
  };
  turn('first');
  symlinkSync('..data/token', path);
  const authorize = bearerFromFile(path);
  expect(await authorize()).toMatchObject({ value: { authorization: 'Bearer first' } });
  turn('second');
  expect(await authorize()).toMatchObject({ value: { authorization: 'Bearer second' } });
});

test.each([
  ['nothing', ''],
  ['a line break within', 'hunter2\nx: y'],
  ['blanks within', 'hunter2 hunter2'],
  ['far too much', 'h'.repeat(8_193)],
])('%s is no token, and is not repeated', async (_, content) => {
  writeFileSync(path, content);
  const answer = await bearerFromFile(path)();
  expect(answer).toEqual({ ok: false, problem: `token file ${path}: holds no token` });
});

test('a file that is not there says so', async () => {
  expect(await bearerFromFile(path)()).toEqual({ ok: false, problem: `token file ${path}: ENOENT` });
});
