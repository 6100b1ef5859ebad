import { countOf, rowsText } from '../output/check-rows.ts';
import type { Check } from './check.ts';
import type { PlaceReport } from './preflight.ts';

/** For people. Names and messages come from AWS, so they are untrusted text. */
export function preflightText(places: readonly PlaceReport[]): string {
  return `${places.map(placeText).join('\n')}\n${verdict(places.flatMap(({ checks }) => checks))}\n`;
}

function placeText({ account, region, clusters, checks }: PlaceReport): string {
  const what = clusters.length === 1 ? 'cluster' : 'clusters';
  return `account ${account}, region ${region}: ${what} ${clusters.join(', ')}\n\n${rowsText(checks)}`;
}

function verdict(checks: readonly Check[]): string {
  const [failed, unknown] = [countOf(checks, 'fail'), countOf(checks, 'unknown')];
  const unseen = unknown === 0 ? '' : `; ${unknown} could not be checked`;
  if (failed > 0) return `No: ${failed} of ${checks.length} checks failed${unseen}`;
  return unknown === 0 ? 'Yes: a deployment can begin' : `Yes, as far as could be seen${unseen}`;
}
