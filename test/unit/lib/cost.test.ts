/** What docs/cost.md says, counted in the templates and computed from the prices on the page. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ofType, root, synthesise } from './synthesis.ts';

const read = (file: string): string => readFileSync(join(root, 'docs', file), 'utf8');
const page = read('cost.md');

const iam = "iam: {principals: ['arn:aws:iam::444455556666:role/relay']}";
const jwt = "jwt: {issuer: https://issuer.example.com, audience: a, subjects: ['system:serviceaccount:a:b']}";
const cluster = (name: string, access: readonly string[], more = '', cas = ['ca']): string => `
  ${name}:
    cas: {${cas.map((ca) => `${ca}: {subject: {commonName: ${ca}}}`).join(', ')}}
    profiles: {kubernetes.io/kubelet-serving: {ca: ${cas[0]}}}
    access: {${access.join(', ')}}
    ${more}`;
const serving = 'kubernetes.io/kubelet-serving: {ca: ca';
const attested = (name: string, more = ''): string =>
  cluster(
    name,
    [iam],
    `attestation: {audience: ${name}, aws: {accounts: {'111122223333': {}}, regions: [eu-central-1], tags: {a: b}, nodeName: [instanceId]}}${more}`,
  ).replace(serving, `${serving}, attestation: {providers: [aws]}`);
const { templates } = synthesise(
  `version: 1\nclusters:${[
    cluster('iam', [iam]),
    cluster('url', [iam], 'frontDoor: functionUrl'),
    cluster('jwt', [jwt]),
    cluster('both', [iam, jwt]),
    cluster('two', [iam], '', ['ca', 'other']),
    attested('proof'),
    attested('proof-url', '\n    frontDoor: functionUrl'),
    cluster('fresh', [iam]).replace(serving, `${serving}, freshKeys: true`),
    cluster('seen', [iam], 'dashboard: true'),
    cluster('metal', [iam], 'attestation: {audience: metal, tpm: {machines: listed}}').replace(
      'kubernetes.io/kubelet-serving: {ca: ca}',
      'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm: {ca: ca}',
    ),
  ].join('')}\n`,
);
const found = (name: string, type: string) =>
  [`countersign-${name}`, `countersign-${name}-state`].flatMap((stack) => ofType(templates.get(stack)!, type));
const count = (name: string, type: string): number => found(name, type).length;

/** A metric alarm costs once for each metric that it references. */
const alarms = (name: string): number =>
  found(name, 'AWS::CloudWatch::Alarm').reduce((sum, [, { Properties }]) => {
    const queries = (Properties['Metrics'] ?? [{}]) as readonly { readonly Expression?: string }[];
    // A Metrics Insights query costs by what it finds, which no template shows.
    if (queries.some(({ Expression = '' }) => /SELECT/i.test(Expression))) throw new Error('an alarm on a query');
    return sum + queries.filter(({ Expression }) => Expression === undefined).length;
  }, 0);

/** The cells of the row that begins so. */
function row(begin: string): readonly string[] {
  const [prices = ''] = page.split('## Where the prices come from');
  const line = prices.split('\n').filter((each) => each.startsWith(`| ${begin}`) || each.startsWith(`| **${begin}`));
  expect([begin, line.length]).toEqual([begin, 1]);
  return line[0]!
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.replaceAll('*', '').trim());
}
const numbersIn = (cell = ''): number[] =>
  [...cell.replaceAll(/(\d) (?=\d{3})/g, '$1').matchAll(/[\d.]+/g)].map(([text]) => Number(text));
const cents = (dollars: number): string => dollars.toFixed(2);

