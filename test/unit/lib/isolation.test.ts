/** Clusters share code and a file, and nothing that lives in AWS. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AwsSolutionsChecks } from 'cdk-nag';
import { Stack } from 'aws-cdk-lib';
import { Effect, Policy, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Bucket } from 'aws-cdk-lib/aws-s3';
import { describe, expect, test } from 'vitest';
import { createApplication } from '../../../lib/application.ts';
import { clusters, clustersNamed } from './clusters.ts';
import { configuration, ofType, plain, root, smallSources, statementsOf, synthesise } from './synthesis.ts';
import type { Statement, Synthesis } from './synthesis.ts';

const synthesis = synthesise(clusters);
const names = ['api', 'url', 'tokens', 'proof', 'first', 'metal'];
const ownerOf = (stack: string): string => /^countersign-(.+?)(-state)?$/.exec(stack)?.[1] ?? '';

/** Every object in a tree of JSON. */
function* objects(node: unknown): Generator<Readonly<Record<string, unknown>>> {
  if (typeof node !== 'object' || node === null) return;
  if (!Array.isArray(node)) yield node as Readonly<Record<string, unknown>>;
  for (const child of Object.values(node)) yield* objects(child);
}

test('each cluster is two stacks, the service after its own state', () => {
  const { artifacts } = synthesis.manifest;
  const stacks = Object.entries(artifacts).filter(([, { type }]) => type === 'aws:cloudformation:stack');
  expect(stacks.map(([name]) => name)).toEqual(
    names.flatMap((name) => [`countersign-${name}-state`, `countersign-${name}`]),
  );
  for (const [name, { dependencies = [] }] of stacks)
    expect(dependencies.filter((other) => !other.endsWith('.assets'))).toEqual(
      name.endsWith('-state') ? [] : [`${name}-state`],
    );
});

