/** Alarms see what the functions really write, and the runbook tells about each of them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { httpStatus, refusalCodes, refused, violation } from '../../../core/outcome/outcome.ts';
import type { AttestOutcome } from '../../../core/attest.ts';
import type { SignOutcome } from '../../../core/outcome/outcome.ts';
import { createAuthorizer } from '../../../lambdas/authorizer/authorizer.ts';
import { createCaHandler } from '../../../lambdas/ca/handler.ts';
import { signAnswer, verdictAnswer } from '../../../adapters/lambda/answers.ts';
import { refuseCaller } from '../../../adapters/lambda/caller.ts';
import { logEntry } from '../../../adapters/lambda/log.ts';
import type { CallLogEntry } from '../../../adapters/lambda/log.ts';
import { clusters } from './clusters.ts';
import { matches } from './filter-pattern.ts';
import { configuration, ofType, plain, root, synthesise, template } from './synthesis.ts';

const synthesis = synthesise(clusters);
const [api, proof] = [template(synthesis, 'api'), template(synthesis, 'proof')];

interface Filter {
  readonly FilterPattern: string;
  readonly LogGroupName: string;
  readonly MetricTransformations: readonly { MetricName: string; MetricNamespace: string; MetricValue: string }[];
}
const filtersOf = (of: typeof api): Filter[] =>
  ofType(of, 'AWS::Logs::MetricFilter').map(([, { Properties }]) => plain(Properties, synthesis) as Filter);
const alarmsOf = (of: typeof api): Readonly<Record<string, unknown>>[] =>
  ofType(of, 'AWS::CloudWatch::Alarm').map(
    ([, { Properties }]) => plain(Properties, synthesis) as Readonly<Record<string, unknown>>,
  );
const filters = filtersOf(api);
const alarms = alarmsOf(api);

/** The metrics that a line in the log of that function adds to. */
function counted(service: string, line: object, among = filters): string[] {
  const text = JSON.stringify(line);
  return among
    .filter(({ LogGroupName, FilterPattern }) => LogGroupName === `<${service}Log>` && matches(FilterPattern, text))
    .map(({ MetricTransformations: [metric] }) => metric?.MetricName ?? '');
}

/** What nobody refuses with where no machine proves itself, and no profile wants fresh keys. */
const ofAttestation = refusalCodes.slice(refusalCodes.indexOf('AttestationMissing'));
const always = refusalCodes.filter((code) => !ofAttestation.includes(code));

describe('what the sign function writes', () => {
  const line = (outcome: SignOutcome, more: Parameters<typeof logEntry>[2] = {}) =>
    logEntry(
      { statusCode: httpStatus(outcome), headers: { 'x-countersign-outcome': outcome.kind }, body: '' },
      5,
      more,
    );

  test.each(refusalCodes)('a refusal with %s is counted as such, whatever else was wrong', (code) => {
    const outcome = refused(violation(code, 'm'), violation('RequestMalformed', 'm'));
    const written = line(outcome, { codes: [code, 'RequestMalformed'] });
    expect(counted('Sign', written, filtersOf(proof))).toEqual([`Refused${code}`]);
    expect(counted('Sign', written)).toEqual(always.includes(code) ? [`Refused${code}`] : []);
  });

  test.each([
    ['Internal', 'SignInternal'],
    ['Unavailable', 'SignUnavailable'],
    ['Throttled', 'SignThrottled'],
  ] as const)('busy with %s', (why, metric) => {
    const outcome = { kind: 'busy', why, retryAfterSeconds: 1 } as const;
    expect(counted('Sign', line(outcome, { why, error: new TypeError('x') }))).toEqual([metric]);
  });

  test('everything else is nobody’s alarm', () => {
    for (const [outcome, more] of [
      [{ kind: 'busy', why: 'InProgress', retryAfterSeconds: 1 }, { why: 'InProgress' }],
      [{ kind: 'ignored', why: 'NotApproved' }, { why: 'NotApproved' }],
      [{ kind: 'invalid', message: 'refused' }, {}],
      [{ kind: 'issued', certificatePem: 'x', serial: '1', repeat: false }, { serial: '1' }],
    ] as const)
      expect(counted('Sign', line(outcome, more))).toEqual([]);
  });
});