describe('a month without certificates', () => {
  const [text = '', , , month] = row('CloudWatch alarms on one metric each');
  const [ofIam, ofJwt, ofUrl] = numbersIn(text);
  /** Of the schedule that looks for terminated instances. */
  const scheduled = 1;

  test('as many alarms as the stacks have, at ten cents', () => {
    expect([alarms('iam'), alarms('jwt'), alarms('both'), alarms('url')]).toEqual([ofIam, ofJwt, ofJwt, ofUrl]);
    expect(numbersIn(month).map(cents)).toEqual([ofIam!, ofUrl!].map((each) => cents(each * 0.1)));
    expect(count('both', 'AWS::CloudWatch::CompositeAlarm')).toBe(0);
  });

  test('a further CA and fresh keys add none, proofs of machines add what the page says', () => {
    expect([alarms('two'), alarms('fresh')]).toEqual([alarms('iam'), alarms('iam')]);
    expect(found('two', 'AWS::KMS::Key')).toHaveLength(2);
    const [, , , ofProofs] = row('machines prove themselves');
    expect(numbersIn(ofProofs).map(cents)).toEqual(
      [alarms('proof') - alarms('iam'), alarms('proof-url') - alarms('url')].map((each) =>
        cents((each - scheduled) * 0.1),
      ),
    );
  });

  test('the schedule that looks for terminated instances: its calls, their log, and an alarm', () => {
    const rules = found('proof', 'AWS::Events::Rule').map(([, { Properties }]) =>
      String(Properties['ScheduleExpression']),
    );
    const every = Number(rules.flatMap((text) => /^rate\((\d+) minutes\)$/.exec(text)?.[1] ?? [])[0]);
    const calls = (30 * 24 * 60) / every;
    const [text = '', , , month] = row('EC2 instances: the schedule');
    expect(numbersIn(text.replace('EC2', ''))).toEqual([calls, 0.5]);
    const each = 0.2e-6 + 0.5 * 0.3 * 0.0000133334 + 0.5e-6 * 0.5;
    expect(numbersIn(month).map(cents)).toEqual([cents(scheduled * 0.1 + calls * each)]);
    expect(numbersIn(row('the metric `RetiredMachines`')[3]).map(cents)).toEqual([cents(0.3)]);
  });

  test('machines with a TPM cost one more key, and the alarm of attest; no schedule', () => {
    expect([count('metal', 'AWS::KMS::Key'), count('proof', 'AWS::KMS::Key')]).toEqual([2, 1]);
    expect(row('machines with a TPM').slice(1)).toEqual(['1.00', '', '1.00']);
    expect(alarms('metal')).toBe(alarms('proof') - scheduled);
    const [, price, each] = row('its MACs, two for the first use');
    expect(numbersIn(each)[0]!.toFixed(4)).toBe(((2 * 1_000 * numbersIn(price)[0]!) / 10_000).toFixed(4));
  });

  test('the metric of the days left: the hours in which the ca function logs', () => {
    const [[, rule] = [], ...others] = found('iam', 'AWS::Events::Rule');
    expect(others).toEqual([]);
    const every = /^rate\((\d+) hours\)$/.exec(String(rule?.Properties['ScheduleExpression']))?.[1];
    const [text, price, , month] = row('the metric of the days');
    expect(numbersIn(text)).toEqual([24 / Number(every), 24]);
    expect(numbersIn(month).map(cents)).toEqual([cents((numbersIn(price)[0]! * 24) / Number(every) / 24)]);
    const metrics = found('two', 'AWS::Logs::MetricFilter').map(([, { Properties }]) =>
      JSON.stringify(Properties['MetricTransformations']),
    );
    // Any other metric is published only while there is a trouble.
    expect(metrics.every((text) => /"(CaDaysLeft|Faults|UnexpectedRefusals|Refusals|Interruptions)"/.test(text))).toBe(
      true,
    );
    expect(new Set(metrics.filter((text) => !text.includes('CaDaysLeft'))).size).toBe(4);
    expect(row('metrics of troubles')[3]).toContain(cents(4 * 0.3));
  });

  test('together: under two dollars without proofs', () => {
    expect(count('iam', 'AWS::KMS::Key')).toBe(1);
    const [, , , month] = row('together, one CA');
    const sum = (name: string): number => 1 + alarms(name) * 0.1 + 0.05;
    expect(numbersIn(month).map(cents)).toEqual([cents(sum('iam')), cents(sum('url'))]);
    for (const name of ['iam', 'url', 'jwt', 'both', 'fresh']) expect(sum(name)).toBeLessThan(2);
  });

  test('a dashboard only where the file asks for one', () => {
    for (const name of ['iam', 'url', 'jwt', 'both', 'proof'])
      expect(count(name, 'AWS::CloudWatch::Dashboard')).toBe(0);
    expect(count('seen', 'AWS::CloudWatch::Dashboard')).toBe(1);
    expect(alarms('seen')).toBe(alarms('iam'));
  });
});