test('a service imports from its own state only, and no stack imports from a service', () => {
  const exports = new Set<string>();
  for (const [stack, { Outputs: outputs = {} }] of synthesis.templates)
    for (const { Export } of Object.values(outputs))
      if (Export !== undefined) {
        expect(stack).toMatch(/-state$/);
        expect(Export.Name.startsWith(`${stack}:`)).toBe(true);
        exports.add(Export.Name);
      }
  let imports = 0;
  for (const [stack, of] of synthesis.templates)
    for (const node of objects(of))
      if ('Fn::ImportValue' in node) {
        imports++;
        expect(node['Fn::ImportValue']).toEqual(expect.stringMatching(new RegExp(`^${stack}-state:`)));
        expect(exports.has(String(node['Fn::ImportValue']))).toBe(true);
      }
  expect(imports).toBeGreaterThan(20);
  expect([...synthesis.texts.values()].join('\n')).not.toMatch(/Fn::GetStackOutput|AWS::SSM::Parameter"/);
});

/** CloudFormation refuses to remove an export that another stack imports: docs/runbook.md (ca-days-left), docs/configuration.md. */
describe('a CA that is taken out of the file', () => {
  const before = synthesise(clustersNamed('api'));
  const after = synthesise(clustersNamed('api').replace(/^ {6}web: .*\n/m, ''));
  const imports = (of: Synthesis): string[] =>
    [...objects(of.templates.get('countersign-api'))].flatMap((node) =>
      'Fn::ImportValue' in node ? [String(node['Fn::ImportValue'])] : [],
    );
  const exports = ({ templates }: Synthesis): string[] =>
    Object.values(templates.get('countersign-api-state')?.Outputs ?? {}).flatMap(({ Export: of }) => of?.Name ?? []);

  test('the state cannot go first: the service that is deployed imports what it would lose', () => {
    const lost = exports(before).filter((name) => !exports(after).includes(name));
    expect(lost).toEqual([expect.stringContaining('CaKeyweb')]);
    expect(imports(before)).toEqual(expect.arrayContaining(lost));
  });

  test('the service can: the state that is deployed exports all that it imports then', () => {
    expect(imports(after).filter((name) => !exports(before).includes(name))).toEqual([]);
  });

  test.each(['runbook.md', 'configuration.md'])('%s has that order, without the dependency', (page) => {
    const text = readFileSync(join(root, 'docs', page), 'utf8').replaceAll(/\s+/g, ' ');
    expect(text).toMatch(/deploy countersign-<name> --exclusively`( first)?, then `countersign-<name>-state`/);
  });
});

test('no template names another cluster', () => {
  for (const [stack, text] of synthesis.texts)
    for (const other of names.filter((name) => name !== ownerOf(stack)))
      // Names stand between marks: `countersign-url-…`, `/clusters/url/`, `countersign-url-state:`.
      expect(text).not.toMatch(
        new RegExp(`countersign-${other}[-":/]|/${other}[/"]|"${other}[":]|cluster ${other}\\b`),
      );
});

test('no two clusters have the same code: each holds its own rules', () => {
  const keys = [...synthesis.templates].flatMap(([, of]) =>
    ofType(of, 'AWS::Lambda::Function').map(([, { Properties }]) => (Properties['Code'] as { S3Key: unknown }).S3Key),
  );
  const code = (stack: string): unknown[] =>
    ofType(synthesis.templates.get(`countersign-${stack}`)!, 'AWS::Lambda::Function').map(
      ([, { Properties }]) => (Properties['Code'] as { S3Key: unknown }).S3Key,
    );
  expect(keys.length).toBe(18);
  expect(code('api').filter((key) => code('tokens').includes(key) || code('url').includes(key))).toEqual([]);
});

const policies = [...synthesis.templates].flatMap(([stack, of]) =>
  ['AWS::IAM::Policy', 'AWS::IAM::ManagedPolicy']
    .flatMap((type) => ofType(of, type))
    .map(([id, policy]) => ({ stack, id, statements: statementsOf(policy) })),
);

describe('what statements are about', () => {
  /** Of this stack, of its own state, or an API made of a Ref of this stack. */
  const own = (stack: string) =>
    new RegExp(
      `^(${stack}-state<\\w+\\.Arn>(?:/index/(?:serial|expiry))?|<\\w+\\.Arn>|arn:[^:]+:execute-api:[^:]+:[^:]+:<\\w+>/\\$default/(GET|POST)/v1/clusters/${ownerOf(stack)}/[a-z/-]+)$`,
    );
  /** What no stack owns: instances, whose description IAM allows for all or none, and the roles that the file names. */
  const foreign: Readonly<Record<string, (statement: Statement, stack: string) => void>> = {
    LookAtInstances: ({ Action, Resource, Condition }) =>
      expect([Action, Resource, Condition]).toEqual([
        'ec2:DescribeInstances',
        '*',
        { StringEquals: { 'aws:RequestedRegion': ['eu-central-1', 'eu-west-1'] } },
      ]),
    FindRegister: ({ Action, Resource }, stack) => {
      expect(Action).toBe('cloudformation:DescribeStacks');
      expect(Resource).toMatch(new RegExp(`^arn:[^ ]+:cloudformation:[^ ]+:stack/${stack}/\\*$`));
    },
    LookElsewhere: ({ Action, Resource }) =>
      expect([Action, Resource]).toEqual([
        'sts:AssumeRole',
        ['arn:aws:iam::444455556666:role/look', 'arn:aws:iam::777788889999:role/look'],
      ]),
  };

  test.each(policies)('$stack $id: only resources of its own cluster, by name', ({ stack, statements }) => {
    for (const statement of statements) {
      const shown = plain(statement, synthesis) as Statement & Record<string, unknown>;
      const { Sid = '', Effect, Action, Resource, ...rest } = shown;
      // test/unit/lib/state-stack.test.ts has its words.
      if (Effect === 'Deny' && Sid === 'OnlyInItsFunction') continue;
      expect(Effect).toBe('Allow');
      expect([Action].flat().filter((action) => action.includes('*'))).toEqual([]);
      for (const field of ['NotAction', 'NotResource', 'Principal', 'NotPrincipal'])
        expect(rest).not.toHaveProperty(field);
      const exception = foreign[Sid];
      if (exception !== undefined) {
        exception(shown, stack);
        continue;
      }
      const resources = [Resource].flat();
      expect(resources.length).toBeGreaterThan(0);
      for (const resource of resources) expect(resource).toEqual(expect.stringMatching(own(stack)));
    }
  });

  test('keys are used by roles of their own stack', () => {
    for (const [stack, of] of synthesis.templates)
      for (const [, key] of ofType(of, 'AWS::KMS::Key')) {
        expect(stack).toMatch(/-state$/);
        for (const { Sid, Principal } of plain(statementsOf(key, 'KeyPolicy'), synthesis) as Statement[])
          if (Sid !== 'Administration' && Sid !== 'Deletion' && Sid !== 'NoOtherDeletion')
            expect(
              [(Principal as { AWS: string | string[] }).AWS]
                .flat()
                .filter(
                  (arn) => !(Sid === 'MakeChallenges' ? /^<AttestRole\.Arn>$/ : /^<(Sign|Ca)Role\.Arn>$/).test(arn),
                ),
            ).toEqual([]);
      }
  });
});

test('nothing in a template leads the functions to another endpoint', () => {
  for (const text of synthesis.texts.values())
    expect(text).not.toMatch(/ENDPOINT_URL|AWS_ENDPOINT|NODE_OPTIONS|NODE_TLS/);
});

/** CloudFormation turns anything else into question marks. */
test('templates are ASCII', () => {
  for (const text of synthesis.texts.values()) expect(/[^\n\x20-\x7e]/.exec(text)).toBeNull();
});

describe('cdk-nag, AwsSolutions', () => {
  test('finds nothing, and nothing is kept from it but what IAM cannot say more narrowly', () => {
    expect(synthesis.validation.pluginReports).toEqual([]);
    for (const text of synthesis.texts.values()) expect(text).not.toContain('rules_to_suppress');
    const reason =
      'ec2:DescribeInstances can be granted on all instances only; it is narrowed to the configured regions';
    const stackReason =
      'CloudFormation ends the ARN of a stack in an identifier of its own making; its name stands before it';
    const finds = (place: string, cluster: string) => ({
      [`Annotation::AwsSolutions-IAM5[Resource::arn:${place}:stack/countersign-${cluster}/*]`]: stackReason,
    });
    const looks = { 'Annotation::AwsSolutions-IAM5[Resource::*]': reason };
    expect(synthesis.acknowledged).toEqual(
      [
        {
          path: 'countersign-api/Default/OperatorPolicy',
          rules: finds('aws:cloudformation:eu-central-1:111122223333', 'api'),
        },
        ...['url', 'tokens'].map((name) => ({
          path: `countersign-${name}/Default/OperatorPolicy`,
          rules: finds('<AWS::Partition>:cloudformation:<AWS::Region>:<AWS::AccountId>', name),
        })),
        { path: 'countersign-proof/Default/AttestPolicy', rules: looks },
        { path: 'countersign-proof/Default/OperatorPolicy', rules: looks },
        {
          path: 'countersign-proof/Default/OperatorPolicy',
          rules: finds('aws:cloudformation:eu-central-1:111122223333', 'proof'),
        },
        {
          path: 'countersign-first/Default/OperatorPolicy',
          rules: finds('<AWS::Partition>:cloudformation:<AWS::Region>:<AWS::AccountId>', 'first'),
        },
        {
          path: 'countersign-metal/Default/OperatorPolicy',
          rules: finds('aws:cloudformation:eu-central-1:111122223333', 'metal'),
        },
      ].map(({ path, rules }) => `${path}: ${JSON.stringify(rules)}`),
    );
    // Of each of the two it is the one statement that the test above looks at.
    for (const { statements } of policies)
      expect(
        statements.filter(({ Effect, Resource }) => Effect === 'Allow' && Resource === '*').map(({ Sid }) => Sid),
      ).toEqual(statements.some(({ Sid }) => Sid === 'LookAtInstances') ? ['LookAtInstances'] : []);
  });

  test('would find it', () => {
    const app = createApplication({ configuration: configuration(clustersNamed('api')), sources: smallSources });
    const stack = Stack.of(app.node.findChild('countersign-api'));
    void new Bucket(stack, 'Planted');
    void new Policy(stack, 'PlantedPolicy', {
      roles: [new Role(stack, 'PlantedRole', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') })],
      statements: [new PolicyStatement({ effect: Effect.ALLOW, actions: ['kms:*'], resources: ['*'] })],
    });
    const { violations } = new AwsSolutionsChecks(app).validateScope(app);
    expect(violations.map(({ ruleName }) => ruleName).sort()).toEqual([
      'AwsSolutions-IAM5[Action::kms:*]',
      'AwsSolutions-IAM5[Resource::*]',
      'AwsSolutions-S1',
      'AwsSolutions-S10',
    ]);
    // And what finds it is part of every synthesis, which then gives no templates to deploy.
    expect(() => app.synth()).toThrow('AwsSolutions-S10');
  });
});
