/** No statement of the templates without a test on MiniStack that fails without it, or a written reason why there is none. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import * as tables from '../../suites/aws/permissions/tables.ts';
import { inTables, permissionsNamed } from '../../suites/aws/permissions/names.ts';
import { clusters } from './clusters.ts';
import { configuration, root, synthesise } from './synthesis.ts';

const relay = 'arn:aws:iam::444455556666:role/relay';
const primary = 'arn:aws:kms:eu-west-1:111122223333:key/mrk-0123456789abcdef0123456789abcdef';
const certificate = 'arn:aws:acm:eu-central-1:111122223333:certificate/c-1';
/** Beside `clusters`: what else a file can say that could add a statement. */
const more = `
  many:
    cas: {a: {subject: {commonName: a}, multiRegion: true}, b: {subject: {commonName: b}, replicaOf: '${primary}'}}
    profiles: {kubernetes.io/kubelet-serving: {ca: a, freshKeys: true}}
    access: {iam: {principals: ['${relay}'], domain: {name: a.example.com, certificate: '${certificate}'}}}
    limits: {reservedConcurrency: none}
    dashboard: true
    keys: {administrators: ['arn:aws:iam::111122223333:user/admin'], deleters: ['arn:aws:iam::111122223333:user/custodian']}
    aws: {account: '111122223333', region: eu-central-1}
  moved:
    cas: {a: {kind: imported, keyMaterial: imported, subject: {commonName: kubernetes}}}
    profiles: {kubernetes.io/kubelet-serving: {}}
    access: {iam: {principals: ['${relay}']}}
    keys: {importers: ['arn:aws:iam::111122223333:role/mover']}
  account:
    cas: {a: {subject: {commonName: a}, multiRegion: true}}
    profiles: {kubernetes.io/kubelet-serving: {}}
    access: {iam: {principals: ['${relay}']}}
  plane:
    cas: {a: {subject: {commonName: a}}}
    profiles: {kubernetes.io/kubelet-serving: {}}
    kubeadm: {cas: {kubernetes: a}, nodes: {cp-1: [10.0.0.11]}}
    access: {iam: {principals: ['${relay}']}}
  edge:
    cas: {ca: {subject: {commonName: edge}}}
    profiles: {cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm: {}}
    attestation: {audience: edge, tpm: {machines: listed}}
    access: {iam: {principals: ['${relay}']}}
  nitro:
    cas: {ca: {subject: {commonName: nitro}}}
    profiles: {cluster.x-k8s.io/kube-apiserver-client-kubelet-aws-nitrotpm: {}}
    attestation:
      aws: {accounts: {'111122223333': {}}, regions: [eu-central-1], tags: {a: b}, nodeName: [instanceId]}
    access: {iam: {principals: ['${relay}']}}
    aws: {account: '111122223333', region: eu-central-1}
  audit:
    cas: {ca: {subject: {commonName: audit}}}
    profiles: {kubernetes.io/kubelet-serving: {attestation: {providers: [aws], mode: audit}}}
    attestation:
      audience: audit
      aws: {accounts: {'444455556666': {assumeRole: 'arn:aws:iam::444455556666:role/look'}}, regions: [eu-central-1], tags: {a: b}, nodeName: [instanceId]}
    access: {iam: {principals: ['${relay}']}}
`;
const yaml = `${clusters.trimEnd()}${more}`;
const { templates } = synthesise(yaml);

/** By the names of the tables, with the stacks that have it. */
function named(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { name, cas } of configuration(yaml).clusters.values())
    for (const stack of [`countersign-${name}-state`, `countersign-${name}`])
      for (const permission of permissionsNamed(templates.get(stack)!, { name, cas: [...cas.keys()] }))
        found.set(permission, [...(found.get(permission) ?? []), stack]);
  return found;
}

test('each statement of each stack is left out by a suite, or has its reason', () => {
  expect([...named()].filter(([permission]) => !inTables(permission))).toEqual([]);
});

test('the tables have no line about a statement that no stack has', () => {
  const given = named();
  const lines = tables.permissionTables.flatMap(({ exercised, reviewed }) =>
    [exercised, reviewed].flatMap((each) => Object.keys(each)),
  );
  expect([...new Set(lines)].filter((line) => !given.has(line))).toEqual([]);
});