describe('what the attest function writes', () => {
  const about = (outcome: AttestOutcome, more: Partial<CallLogEntry>) => logEntry(verdictAnswer(outcome), 5, more);
  const among = filtersOf(proof);

  test.each(refusalCodes)('a denial with %s is counted with the refusals, whatever else was wrong', (code) => {
    const outcome = {
      kind: 'deny',
      violations: [violation(code, 'm')],
      annotations: {},
      repeat: false,
    } as const;
    const written = about(outcome, { decision: 'deny', repeat: false, codes: [code, 'RequestMalformed'] });
    expect(counted('Attest', written, among)).toEqual([`Refused${code}`]);
  });

  test('what audit would have refused is counted apart', () => {
    const outcome = {
      kind: 'approve',
      annotations: {},
      repeat: false,
      audit: [violation('AttestationMissing', 'm')],
    } as const;
    const written = about(outcome, { decision: 'approve', wouldRefuse: ['AttestationMissing'] });
    expect(counted('Attest', written, among)).toEqual(['WouldRefuse']);
  });

  test.each([
    ['Internal', 'AttestInternal'],
    ['Unavailable', 'AttestUnavailable'],
    ['Throttled', 'AttestThrottled'],
  ] as const)('busy with %s', (why, metric) => {
    const outcome = { kind: 'busy', why, retryAfterSeconds: 1 } as const;
    const written = logEntry(signAnswer(outcome, undefined), 5, { why, error: new TypeError('x') });
    expect(counted('Attest', written, among)).toEqual([metric]);
  });

  test('everything else is nobody’s alarm', () => {
    const approved = { kind: 'approve', annotations: {}, repeat: false } as const;
    const ignored = { kind: 'ignore', why: 'UnknownSigner' } as const;
    expect(counted('Attest', about(approved, { decision: 'approve', repeat: true }), among)).toEqual([]);
    expect(counted('Attest', about(ignored, { decision: 'ignore', why: 'UnknownSigner' }), among)).toEqual([]);
  });

  test('alarms of its own, and the refusals of both in one', () => {
    const names = alarmsOf(proof).map(({ AlarmName }) => String(AlarmName).slice('countersign-proof-'.length));
    expect(names.filter((name) => name.startsWith('attest'))).toEqual([
      'attest-errors',
      'attest-throttles',
      'attest-internal',
      'attest-unavailable',
      'attest-throttled',
    ]);
    const refusals = names.filter((name) => name.startsWith('refused-'));
    expect(refusals).toEqual(refusalCodes.map((code) => `refused-${code}`));
    const first = new Set(['TofuReuse', 'TofuNodeMismatch', 'TofuNodeTaken', 'Revoked', 'NameNotOwned']);
    for (const code of ofAttestation)
      expect(alarmsOf(proof).find(({ AlarmName }) => AlarmName === `countersign-proof-refused-${code}`)).toMatchObject({
        Threshold: first.has(code) ? 1 : 20,
        MetricName: `Refused${code}`,
      });
  });
});

test('what the authorizer writes when nobody can come in', async () => {
  const lines: object[] = [];
  const event = {
    version: '2.0',
    type: 'REQUEST',
    rawPath: '/v1/clusters/api/sign',
    headers: { authorization: 'Bearer a.b.c' },
  };
  const answer = (access: Parameters<typeof createAuthorizer>[0], headers: object = {}): Promise<unknown> =>
    createAuthorizer(access, {
      now: () => 0,
      fetchJwks: () => Promise.reject(new Error('away')),
      log: (entry) => lines.push(entry),
    })({ ...event, ...headers });
  const jwt = configuration(clusters).deployments.get('api')?.access.jwt;
  if (jwt === undefined) throw new Error('no tokens');
  const header = Buffer.from(JSON.stringify({ alg: 'ES256', kid: 'k' })).toString('base64url');
  await answer(undefined);
  await answer({ cluster: 'api', jwt }, { headers: { authorization: `Bearer ${header}.e30.AA` } });
  await answer({ cluster: 'api', jwt });
  expect(lines.map((line) => counted('Authorizer', line))).toEqual([['AuthorizerFaults'], ['AuthorizerKeys'], []]);
});

test('what the ca function writes when there is no CA', async () => {
  const lines: object[] = [];
  const { cas } = configuration(clusters).clusters.get('api') ?? {};
  if (cas === undefined) throw new Error('no CAs');
  const handler = createCaHandler({
    connect: () => ({
      cluster: 'api',
      cas,
      key: () => {
        throw new Error('no key');
      },
      store: { find: async () => undefined, add: async () => false },
      origin: () => ({ now: 0, randomBytes: (count) => new Uint8Array(count) }),
    }),
    respond: async () => undefined,
    wait: async () => undefined,
    log: (entry) => lines.push(entry),
  });
  await handler({ action: 'show' }).catch(() => undefined);
  expect(lines.map((line) => counted('Ca', line))).toEqual([['CaFaults']]);
  // As test/unit/lambdas/ca/handler.test.ts shows it of CAs that are there.
  const line = {
    level: 'info',
    action: 'show',
    cluster: 'api',
    cas: { nodes: 'there', web: 'there' },
    daysLeft: { nodes: 99, web: 5 },
  };
  expect(counted('Ca', line)).toEqual(['CaDaysLeft-nodes', 'CaDaysLeft-web']);
});

