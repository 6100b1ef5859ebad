/** What the run asks for before it does anything. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { main } from '../../../acceptance/main.ts';
import { policyOf } from '../../../acceptance/plan.ts';
import { steps } from '../../../acceptance/steps/steps.ts';

const place = { partition: 'aws', account: '111122223333', region: 'eu-central-1' };

async function acceptance(...argv: readonly string[]) {
  let out = '';
  const code = await main(argv, new AbortController().signal, (text) => void (out += text));
  return { code, out };
}

test('--plan prints every step and a policy, and calls nothing', async () => {
  const { code, out } = await acceptance('--region', 'eu-central-1', '--plan', '--account', place.account);
  expect(code).toBe(0);
  for (const { title } of steps) expect(out).toContain(title);
  expect(JSON.parse(out.slice(out.indexOf('{\n  "Version"')))).toEqual(policyOf(steps, place));
});

test('only preflight, which reads, may touch what is not of a run', () => {
  const wide = policyOf(steps, place).Statement.filter(
    ({ Resource }) => !Resource.every((arn) => /[:/](accept-\*|countersign-accept-\*)/.test(arn)),
  );
  expect(wide.map(({ Sid }) => Sid)).toEqual(['Preflight', 'PublishAssets', 'ByTheRoleOfCdk']);
  const names = policyOf(steps, place).Statement.map(({ Sid }) => Sid);
  expect(new Set(names).size).toBe(names.length);
});

test('steps need only steps before them', () => {
  for (const [index, { needs }] of steps.entries())
    for (const id of needs) expect(steps.slice(0, index).map((each) => each.id)).toContain(id);
});

test.each([
  [[], 2, /which region/],
  [['--region', 'nowhere'], 2, /no region nowhere/],
  [['--region', 'eu-central-1', '--unknown'], 2, /--unknown/],
  [['--help'], 0, /Usage: npm run acceptance/],
] as const)('%j', async (argv, code, text) => {
  expect(await acceptance(...argv)).toMatchObject({ code, out: expect.stringMatching(text) as unknown });
});

test('docs/acceptance.md has the steps', () => {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/acceptance.md'), 'utf8');
  for (const { minute, title, shows } of steps) expect(text).toContain(`| ${minute} | ${title} | ${shows} |`);
});
