/** The constructs in an app of a user: what they make, what they refuse, what they grant, count and document. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { App, Aws, Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template as CdkTemplate } from 'aws-cdk-lib/assertions';
import { AccountPrincipal, Role } from 'aws-cdk-lib/aws-iam';
import { format, resolveConfig } from 'prettier';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { logEntry } from '../../../adapters/lambda/log.ts';
import type { CallLogEntry } from '../../../adapters/lambda/log.ts';
import { checkCluster } from '../../../core/configuration/parse.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';
import { featureFlags } from '../../../lib/application.ts';
import { clusterOfFile, SigningCluster, SigningState } from '../../../lib/constructs.ts';
import type { ClusterProps } from '../../../lib/constructs.ts';
import { apiReference } from '../../../lib/props/api-reference.ts';
import { propsFiles } from '../../../lib/props/props-text.ts';
import { clusters, clustersNamed } from './clusters.ts';
import { matches } from './filter-pattern.ts';
import {
  configuration,
  ofType,
  plain,
  resource,
  root,
  smallSources,
  statementsOf,
  synthesise,
  template,
} from './synthesis.ts';
import type { Synthesis, Template } from './synthesis.ts';

const env = { account: '111122223333', region: 'eu-central-1' };
const relay = 'arn:aws:iam::444455556666:role/relay';

const small: ClusterProps = {
  name: 'prod',
  cas: { ca: { subject: { commonName: 'CA' } } },
  profiles: { 'kubernetes.io/kubelet-serving': {} },
  access: { iam: { principals: [relay] } },
};

interface Site {
  readonly stateStack: Stack;
  readonly stack: Stack;
  readonly state: SigningState;
  readonly signer: SigningCluster;
}

/** The opposite of those of npm run cdk. */
const otherFlags = Object.fromEntries(
  Object.entries(featureFlags).flatMap(([flag, value]) => (typeof value === 'boolean' ? [[flag, !value]] : [])),
);

function deployed(cluster: ClusterProps = small, ids = { state: 'State', signer: 'Signer' }, flags: object = {}): Site {
  const app = new App({ context: { ...flags } });
  const tags = { 'countersign:cluster': cluster.name };
  const stateStack = new Stack(app, `countersign-${cluster.name}-state`, { env, tags, terminationProtection: true });
  const stack = new Stack(app, `countersign-${cluster.name}`, { env, tags });
  const state = new SigningState(stateStack, ids.state, { cluster });
  const signer = new SigningCluster(stack, ids.signer, { state, sources: smallSources });
  return { stateStack, stack, state, signer };
}

const templateOf = (stack: Stack): Template => CdkTemplate.fromStack(stack).toJSON() as unknown as Template;

/** The clusters of a countersign.yaml as properties: what they have in common with the file is all but the syntax. */
function propsOf(yaml: string): ClusterProps[] {
  const { clusters: written } = parse(yaml) as { clusters: Record<string, Omit<ClusterProps, 'name'>> };
  return Object.entries(written).map(([name, props]) => ({ name, ...props }));
}

describe('in an app of a user', () => {
  test.each([
    ['proof', 'with the opposite of all feature flags', otherFlags],
    ['api', 'without feature flags', {}],
  ])('cluster %s is the one that npm run cdk deploys, %s', (name, _, flags) => {
    const yaml = clustersNamed(name);
    const ours = synthesise(yaml);
    const { stateStack, stack } = deployed(propsOf(yaml)[0], { state: 'Default', signer: 'Default' }, flags);
    const theirs = {
      ...ours,
      templates: new Map([stateStack, stack].map((each) => [each.stackName, templateOf(each)])),
    };
    // Flags that CDK reads from the stack decide the form: whether the partition is a literal, the order of actions.
    const shown = (of: Synthesis, stackName: string): unknown =>
      JSON.parse(
        JSON.stringify(plain(template(of, stackName).Resources, of)).replaceAll('<AWS::Partition>', 'aws'),
        (_, value: unknown) => (Array.isArray(value) ? value.map((each) => JSON.stringify(each)).sort() : value),
      );
    for (const { stackName } of [stateStack, stack]) expect(shown(theirs, stackName)).toEqual(shown(ours, stackName));
    expect(ofType(template(theirs, stateStack.stackName), 'AWS::KMS::Key').length).toBeGreaterThan(0);
  });

  test('one account can have several clusters, each with IDs of its own', () => {
    const { stack, stateStack } = deployed();
    const state = new SigningState(stateStack, 'Other', { cluster: { ...small, name: 'other' } });
    void new SigningCluster(stack, 'OtherSigner', { state, sources: smallSources });
    expect(ofType(templateOf(stateStack), 'AWS::KMS::Key')).toHaveLength(2);
  });

  test('state and service are in two stacks, and the state is protected', () => {
    const stack = new Stack(new App(), 'both', { env });
    const state = new SigningState(stack, 'State', { cluster: small });
    expect(() => new SigningCluster(stack, 'Signer', { state, sources: smallSources })).toThrow('in the same stack');
    Annotations.fromStack(stack).hasWarning('/both/State', Match.stringLikeRegexp('no terminationProtection'));
    const { stateStack } = deployed();
    expect(Annotations.fromStack(stateStack).findWarning('*', Match.anyValue())).toEqual([]);
  });
});

