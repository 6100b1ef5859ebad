/** Every trouble that the functions log raises an alarm, and the runbook has a section for each of both. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { errorAnswer, lookedAnswer, signAnswer, verdictAnswer } from '../../../../adapters/lambda/answers.ts';
import { logEntry } from '../../../../adapters/lambda/log.ts';
import { refusalCodes, violation } from '../../../../core/outcome/outcome.ts';
import type { SignOutcome } from '../../../../core/outcome/outcome.ts';
import { named, troubles } from '../../../../core/outcome/trouble.ts';
import { clusters } from '../clusters.ts';
import { matches } from '../filter-pattern.ts';
import { configuration, ofType, plain, resource, root, synthesise, template } from '../synthesis.ts';
import { authorizerLines, linesOf } from './trouble-lines.ts';
import type { TroubledCluster } from './trouble-lines.ts';

const synthesis = synthesise(clusters);

type Properties = Readonly<Record<string, unknown>>;
interface Filter {
  readonly FilterPattern: string;
  readonly LogGroupName: string;
  readonly MetricTransformations: readonly { MetricName: string; MetricNamespace: string; MetricValue: string }[];
}
const all = (stack: string, type: string): Properties[] =>
  ofType(template(synthesis, `countersign-${stack}`), type).map(
    ([, { Properties }]) => plain(Properties, synthesis) as Properties,
  );
const filtersOf = (stack: string): Filter[] => all(stack, 'AWS::Logs::MetricFilter') as unknown as Filter[];
const alarmsOf = (stack: string): Properties[] => all(stack, 'AWS::CloudWatch::Alarm');
const shortName = (stack: string, { AlarmName }: Properties): string =>
  String(AlarmName).slice(`countersign-${stack}-`.length);
const sectionOf = ({ AlarmDescription }: Properties): string | undefined =>
  /docs\/runbook\.md#(\S+)$/.exec(String(AlarmDescription))?.[1];

/** The metrics that a line in that log group adds to. */
function counted(stack: string, logGroup: string, line: object): string[] {
  const text = JSON.stringify(line);
  return filtersOf(stack)
    .filter(({ LogGroupName, FilterPattern }) => LogGroupName === `<${logGroup}>` && matches(FilterPattern, text))
    .map(({ MetricTransformations: [metric] }) => `${metric?.MetricNamespace} ${metric?.MetricName}`);
}

const atOnce = { Threshold: 1, EvaluationPeriods: 1, DatapointsToAlarm: 1 };
const lasting = { Threshold: 1, EvaluationPeriods: 3, DatapointsToAlarm: 3 };
const thresholds = {
  faults: atOnce,
  'unexpected-refusals': atOnce,
  'many-refusals': { Threshold: 20, EvaluationPeriods: 1, DatapointsToAlarm: 1 },
  interruptions: lasting,
  // Three times twenty minutes, in each of which the schedule of ten minutes runs.
  retirement: { ...lasting, Period: 1_200 },
};
const counting = {
  Statistic: 'Sum',
  Period: 300,
  ComparisonOperator: 'GreaterThanOrEqualToThreshold',
  TreatMissingData: 'notBreaching',
};