describe('a suite that leaves statements out', () => {
  const suites = join(root, 'test/suites/aws/permissions');
  const listed = JSON.parse(readFileSync(join(root, 'test/suites.json'), 'utf8')) as { suites: Record<string, object> };
  const byTable = Object.entries(tables).flatMap(([constant, value]) => {
    if (typeof value !== 'object' || Array.isArray(value)) return [];
    const suite = 'suite' in value ? value.suite : [...new Set(Object.values(value).map((each) => each.suite))].join();
    return [[constant, suite] as const];
  });

  test.each(byTable)('reads %s: %s', (constant, suite) => {
    expect(listed.suites).toHaveProperty([`test/suites/aws/permissions/${suite}`]);
    const text = readFileSync(join(suites, suite), 'utf8');
    expect(text.split(constant).length).toBeGreaterThan(2);
  });

  test('has its tables in the list of all', () => {
    const all = new Set(tables.permissionTables.map(({ suite }) => suite));
    expect([...all].toSorted()).toEqual([...new Set(byTable.map(([, suite]) => suite))].toSorted());
  });

  test('exists, where a reason names it', () => {
    const reasons = tables.permissionTables.flatMap(({ reviewed }) => Object.values(reviewed));
    expect(reasons.filter((reason) => reason.split(' ').length < 6)).toEqual([]);
    const files = new Set(reasons.flatMap((reason) => [...reason.matchAll(/[\w-]+\.test\.ts/g)].map(([file]) => file)));
    expect(files.size).toBeGreaterThan(3);
    for (const file of files) expect([file, existsSync(join(suites, file))]).toEqual([file, true]);
  });
});

/** A policy in a place that the tables do not read would be in no table. */
test('every policy of the templates is where its statements are found', () => {
  const places = /^(AWS::IAM::(Role|Policy|ManagedPolicy)|AWS::KMS::(Key|ReplicaKey))$/;
  const fields = new Set(['PolicyDocument', 'KeyPolicy', 'AssumeRolePolicyDocument']);
  const strange: string[] = [];
  const walk = (node: unknown, at: string): void => {
    if (typeof node === 'string' && /"?Effect"?\s*:/.test(node)) strange.push(at);
    if (typeof node !== 'object' || node === null) return;
    if ('Effect' in node && 'Action' in node) strange.push(at);
    for (const [key, child] of Object.entries(node)) walk(child, `${at}.${key}`);
  };
  for (const { Resources: resources } of templates.values())
    for (const [id, { Type: type, Properties: properties = {} }] of Object.entries(resources))
      for (const [field, value] of Object.entries(properties))
        if (!(places.test(type) && fields.has(field))) walk(value, `${id}.${field}`);
  expect(strange).toEqual([]);
  const types = new Set([...templates.values()].flatMap((of) => Object.values(of.Resources).map(({ Type }) => Type)));
  // Beside those and AWS::Lambda::Permission: no type whose properties give rights.
  expect([...types].filter((type) => /Policy$|Permission$|Grant$|AccessEntry$/.test(type)).toSorted()).toEqual([
    'AWS::IAM::ManagedPolicy',
    'AWS::IAM::Policy',
    'AWS::Lambda::Permission',
  ]);
});

test('who may revoke is none of the roles that sign, and may not sign', () => {
  interface Statement {
    readonly Effect: string;
    readonly Action: string | readonly string[];
    readonly Condition?: unknown;
  }
  const writes = new Set(['dynamodb:PutItem', 'dynamodb:UpdateItem', 'dynamodb:DeleteItem']);
  const uses: string[] = [];
  for (const template of templates.values())
    for (const [id, { Properties: properties }] of Object.entries(template.Resources)) {
      const document = properties['PolicyDocument'] as { readonly Statement: readonly Statement[] } | undefined;
      const allowed = (document?.Statement ?? []).filter(({ Effect }) => Effect === 'Allow');
      const actionsOf = ({ Action }: Statement) => [Action].flat();
      const revokes = allowed.flatMap((statement) =>
        JSON.stringify(statement.Condition ?? '').includes('revoked#')
          ? actionsOf(statement).filter((each) => writes.has(each))
          : [],
      );
      if (revokes.length === 0) continue;
      uses.push(`${id.replace(/[0-9A-F]{8}$/, '')} ${revokes.join(' ')}`);
      const others = allowed.flatMap(actionsOf).filter((action) => /^(kms|lambda):/.test(action));
      expect([id, others]).toEqual([id, []]);
    }
  // No role of a function: a policy of its own, which operators attach. A revocation is added, and neither changed nor deleted.
  expect([...new Set(uses)]).toEqual(['OperatorPolicy dynamodb:PutItem']);
});