test('finding 2: a refused caller is counted by name, from both functions, and the alarm has a contributor for each', () => {
  const [answer, more] = refuseCaller(
    {
      kind: 'refused',
      caller: 'arn:aws:sts::111122223333:assumed-role/deployer/alice',
      principal: 'arn:aws:sts::111122223333:assumed-role/deployer',
    },
    'proof',
  );
  const written = logEntry(answer, 5, more);
  const among = filtersOf(proof);
  for (const service of ['Sign', 'Attest']) {
    expect(counted(service, written, among)).toEqual(['CallersRefused']);
    const filter = among.find(
      ({ LogGroupName, FilterPattern }) =>
        LogGroupName === `<${service}Log>` && matches(FilterPattern, JSON.stringify(written)),
    );
    // The dimension is a field of that very line.
    expect(filter?.MetricTransformations).toMatchObject([
      { MetricNamespace: 'Countersign/proof', Dimensions: [{ Key: 'Caller', Value: '$.callerPrincipal' }] },
    ]);
  }
  expect(written).toMatchObject({ callerPrincipal: 'arn:aws:sts::111122223333:assumed-role/deployer' });
  const alarm = alarmsOf(proof).find(({ AlarmName }) => AlarmName === 'countersign-proof-callers-refused');
  expect(alarm).toMatchObject({
    ...atOnce,
    ...comparison,
    Metrics: [
      {
        Expression: 'SELECT SUM(CallersRefused) FROM SCHEMA("Countersign/proof", Caller) GROUP BY Caller',
        Period: 300,
      },
    ],
  });
});

describe('each filter', () => {
  test('has one alarm that watches its metric, by five minutes, or for what ends by six hours', () => {
    for (const {
      MetricTransformations: [metric],
    } of filters) {
      // Watched by a query, below.
      if (metric?.MetricName === 'CallersRefused') continue;
      const watching = alarms.filter(
        ({ MetricName, Namespace }) => MetricName === metric?.MetricName && Namespace === metric?.MetricNamespace,
      );
      expect([metric?.MetricName, watching.length]).toEqual([metric?.MetricName, 1]);
      const days = metric?.MetricName.startsWith('CaDaysLeft') === true;
      expect(watching[0]).toMatchObject(
        days ? { Period: 21_600, Statistic: 'Minimum' } : { Period: 300, Statistic: 'Sum' },
      );
      expect(metric).toMatchObject({
        MetricNamespace: 'Countersign/api',
        MetricValue: days ? `$.daysLeft.${metric?.MetricName.slice(11)}` : '1',
      });
    }
  });
});

const atOnce = { Threshold: 1, EvaluationPeriods: 1, DatapointsToAlarm: 1 };
const lasting = { Threshold: 1, EvaluationPeriods: 3, DatapointsToAlarm: 3 };
const many = { Threshold: 44, EvaluationPeriods: 1, DatapointsToAlarm: 1 };
const comparison = { ComparisonOperator: 'GreaterThanOrEqualToThreshold', TreatMissingData: 'notBreaching' };

