/** What the run asks for before it does anything. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { main } from '../../../acceptance/main.ts';
import { policyOf } from '../../../acceptance/plan.ts';
import { steps } from '../../../acceptance/steps.ts';
import { extras } from '../../../acceptance/world/step.ts';

const all = new Set(extras);
const place = { partition: 'aws', account: '111122223333', region: 'eu-central-1' };

async function acceptance(...argv: readonly string[]) {
  let out = '';
  const code = await main(argv, new AbortController().signal, (text) => void (out += text));
  return { code, out };
}

test('--plan prints every step and a policy, and calls nothing', async () => {
  const argv = ['--region', 'eu-central-1', '--plan', '--account', place.account, '--with', 'restore'];
  const { code, out } = await acceptance(...argv);
  expect(code).toBe(0);
  expect(out).toMatch(/less than \$0\.20 together/);
  for (const { title } of steps) expect(out).toContain(title);
  expect(JSON.parse(out.slice(out.indexOf('{\n  "Version"')))).toEqual(policyOf(steps, place, all));
});

const reads = /^[a-z0-9]+:(Get|GET|List|Describe|BatchDescribe|Lookup)/;

test('what is not of a run is only read, except by two statements', () => {
  const wide = policyOf(steps, place, all).Statement.filter(
    ({ Resource }) => !Resource.every((arn) => /[:/](accept-\*|countersign-accept-\*)/.test(arn)),
  );
  const narrowed = wide.filter(({ Condition: condition }) => condition !== undefined);
  expect(narrowed.map(({ Sid, Condition: condition }) => [Sid, JSON.stringify(condition)])).toEqual([
    ['StartInstancesOfTheRun', expect.stringContaining('"aws:RequestTag/countersign:acceptance":"accept-*"')],
    ['TagInstancesAtTheirStart', '{"StringEquals":{"ec2:CreateAction":"RunInstances"}}'],
    ['ReadAndEndInstancesOfTheRun', '{"StringLike":{"aws:ResourceTag/countersign:acceptance":"accept-*"}}'],
  ]);
  const writes = wide.filter((each) => !narrowed.includes(each) && !each.Action.every((action) => reads.test(action)));
  // The images, subnets and security groups with which an instance of the run may start.
  expect(writes.map(({ Sid }) => Sid)).toEqual(['ByTheRoleOfCdk', 'StartInstancesIn']);
  const names = policyOf(steps, place, all).Statement.map(({ Sid }) => Sid);
  expect(new Set(names).size).toBe(names.length);
});

test('an inline policy of a role can hold it', () => {
  // https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
  const longest = { partition: 'aws-us-gov', account: place.account, region: 'us-gov-west-1' };
  expect(JSON.stringify(policyOf(steps, longest, all)).length).toBeLessThan(10_240);
});

test('what is only done if it is asked for needs no right otherwise', async () => {
  const { out } = await acceptance('--region', 'eu-central-1', '--plan');
  expect(out).not.toContain('RestoreTable');
  expect(out).toContain('(not run: only with --with restore)');
  const { out: asked } = await acceptance('--region', 'eu-central-1', '--plan', '--with', 'restore');
  expect(asked).toContain('dynamodb:RestoreTableToPointInTime');
  expect(asked).not.toContain('(not run');
});

test('steps need only steps before them', () => {
  for (const [index, { needs }] of steps.entries())
    for (const id of needs) expect(steps.slice(0, index).map((each) => each.id)).toContain(id);
});

test.each([
  [[], 2, /which region/],
  [['--region', 'nowhere'], 2, /no region nowhere/],
  [['--region', 'eu-central-1', '--unknown'], 2, /--unknown/],
  [['--region', 'eu-central-1', '--idle', 'long'], 2, /--idle is a number of minutes/],
  [['--region', 'eu-central-1', '--with', 'coffee'], 2, /--with coffee: there is only restore/],
  [['--help'], 0, /Usage: npm run acceptance/],
] as const)('%j', async (argv, code, text) => {
  expect(await acceptance(...argv)).toMatchObject({ code, out: expect.stringMatching(text) as unknown });
});

test('docs/acceptance.md has the steps', () => {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/acceptance.md'), 'utf8');
  for (const { minute, title, shows } of steps) expect(text).toContain(`| ${minute} | ${title} | ${shows} |`);
});