/** CloudFormation would make new keys and tables. */
test('the logical IDs of what must not be lost stay as they are', () => {
  const state = template(synthesise(clustersNamed('api', 'proof')), 'countersign-api-state');
  expect(Object.keys(state.Resources).sort()).toEqual([
    'Attestations800FF9F5',
    'CaKeynodesE52C13BF',
    'CaKeyweb94E4AE4B',
    'CaOnlyInItsFunction995BC2B4',
    'CaRole37729EC1',
    'Certificates2374895F',
    'SignOnlyInItsFunctionE2057FBD',
    'SignRoleF70C5B8B',
  ]);
});

describe('the properties', () => {
  test('mean what the same keys of a countersign.yaml mean', () => {
    const example = readFileSync(join(root, 'examples/cdk/countersign.yaml'), 'utf8');
    for (const yaml of [clusters, example])
      for (const { name, ...props } of propsOf(yaml)) {
        const checked = checkCluster(name, props);
        const { clusters: parsed, deployments } = configuration(yaml);
        expect(checked).toMatchObject({
          ok: true,
          value: { cluster: parsed.get(name), deployment: deployments.get(name) },
        });
      }
  });

  const failing = (change: object, at = env): string => {
    const stack = new Stack(new App(), 'stack', { env: at });
    const cluster = { ...small, ...change };
    try {
      void new SigningState(stack, 'State', { cluster });
    } catch (error) {
      return errorMessage(error);
    }
    throw new Error('it was accepted');
  };
  const profile = 'kubernetes.io/kubelet-serving';

  test.each([
    [{ front: 'httpApi' }, 'cluster prod: front: unknown key "front"'],
    [{ frontdoor: 'httpApi' }, 'cluster prod: frontdoor: unknown key "frontdoor"; did you mean "frontDoor"?'],
    [{ cas: { ca: { subject: {} } } }, 'cluster prod: cas.ca.subject.commonName: is required'],
    [{ profiles: { [profile]: { ca: 'gone' } } }, `cluster prod: profiles["${profile}"].ca: no CA of this cluster has`],
    [{ profiles: { [profile]: { maxTtl: '1y' } } }, `cluster prod: profiles["${profile}"].maxTtl: must be a duration`],
    [{ access: {} }, 'cluster prod: access: is required to deploy'],
    [{ name: 'Prod' }, 'cluster Prod: name: must be a DNS label'],
    [{ name: 'p'.repeat(41) }, `cluster ${'p'.repeat(41)}: name: must be at most 40 characters`],
    [{ aws: { region: 'eu-west-1' } }, 'cluster prod: aws.region: is eu-west-1, but stack stack is in eu-central-1'],
    [
      { access: { iam: { principals: [Aws.ACCOUNT_ID] } } },
      'cluster prod: access.iam.principals[0]: is known only at deployment (a CDK token)',
    ],
  ])('%j: the error names the property', (change, message) => {
    expect(failing(change)).toContain(message);
  });

  test('all problems are reported at once', () => {
    expect(failing({ access: {}, profiles: { [profile]: { maxTtl: '5s' } } }).split('\n')).toEqual([
      `cluster prod: profiles["${profile}"].maxTtl: must be at least 60s`,
      'cluster prod: access: is required to deploy: name callers under access.iam or access.jwt',
    ]);
  });

  test('a place that the stack does not have is refused', () => {
    const stack = new Stack(new App(), 'anywhere');
    const cluster = { ...small, aws: { account: '111122223333' } };
    expect(() => new SigningState(stack, 'State', { cluster })).toThrow(
      'cluster prod: aws.account: is 111122223333, but stack anywhere is in no fixed account: give it env.account',
    );
  });

  test('undefined is the default, the place is that of the stack, and warnings are annotations', () => {
    const stack = new Stack(new App(), 'stack', { env, terminationProtection: true });
    const given = {
      ...small,
      limits: undefined,
      access: { iam: { principals: [`${relay}-NodeRole`] }, jwt: undefined },
    };
    const { parsed } = new SigningState(stack, 'State', { cluster: given as unknown as ClusterProps });
    expect(parsed.deployment).toMatchObject({ ...env, limits: { reservedConcurrency: 40 } });
    Annotations.fromStack(stack).hasWarning(
      '/stack/State',
      Match.stringLikeRegexp('access.iam.principals\\[0\\]: has the name of a role of nodes'),
    );
  });

  test('a cluster of a file is one of its clusters', () => {
    const file = join(root, 'examples/cdk/countersign.yaml');
    expect(clusterOfFile(file, 'prod').cluster.name).toBe('prod');
    expect(() => clusterOfFile(file, 'staging')).toThrow(`${file} has no cluster staging (it has prod)`);
    const broken = join(root, 'package.json');
    expect(() => clusterOfFile(broken, 'prod')).toThrow(/package\.json:\d+:\d+: /);
  });
});

