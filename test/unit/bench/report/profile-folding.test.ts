import { Session } from 'node:inspector/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { foldProfile, foldProfilesIn } from '../../../../bench/report/profile-folding.ts';
import type { CpuProfile } from '../../../../bench/report/profile-folding.ts';

const root = '/somewhere/repository';

type Node = CpuProfile['nodes'][number];
function node(id: number, functionName: string, hitCount: number, children: readonly number[] = [], url = ''): Node {
  return { id, callFrame: { functionName, url, lineNumber: 9 }, hitCount, children };
}

test('each stack is a line, callers first, with the samples in its innermost function', () => {
  const nodes = [
    node(1, '(root)', 0, [2, 5]),
    node(2, 'main', 3, [3, 4]),
    node(3, 'parse', 7),
    node(4, 'sign', 0, [6]),
    node(5, '(garbage collector)', 2),
    node(6, 'parse', 1),
  ];
  expect(foldProfile({ nodes }, root)).toBe('(garbage collector) 2\nmain 3\nmain;parse 7\nmain;sign;parse 1\n');
});

test('equal stacks are one line, and idle time is left out', () => {
  const nodes = [node(1, '(root)', 0, [2, 3, 4]), node(2, 'tick', 5), node(3, 'tick', 6), node(4, '(idle)', 1_000)];
  expect(foldProfile({ nodes }, root)).toBe('tick 11\n');
});

test('paths are relative to the repository, and of a file outside only its name is kept', () => {
  const nodes = [
    node(1, '(root)', 0, [2, 3, 4, 5, 6]),
    node(2, 'issue', 1, [], 'file:///somewhere/repository/core/issue.ts'),
    node(3, '', 2, [], 'file:///somewhere/repository/node_modules/pino/lib/tools.js'),
    node(4, 'outside', 3, [], 'file:///home/user/secret/place.ts'),
    node(5, 'beside', 4, [], '/somewhere/repository-two/x.ts'),
    node(6, 'read;write', 5, [], 'node:internal/fs'),
  ];
  expect(foldProfile({ nodes }, root).split('\n')).toEqual([
    '(anonymous) node_modules/pino/lib/tools.js:10 2',
    'beside x.ts:10 4',
    'issue core/issue.ts:10 1',
    'outside place.ts:10 3',
    'read:write node:internal/fs:10 5',
    '',
  ]);
});

test('what Node itself writes folds, here of a function that was busy', async () => {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.start');
  busyForTheProfile();
  const { profile } = (await session.post('Profiler.stop')) as { profile: CpuProfile };
  session.disconnect();
  const folder = mkdtempSync(join(tmpdir(), 'countersign-folding-'));
  try {
    writeFileSync(join(folder, 'one.cpuprofile'), JSON.stringify(profile));
    writeFileSync(join(folder, 'other.txt'), 'no profile');
    expect(foldProfilesIn(folder, resolve(import.meta.dirname, '../../../..'))).toEqual(['one.folded']);
    const folded = readFileSync(join(folder, 'one.folded'), 'utf8');
    const [, count] =
      /busyForTheProfile test\/unit\/bench\/report\/profile-folding\.test\.ts:\d+ (\d+)$/m.exec(folded) ?? [];
    expect(Number(count)).toBeGreaterThan(0);
    expect(folded).not.toContain(resolve(import.meta.dirname, '../../../..'));
    expect(folded).not.toContain(pathToFileURL('/').href);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

function busyForTheProfile(): number {
  let sum = 0;
  for (const end = performance.now() + 100; performance.now() < end;) sum += Math.sqrt(sum + 1);
  return sum;
}