const page = readFileSync(join(root, 'docs/runbook.md'), 'utf8');
// Further sections of the page are about what CloudWatch does not see.
const sections = new Map(
  page
    .slice(0, page.indexOf('\n## Machines\n'))
    .split(/^### /m)
    .slice(1)
    .map((text) => [text.slice(0, text.indexOf('\n')), text] as const)
    // Alerts of the relay (test/unit/deploy/alerts.test.ts).
    .filter(([heading]) => !heading.startsWith('Countersign')),
);

/** Machines prove themselves in it, and it has both ways in. */
const proof: TroubledCluster = (() => {
  const { clusters: named, deployments } = configuration(clusters);
  const [cluster, jwt] = [named.get('proof'), deployments.get('proof')?.access.jwt];
  if (cluster === undefined || jwt === undefined) throw new Error('no cluster');
  return { name: 'proof', cas: cluster.cas, jwt };
})();

describe('each trouble', () => {
  test.each(troubles)('%s raises the alarm that its line names, and the runbook has both', async (trouble) => {
    const { alarm } = named(trouble);
    const lines = await linesOf(trouble, proof);
    expect(lines.length).toBeGreaterThan(0);
    for (const [service, line] of lines) {
      expect(line).toMatchObject({ trouble, alarm });
      const metrics = counted('proof', `${service}Log`, line);
      expect(metrics).toHaveLength(1);
      const watching = alarmsOf('proof').filter(
        ({ Namespace, MetricName }) => `${String(Namespace)} ${String(MetricName)}` === metrics[0],
      );
      expect(watching).toMatchObject([{ AlarmName: `countersign-proof-${alarm}`, ...counting, ...thresholds[alarm] }]);
      // The notification has the description.
      expect(String(watching[0]?.['AlarmDescription']).split(/[\s,.]+/)).toContain(trouble);
    }
    expect([...sections.keys()]).toEqual(expect.arrayContaining([trouble, alarm]));
  });

  test('is at once an alarm if a correct client never causes it', () => {
    const first =
      'SignatureInvalid NameReserved UidReused IntentExpired Locked TofuReuse TofuNodeMismatch TofuNodeTaken Revoked MachineAmbiguous MachineOfOtherCluster MachineMismatch NameNotOwned';
    expect(refusalCodes.filter((code) => named(`refused-${code}`).alarm === 'unexpected-refusals')).toEqual(
      first.split(' '),
    );
    for (const [section, text] of sections)
      if (section.startsWith('refused-'))
        expect([section, text.replaceAll(/\s+/g, ' ').includes('The first one raises the alarm')]).toEqual([
          section,
          first.split(' ').includes(section.slice('refused-'.length)),
        ]);
  });

  test('has its own alarm name in clusters of every kind; retirement only where a schedule looks for terminated machines', () => {
    const { retirement: _, ...everywhere } = thresholds;
    for (const stack of ['api', 'url', 'tokens', 'proof', 'first']) {
      const names = alarmsOf(stack).map((alarm) => shortName(stack, alarm));
      expect(names).toEqual(expect.arrayContaining(Object.keys(stack === 'proof' ? thresholds : everywhere)));
      expect(names.includes('retirement')).toBe(stack === 'proof');
    }
  });
});

test('finding 2: the line of a refused caller has its name, with and without the name of its session', async () => {
  for (const [, line] of await linesOf('callers-refused', proof))
    expect(line).toMatchObject({
      level: 'warn',
      outcome: 'forbidden',
      caller: 'arn:aws:sts::111122223333:assumed-role/deployer/alice',
      callerPrincipal: 'arn:aws:sts::111122223333:assumed-role/deployer',
    });
});

test('everything else raises no alarm', async () => {
  const signLine = (outcome: SignOutcome, fields: Parameters<typeof logEntry>[2]): object =>
    logEntry(signAnswer(outcome, {}), 5, fields);
  const approved = { kind: 'approve', annotations: {}, repeat: true } as const;
  const audited = { ...approved, audit: [violation('AttestationMissing', 'm')] } as const;
  for (const line of [
    signLine({ kind: 'busy', why: 'InProgress', retryAfterSeconds: 1 }, { why: 'InProgress' }),
    signLine({ kind: 'busy', why: 'SecondLook', retryAfterSeconds: 1 }, { why: 'SecondLook' }),
    signLine({ kind: 'busy', why: 'Limited', retryAfterSeconds: 1 }, { why: 'Limited' }),
    signLine({ kind: 'ignored', why: 'NotApproved' }, { why: 'NotApproved' }),
    signLine({ kind: 'invalid', message: 'refused' }, {}),
    signLine({ kind: 'issued', certificatePem: 'x', serial: '1', repeat: false }, { serial: '1', repeat: false }),
    logEntry(errorAnswer(404, 'invalid', 'no such path'), 5, { path: '/' }),
    logEntry(verdictAnswer(approved), 5, { decision: 'approve', repeat: true }),
  ]) {
    expect(line).not.toHaveProperty('trouble');
    for (const service of ['Sign', 'Attest']) expect(counted('proof', `${service}Log`, line)).toEqual([]);
  }
  for (const [, line] of await authorizerLines(proof, { authorization: 'Bearer a.b.c' }))
    expect([line, counted('proof', 'AuthorizerLog', line)]).toEqual([expect.objectContaining({ level: 'info' }), []]);
  // Audit mode has a metric, and no alarm on it.
  const would = logEntry(verdictAnswer(audited), 5, { decision: 'approve', wouldRefuse: ['AttestationMissing'] });
  expect(counted('proof', 'AttestLog', would)).toEqual(['Countersign/proof WouldRefuse']);
  expect(alarmsOf('proof').filter(({ MetricName }) => MetricName === 'WouldRefuse')).toEqual([]);
});

test('retired machines are counted, by the schedule and by hints, and raise no alarm', () => {
  const looked = (retired: number, look: 'scheduled' | 'hint') =>
    logEntry(lookedAnswer(), 5, { cluster: 'proof', look, looked: 9, ...(retired === 0 ? {} : { retired }) });
  for (const look of ['scheduled', 'hint'] as const) {
    expect(counted('proof', 'AttestLog', looked(3, look))).toEqual(['Countersign/proof RetiredMachines']);
    expect(counted('proof', 'AttestLog', looked(0, look))).toEqual([]);
  }
  const values = filtersOf('proof').flatMap(({ MetricTransformations: [metric] }) =>
    metric?.MetricName === 'RetiredMachines' ? [metric.MetricValue] : [],
  );
  expect(values).toEqual(['$.retired']);
  expect(alarmsOf('proof').filter(({ MetricName }) => MetricName === 'RetiredMachines')).toEqual([]);
});

test('an HTTP API that answers 5xx, for whatever reason, is an interruption: throttled functions, integrations, authorizers', () => {
  for (const name of ['Iam', 'Jwt']) {
    const [, stage] = resource(template(synthesis, 'countersign-api'), 'AWS::ApiGatewayV2::Stage', `${name}ApiStage`);
    const { Format, DestinationArn } = stage.Properties['AccessLogSettings'] as Record<string, unknown>;
    expect(JSON.stringify(DestinationArn)).toContain(`${name}ApiAccessLog`);
    const line = (status: string): object => JSON.parse(String(Format).replace('$context.status', status)) as object;
    for (const status of ['500', '502', '503', '504'])
      expect(counted('api', `${name}ApiAccessLog`, line(status))).toEqual(['Countersign/api Interruptions']);
    for (const status of ['200', '403', '422', '429'])
      expect(counted('api', `${name}ApiAccessLog`, line(status))).toEqual([]);
  }
});

test('the days that are left: of all CAs in one metric, whose minimum is watched', () => {
  // As test/unit/lambdas/ca/handler.test.ts shows it of CAs that are there.
  const line = { level: 'info', action: 'show', cluster: 'api', cas: {}, daysLeft: { nodes: 99, web: 5 } };
  expect(counted('api', 'CaLog', line)).toEqual(['Countersign/api CaDaysLeft', 'Countersign/api CaDaysLeft']);
  const values = filtersOf('api').flatMap(({ MetricTransformations: [metric] }) =>
    metric?.MetricName === 'CaDaysLeft' ? [metric.MetricValue] : [],
  );
  expect(values).toEqual(['$.daysLeft.nodes', '$.daysLeft.web']);
});

test('every alarm, and at what it is raised', () => {
  const lambda = (metric: string, id: string) => ({
    Namespace: 'AWS/Lambda',
    MetricName: metric,
    Dimensions: [{ Name: 'FunctionName', Value: `<${id}>` }],
    ...counting,
  });
  const ofLog = (stack: string, refusals: number) => {
    const own = (metric: string) => ({ Namespace: `Countersign/${stack}`, MetricName: metric, ...counting });
    return {
      faults: { ...own('Faults'), ...atOnce },
      'unexpected-refusals': { ...own('UnexpectedRefusals'), ...atOnce },
      'many-refusals': { ...own('Refusals'), ...atOnce, Threshold: refusals },
      interruptions: { ...own('Interruptions'), ...lasting },
    };
  };
  const errors = (...services: string[]) =>
    Object.fromEntries(
      services.map((service) => [`errors-${service.toLowerCase()}`, { ...lambda('Errors', service), ...atOnce }]),
    );
  const urls = (...services: string[]) =>
    Object.fromEntries(
      services.flatMap((service) => [
        [`throttles-${service.toLowerCase()}`, { ...lambda('Throttles', service), ...lasting }],
        [`front-door-errors-${service.toLowerCase()}`, { ...lambda('Url5xxCount', service), ...lasting }],
      ]),
    );
  const days = (stack: string, threshold: number) => ({
    'ca-days-left': {
      Namespace: `Countersign/${stack}`,
      MetricName: 'CaDaysLeft',
      Statistic: 'Minimum',
      Period: 21_600,
      Threshold: threshold,
      EvaluationPeriods: 4,
      DatapointsToAlarm: 4,
      ComparisonOperator: 'LessThanThreshold',
      TreatMissingData: 'missing',
    },
  });
  const expected: Readonly<Record<string, object>> = {
    api: { ...ofLog('api', 44), ...errors('Sign', 'Authorizer', 'Ca'), ...days('api', 33) },
    url: { ...ofLog('url', 20), ...errors('Sign', 'Ca'), ...urls('Sign'), ...days('url', 90) },
    tokens: { ...ofLog('tokens', 20), ...errors('Sign', 'Authorizer', 'Ca'), ...days('tokens', 90) },
    proof: {
      ...ofLog('proof', 20),
      retirement: {
        Namespace: 'Countersign/proof',
        MetricName: 'RetirementFailures',
        ...counting,
        ...thresholds.retirement,
      },
      ...errors('Sign', 'Attest', 'Authorizer', 'Ca'),
      ...days('proof', 90),
    },
    first: {
      ...ofLog('first', 20),
      ...errors('Sign', 'Attest', 'Ca'),
      ...urls('Sign', 'Attest'),
      ...days('first', 90),
    },
  };
  for (const [stack, alarms] of Object.entries(expected)) {
    const made = Object.fromEntries(alarmsOf(stack).map((alarm) => [shortName(stack, alarm), alarm]));
    expect(Object.keys(made)).toEqual(Object.keys(alarms));
    expect(made).toMatchObject(alarms);
  }
});

// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
test('names and descriptions are as long as CloudWatch takes them', () => {
  for (const stack of ['api', 'url', 'tokens', 'proof', 'first'])
    for (const { AlarmName, AlarmDescription } of alarmsOf(stack)) {
      expect(String(AlarmName).length).toBeLessThanOrEqual(255 - 40);
      expect(String(AlarmDescription).length).toBeLessThanOrEqual(1_024 - 40);
    }
});

test('alarms and their ends are told to the topics of the file', () => {
  const topics = ['arn:aws:sns:eu-central-1:111122223333:alerts'];
  for (const alarm of alarmsOf('api')) expect(alarm).toMatchObject({ AlarmActions: topics, OKActions: topics });
  for (const alarm of alarmsOf('url')) expect(alarm).not.toHaveProperty('AlarmActions');
});

/**
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html: a new alarm is in the state
 * INSUFFICIENT_DATA, and an action runs when the state changes. So only an alarm that takes missing data as a breach
 * notifies at the first deployment.
 */
test('a first deployment, before any data, notifies of no trouble; later, missing days do', () => {
  for (const stack of ['api', 'url', 'tokens', 'proof', 'first'])
    for (const alarm of alarmsOf(stack)) {
      const days = shortName(stack, alarm) === 'ca-days-left';
      expect(alarm['TreatMissingData']).toBe(days ? 'missing' : 'notBreaching');
      expect(alarm['InsufficientDataActions']).toEqual(days && stack === 'api' ? alarm['AlarmActions'] : undefined);
    }
});

describe('the runbook', () => {
  test('has a section for every alarm and every trouble, and for nothing else', () => {
    const linked = [...synthesis.templates.keys()].flatMap((stack) =>
      alarmsOf(stack.replace(/^countersign-/, '')).map(sectionOf),
    );
    // Counted by `interruptions` with an HTTP API, and linked from there.
    expect([...sections.keys()].sort()).toEqual([...new Set([...linked.map(String), ...troubles])].sort());
  });

  test.each([...sections])('%s describes, investigates and resolves', (_, text) => {
    const parts = [...text.matchAll(/\*\*(Description|Investigation|Resolution)\.\*\*/g)].map(([, part]) => part);
    expect(parts).toEqual(['Description', 'Investigation', 'Resolution']);
  });
});

test('docs/signing-api.md tells when each code is given', () => {
  const api = readFileSync(join(root, 'docs/signing-api.md'), 'utf8');
  const table = api.slice(api.indexOf('## Refusal codes'));
  const told = [...table.matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, names = '']) =>
    names.replaceAll('`', '').split(', '),
  );
  expect(told).toEqual([...refusalCodes]);
});