describe('grants', () => {
  const rights = ({ stack }: Site) =>
    statementsOf(resource(templateOf(stack), 'AWS::IAM::Policy', 'PersonDefaultPolicy')[1]);
  const person = ({ stack }: Site): Role => new Role(stack, 'Person', { assumedBy: new AccountPrincipal(env.account) });
  const one = (made: Site): Synthesis => ({
    ...synthesise(clustersNamed('api')),
    templates: new Map([made.stateStack, made.stack].map((each) => [each.stackName, templateOf(each)])),
  });

  test('grantCall: to assume the caller role, whose trust stays as the configuration says', () => {
    const made = deployed();
    made.signer.grantCall(person(made));
    expect(plain(rights(made), one(made))).toEqual([
      { Effect: 'Allow', Action: 'sts:AssumeRole', Resource: '<SignerCallerRole.Arn>' },
    ]);
    const [, { Properties: role }] = resource(templateOf(made.stack), 'AWS::IAM::Role', 'SignerCallerRole');
    expect(JSON.stringify(role['AssumeRolePolicyDocument'])).not.toContain('Person');
  });

  test('grantCall without callers by IAM names the property', () => {
    const access = propsOf(clustersNamed('tokens'))[0]?.access ?? {};
    const made = deployed({ ...small, access });
    expect(() => made.signer.grantCall(person(made))).toThrow('cluster prod: access.iam: is not given');
  });

  test('grantOperate: the rights of the operator policy, no more and no fewer', () => {
    const made = deployed();
    made.signer.grantOperate(person(made));
    const [, policy] = resource(templateOf(made.stack), 'AWS::IAM::ManagedPolicy', 'SignerOperatorPolicy');
    const granted = rights(made);
    expect(granted.length).toBeGreaterThan(4);
    expect(statementsOf(policy)).toEqual(
      granted.map((statement) => ({ ...statement, Sid: expect.any(String) as unknown })),
    );
  });

  test('grantCa: to invoke the ca function', () => {
    const made = deployed();
    made.signer.grantCa(person(made));
    expect(plain(rights(made), one(made))).toEqual([
      { Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: ['<SignerCa.Arn>', '<SignerCa.Arn>:*'] },
    ]);
  });

  test('in another account: the caller role by its name', () => {
    const stack = new Stack(new App(), 'relay', { env });
    const role = new Role(stack, 'Person', { assumedBy: new AccountPrincipal(env.account) });
    SigningCluster.callerRoleOf(stack, 'Caller', '999900001111', 'prod').grantAssumeRole(role);
    const [, policy] = resource(templateOf(stack), 'AWS::IAM::Policy');
    const [, { Properties: own }] = resource(templateOf(deployed().stack), 'AWS::IAM::Role', 'SignerCallerRole');
    const [statement] = statementsOf(policy);
    expect(JSON.stringify(statement?.Resource)).toContain(`:iam::999900001111:role/${String(own['RoleName'])}"`);
  });
});

