import { fail, strictEqual } from 'node:assert/strict';
import type { Case } from '../../../harness/mutants/case-runner.ts';
import { isSmall } from './example.ts';

export function cases(place: string): readonly Case[] {
  return [
    { name: 'a text', run: () => isSmall('x') },
    { name: 'a large number', run: () => strictEqual(isSmall(8), false) },
    { name: 'is told its place', run: () => fail(place) },
  ];
}