describe('certificates', () => {
  const rows = ['KMS `Sign`', 'DynamoDB, on demand', 'Lambda arm64', 'HTTP API', 'logs of function'];
  const each = rows.map((begin) => numbersIn(row(begin)[2])[0]!);
  const perThousand = each.reduce((sum, dollars) => sum + dollars, 0);
  const extra = (begin: string): number => numbersIn(row(begin)[2])[0]!;

  test('each row follows from its price', () => {
    const [write, read, lambda, compute] = [0.625e-6, 0.125e-6, 0.2e-6, 0.0000133334];
    const computed = [
      (1_000 * 0.15) / 10_000,
      1_000 * ((2 + 3) * 3 * write + 4 * read),
      1_000 * (lambda + 0.5 * 0.06 * compute),
      1_000 * 1e-6,
      2e-6 * 1_000 * 0.5,
    ];
    expect(each.map((dollars) => dollars.toFixed(4))).toEqual(computed.map((dollars) => dollars.toFixed(4)));
    expect(numbersIn(row('together, one CA')[2])).toEqual([Number(perThousand.toFixed(3))]);
    expect(extra('machines prove themselves').toFixed(4)).toBe(
      (1_000 * (lambda + 0.5 * 0.3 * compute) + 0.002).toFixed(4),
    );
    const units = (kind: RegExp): number => unitsOf('proved', kind);
    const [attestReads, attestWrites] = [units(/GetItem|TransactGetItems|BatchGetItem/), units(/TransactWriteItems/)];
    expect(extra('its DynamoDB units').toFixed(4)).toBe(
      (1_000 * (attestReads * read + attestWrites * write)).toFixed(4),
    );
  });

  test('the events that a second trail and GuardDuty count', () => {
    const calls = (path: string): number =>
      callsOf(path).filter(([service]) => ['KMS', 'STS', 'EC2'].includes(service)).length;
    const [plain, proved] = [calls('approved'), calls('proved')];
    expect([plain, proved]).toEqual([1, 3]);
    expect(extra('a second CloudTrail trail')).toBeCloseTo((1_000 * plain * 2) / 100_000, 4);
    expect(extra('the same where machines')).toBeCloseTo((1_000 * proved * 2) / 100_000, 4);
    expect(numbersIn(row('GuardDuty')[2])).toEqual([plain, proved].map((events) => (1_000 * events * 4) / 1e6));
  });

  test('a month of nodes, beside AWS Private CA', () => {
    const table = [
      ...page.matchAll(/^\| ([\d ]+) \| (\d+) (d|h) \| ([\d ]+) \| (\d+) \| ([\d ]+) \| (–|[\d ]+) \|$/gm),
    ];
    expect(table).toHaveLength(5);
    for (const [line, ...cells] of table) {
      const [nodes, life, unit, certificates, ours, general, short] = cells.map((cell) =>
        cell === 'd' || cell === 'h' ? cell : cell.replaceAll(' ', ''),
      );
      const days = Number(life) / (unit === 'h' ? 24 : 1);
      const number = (2 * Number(nodes) * 30) / (0.8 * days);
      const privateCa =
        400 +
        0.75 * Math.min(number, 1_000) +
        0.35 * Math.min(Math.max(number - 1_000, 0), 9_000) +
        0.001 * Math.max(number - 10_000, 0);
      const expected = [number, 1.75 + (number * perThousand) / 1_000, privateCa, days > 7 ? NaN : 50 + 0.058 * number];
      expect([line, Number(certificates), Number(ours), Number(general), Number(short)]).toEqual([
        line,
        ...expected.map((dollars) => (Number.isNaN(dollars) ? Number('–') : Math.round(dollars))),
      ]);
    }
    const most =
      1.85 +
      (375_000 / 1_000) *
        (perThousand +
          extra('machines prove themselves') +
          extra('its DynamoDB units') +
          extra('the same where machines'));
    expect(page).toContain(`with proofs of machines and a second trail the last row is ${Math.round(most)}`);
    expect(numbersIn(row('Countersign, one CA')[1])).toEqual([Math.round(1.75)]);
  });
});

/** The calls of a path in docs/internals/call-budget.md, which the counting suites hold to the code: service and action with item kinds. */
function callsOf(path: string): readonly (readonly [service: string, action: string])[] {
  const text = read('internals/call-budget.md');
  const table = text.slice(text.indexOf(`<!-- counted: ${path} -->`)).split('\n\n')[0]!;
  return [...table.matchAll(/^\| (\d+) \| (KMS|STS|EC2|DynamoDB): `([^`]+)`/gm)].flatMap(([, times, service, action]) =>
    Array.from({ length: Number(times) }, () => [service!, action!] as const),
  );
}

/** Consistent reads of up to 4 KB and writes of up to 1 KB count once for each item, in a transaction twice. */
function unitsOf(path: string, kind: RegExp): number {
  return callsOf(path)
    .filter(([service, action]) => service === 'DynamoDB' && kind.test(action))
    .map(([, action]) => (action.split(' ').length - 1) * (action.startsWith('Transact') ? 2 : 1))
    .reduce((sum, units) => sum + units, 0);
}

test('tables are paid by use, and no function waits for money', () => {
  expect(
    ofType(templates.get('countersign-iam-state')!, 'AWS::DynamoDB::Table').map(
      ([, of]) => of.Properties['BillingMode'],
    ),
  ).toEqual(['PAY_PER_REQUEST', 'PAY_PER_REQUEST']);
  expect(JSON.stringify(templates.get('countersign-both'))).not.toContain('ProvisionedConcurren');
});