describe('metrics', () => {
  const metrics = {
    metricIssued: 'Issued',
    metricRefused: 'Refused',
    metricUnexpectedRefusals: 'UnexpectedRefusals',
    metricFaults: 'Faults',
    metricInterruptions: 'Interruptions',
    metricCaDaysLeft: 'CaDaysLeft',
  } as const;
  const filters = (stack: Stack) =>
    ofType(templateOf(stack), 'AWS::Logs::MetricFilter').map(([, { Properties }]) => ({
      pattern: String(Properties['FilterPattern']),
      ...(Properties['MetricTransformations'] as readonly { MetricName: string; MetricNamespace: string }[])[0],
    }));

  test.each(Object.entries(metrics))('%s is what a filter of the cluster counts', (method, name) => {
    const { signer, stack } = deployed();
    const metric = signer[method as keyof typeof metrics]({ label: 'mine' });
    expect(metric).toMatchObject({ namespace: 'Countersign/prod', metricName: name, label: 'mine' });
    expect(filters(stack)).toContainEqual(
      expect.objectContaining({ MetricNamespace: metric.namespace, MetricName: name }),
    );
  });

  test('filters that cost money are made on demand, once', () => {
    const { signer, stack } = deployed();
    for (const _ of [1, 2]) {
      signer.metricIssued();
      signer.metricRefused();
    }
    const bought = filters(stack).filter(({ MetricName = '' }) => ['Issued', 'Refused'].includes(MetricName));
    expect(bought).toHaveLength(2);
    expect(filters(deployed().stack).some(({ MetricName }) => MetricName === 'Issued')).toBe(false);
  });

  test('they count the lines that the functions log', () => {
    const { signer, stack } = deployed();
    signer.metricIssued();
    signer.metricRefused();
    const patternOf = (name: string) => filters(stack).find(({ MetricName }) => MetricName === name)?.pattern ?? '';
    const line = (outcome: string, more: Partial<CallLogEntry>) =>
      JSON.stringify(logEntry({ statusCode: 200, headers: { 'x-countersign-outcome': outcome }, body: '' }, 1, more));
    const lines = {
      issued: line('issued', { serial: '1', repeat: false }),
      again: line('issued', { serial: '1', repeat: true }),
      refused: line('refused', { codes: ['KeyNotPermitted'] }),
      busy: line('busy', { why: 'InProgress' }),
    };
    const counted = (name: string) =>
      Object.entries(lines).flatMap(([kind, text]) => (matches(patternOf(name), text) ? [kind] : []));
    expect(counted('Issued')).toEqual(['issued']);
    expect(counted('Refused')).toEqual(['refused']);
  });
});

/** `npm run api` writes both. */
describe('what is written from the sources is current', () => {
  test.each([...propsFiles()])('lib/props/%s', async (name, text) => {
    const options = await resolveConfig(join(root, 'package.json'));
    const formatted = await format(text, { ...options, parser: 'typescript' });
    expect(readFileSync(join(root, 'lib/props', name), 'utf8')).toBe(formatted);
  });

  test('every interface of the properties is exported', () => {
    const declared = [...propsFiles().values()].flatMap((text) => [...text.matchAll(/^export \w+ (\w+)/gm)]);
    const exported = new Set(readFileSync(join(root, 'lib/constructs.ts'), 'utf8').match(/\w+/g));
    expect(declared.map(([, name = '']) => name).filter((name) => !exported.has(name))).toEqual([]);
  });

  test('docs/constructs.md ends with the reference', () => {
    const page = readFileSync(join(root, 'docs/constructs.md'), 'utf8');
    expect(page.split('\n## Reference\n')[1]?.trim()).toBe(apiReference(join(root, 'lib/constructs.ts')).trim());
  });

  test('the reference has every export, every public member and every default', () => {
    const reference = apiReference(join(root, 'lib/constructs.ts'));
    for (const text of ['### SigningCluster\n', '`metricIssued(', '| `caKeys` |', '### ThrottleProps', '| 40 |'])
      expect(reference).toContain(text);
    expect(reference).not.toContain('signRole');
    expect(reference).not.toMatch(/\| {2}\|/);
  });
});