test('every alarm, and at what it is raised', () => {
  const lambda = (metric: string, id: string) => ({
    Namespace: 'AWS/Lambda',
    MetricName: metric,
    Dimensions: [{ Name: 'FunctionName', Value: `<${id}>` }],
  });
  const gateway = (id: string) => ({
    Namespace: 'AWS/ApiGateway',
    MetricName: '5xx',
    Dimensions: [{ Name: 'ApiId', Value: `<${id}>` }],
  });
  const own = (metric: string) => ({ Namespace: 'Countersign/api', MetricName: metric });
  const first = new Set(['SignatureInvalid', 'NameReserved', 'UidReused', 'IntentExpired', 'Locked']);
  const days = {
    Threshold: 33,
    EvaluationPeriods: 4,
    DatapointsToAlarm: 4,
    ComparisonOperator: 'LessThanThreshold',
    TreatMissingData: 'breaching',
  };
  const expected: Record<string, object> = {
    'sign-errors': { ...lambda('Errors', 'Sign'), ...atOnce },
    'sign-throttles': { ...lambda('Throttles', 'Sign'), ...lasting },
    'sign-internal': { ...own('SignInternal'), ...atOnce },
    'sign-unavailable': { ...own('SignUnavailable'), ...lasting },
    'sign-throttled': { ...own('SignThrottled'), ...lasting },
    ...Object.fromEntries(
      always.map((code) => [`refused-${code}`, { ...own(`Refused${code}`), ...(first.has(code) ? atOnce : many) }]),
    ),
    'callers-refused': atOnce,
    'front-door-errors-iam': { ...gateway('IamApi'), ...lasting },
    'front-door-errors-jwt': { ...gateway('JwtApi'), ...lasting },
    'authorizer-errors': { ...lambda('Errors', 'Authorizer'), ...atOnce },
    'authorizer-throttles': { ...lambda('Throttles', 'Authorizer'), ...lasting },
    'authorizer-faults': { ...own('AuthorizerFaults'), ...atOnce },
    'authorizer-keys': { ...own('AuthorizerKeys'), ...lasting },
    'ca-errors': { ...lambda('Errors', 'Ca'), ...atOnce },
    'ca-faults': { ...own('CaFaults'), ...atOnce },
    'ca-days-left-nodes': { ...own('CaDaysLeft-nodes'), ...days },
    'ca-days-left-web': { ...own('CaDaysLeft-web'), ...days },
  };
  expect(alarms.map(({ AlarmName }) => AlarmName)).toEqual(
    Object.keys(expected).map((name) => `countersign-api-${name}`),
  );
  for (const alarm of alarms)
    expect(alarm).toMatchObject({
      ...comparison,
      ...expected[String(alarm['AlarmName']).slice('countersign-api-'.length)],
    });
});

test('alarms and their ends are told to the topics of the file', () => {
  const topics = ['arn:aws:sns:eu-central-1:111122223333:alerts'];
  for (const alarm of alarms) expect(alarm).toMatchObject({ AlarmActions: topics, OKActions: topics });
  for (const [, { Properties }] of ofType(template(synthesis, 'url'), 'AWS::CloudWatch::Alarm'))
    expect(Properties).not.toHaveProperty('AlarmActions');
});

test('other ways in have other alarms', () => {
  const names = (stack: string): string[] =>
    ofType(template(synthesis, stack), 'AWS::CloudWatch::Alarm').map(([, { Properties }]) =>
      String(Properties['AlarmName']),
    );
  const ways = (stack: string): string[] => names(stack).filter((name) => /front-door|authorizer/.test(name));
  expect(ways('url')).toEqual(['countersign-url-front-door-errors-function-url']);
  expect(ways('first')).toEqual([
    'countersign-first-front-door-errors-function-url',
    'countersign-first-front-door-errors-attest-url',
  ]);
  expect(ways('tokens').map((name) => name.slice('countersign-tokens-'.length))).toEqual([
    'front-door-errors-jwt',
    'authorizer-errors',
    'authorizer-throttles',
    'authorizer-faults',
    'authorizer-keys',
  ]);
});

describe('the runbook', () => {
  const page = readFileSync(join(root, 'docs/runbook.md'), 'utf8');
  const sections = new Map(
    page
      .split(/^### /m)
      .slice(1)
      .map((text) => [text.slice(0, text.indexOf('\n')), text] as const),
  );

  test('has a section for every alarm, and for nothing else', () => {
    const linked = [...synthesis.templates.values()].flatMap((of) =>
      ofType(of, 'AWS::CloudWatch::Alarm').map(
        ([, { Properties }]) => /docs\/runbook\.md#(\S+)$/.exec(String(Properties['AlarmDescription']))?.[1],
      ),
    );
    const unique = (list: readonly unknown[]): unknown[] => [...new Set(list.map(String))].sort();
    expect(unique(linked)).toEqual(unique([...sections.keys()].map((heading) => heading.toLowerCase())));
  });

  test.each([...sections])('%s describes, investigates and resolves', (_, text) => {
    const parts = [...text.matchAll(/\*\*(Description|Investigation|Resolution)\.\*\*/g)].map(([, part]) => part);
    expect(parts).toEqual(['Description', 'Investigation', 'Resolution']);
  });
});

test('docs/signing-api.md tells when each code is given', () => {
  const page = readFileSync(join(root, 'docs/signing-api.md'), 'utf8');
  const table = page.slice(page.indexOf('## Refusal codes'));
  const told = [...table.matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, names = '']) =>
    names.replaceAll('`', '').split(', '),
  );
  expect(told).toEqual([...refusalCodes]);
});
