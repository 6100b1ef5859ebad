/** All recorded requests, as one case: the first answer that is not the recorded one ends it. */
import { deepStrictEqual, ok } from 'node:assert/strict';
import { readRecording } from '../../../../corpus/reference.ts';
import { replay } from '../../../../corpus/replay.ts';
import type { Case } from '../../../../harness/mutants/case-runner.ts';

export function cases(): readonly Case[] {
  return [{ name: 'the recorded answers', run }];
}

async function run(): Promise<void> {
  const { asked, problems } = await replay(readRecording(), { stopAtFirst: true });
  // A mutant that cannot run proves nothing.
  const broken = problems.find((problem) => /TypeError|ReferenceError/.test(problem));
  if (broken !== undefined) throw new Error(broken);
  deepStrictEqual(problems, []);
  ok(asked >= 250);
}
