import { printableUpTo } from '../../core/outcome/printable-text.ts';
import { table } from '../output/output.ts';
import type { Check } from './check.ts';
import type { PlaceReport } from './preflight.ts';

const marks = { pass: '✓', fail: '✗', unknown: '!' } as const;

/** For people. Names and messages come from AWS, so they are untrusted text. */
export function preflightText(places: readonly PlaceReport[]): string {
  return `${places.map(placeText).join('\n')}\n${verdict(places.flatMap(({ checks }) => checks))}\n`;
}

function placeText({ account, region, clusters, checks }: PlaceReport): string {
  const rows = table(checks.map(({ check, result, seen }) => [marks[result], check, printableUpTo(400, seen)]));
  const lines = rows.split('\n');
  const body = checks.map(({ mend }, index) => `${lines[index]}\n${mend === undefined ? '' : `   → ${mend}\n`}`);
  const what = clusters.length === 1 ? 'cluster' : 'clusters';
  return `account ${account}, region ${region}: ${what} ${clusters.join(', ')}\n\n${body.join('')}`;
}

function verdict(checks: readonly Check[]): string {
  const count = (result: Check['result']): number => checks.filter((each) => each.result === result).length;
  const [failed, unknown] = [count('fail'), count('unknown')];
  const unseen = unknown === 0 ? '' : `; ${unknown} could not be checked`;
  if (failed > 0) return `No: ${failed} of ${checks.length} checks failed${unseen}`;
  return unknown === 0 ? 'Yes: a deployment can begin' : `Yes, as far as could be seen${unseen}`;
}
