import { describe, expect, test } from 'vitest';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';
import type { ParsedConfiguration } from '../../../../../core/configuration/parse.ts';
import { partitionOf } from '../../../../../core/attestation/aws/partition.ts';
import { stackNames } from '../../../../../core/configuration/resolve/deployment.ts';
import type { DeploymentConfiguration } from '../../../../../core/configuration/model/deployment.ts';

const role = 'arn:aws:iam::111122223333:role/relay';

/** `demo` with what the test is about, in front of `more` clusters. */
function file(deployment: string, { name = 'demo', cas = 'ca: {subject: {commonName: CA}}', more = '' } = {}): string {
  return `version: 1
clusters:
  ${name}:
    cas: {${cas}}
    profiles: {kubernetes.io/kubelet-serving: {ca: ca}}
${deployment
  .split('\n')
  .map((line) => `    ${line}`)
  .join('\n')}
${more}`;
}

const parse = (text: string): ParsedConfiguration => parseConfiguration(text, 'countersign.yaml', { toDeploy: true });

function deployment(text: string, options?: Parameters<typeof file>[1]): DeploymentConfiguration {
  const parsed = parse(file(text, options));
  if (!parsed.ok) throw new Error(parsed.problem.map(({ path, message }) => `${path}: ${message}`).join('\n'));
  const found = parsed.value.configuration.deployments.get(options?.name ?? 'demo');
  if (found === undefined) throw new Error('no deployment');
  return found;
}

function problems(text: string): string[] {
  const parsed = parse(text);
  return parsed.ok ? [] : parsed.problem.map(({ line, path, message }) => `${line} ${path}: ${message}`);
}

function warnings(text: string): string[] {
  const parsed = parse(text);
  if (!parsed.ok) throw new Error(parsed.problem.map(({ message }) => message).join());
  return parsed.value.warnings.map(({ line, path, message }) => `${line} ${path}: ${message}`);
}

const certificate = 'arn:aws:acm:eu-central-1:111122223333:certificate/0a1b-2c';
const key = '{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}';

describe('what holds', () => {
  test('every default is filled in', () => {
    expect(deployment(`access: {iam: {principals: ['${role}']}}`)).toEqual({
      frontDoor: 'httpApi',
      access: { iam: { principals: [role] } },
      limits: { reservedConcurrency: 40, throttle: { rate: 200, burst: 400 }, inFlightPerRequester: 24 },
      alarms: { topics: [], caDaysLeft: 90, refusals: 20 },
      dashboard: false,
      keys: { deleters: [], importers: [] },
      logRetentionDays: 365,
      caKeys: new Map([['ca', 'oneRegion']]),
    });
  });

  test('a name of yours for each way in', () => {
    const domain = (name: string) => `domain: {name: ${name}.example.com, certificate: '${certificate}'}`;
    const { domains, access } = deployment(`access:
  iam: {principals: ['${role}'], ${domain('sign')}}
  jwt: {issuer: https://i.example.com, audience: a, subjects: ['system:serviceaccount:a:b'], ${domain('tokens')}}
aws: {account: '111122223333', region: eu-central-1}`);
    expect(domains).toEqual({
      iam: { name: 'sign.example.com', certificate },
      jwt: { name: 'tokens.example.com', certificate },
    });
    // The authorizer's bundle has all of this, and needs no more.
    expect(access.jwt).toEqual({
      issuer: 'https://i.example.com',
      audience: 'a',
      subjects: ['system:serviceaccount:a:b'],
    });
  });

  test('every key used', () => {
    expect(
      deployment(`frontDoor: httpApi
access:
  iam: {principals: ['${role}', 'arn:aws-cn:iam::444455556666:root']}
  jwt:
    issuer: https://kubernetes.default.svc
    audience: countersign.demo
    subjects: ['system:serviceaccount:kube-system:relay']
    jwks: '${key}'
limits: {reservedConcurrency: 5, throttle: {rate: 10, burst: 20}, inFlightPerRequester: 3}
alarms: {topics: ['arn:aws:sns:eu-central-1:111122223333:alerts'], caDaysLeft: 30, refusals: 3}
dashboard: true
keys: {administrators: ['arn:aws:iam::111122223333:role/path/admin'], deleters: ['arn:aws:iam::111122223333:user/bob@x'], importers: ['arn:aws:iam::111122223333:role/mover']}
logs: {retentionDays: 30}
aws: {account: '012345678901', region: us-gov-west-1}`),
    ).toEqual({
      account: '012345678901',
      region: 'us-gov-west-1',
      frontDoor: 'httpApi',
      access: {
        iam: { principals: [role, 'arn:aws-cn:iam::444455556666:root'] },
        jwt: {
          issuer: 'https://kubernetes.default.svc',
          audience: 'countersign.demo',
          subjects: ['system:serviceaccount:kube-system:relay'],
          jwks: { keys: [{ kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' }] },
        },
      },
      limits: { reservedConcurrency: 5, throttle: { rate: 10, burst: 20 }, inFlightPerRequester: 3 },
      alarms: { topics: ['arn:aws:sns:eu-central-1:111122223333:alerts'], caDaysLeft: 30, refusals: 3 },
      dashboard: true,
      keys: {
        administrators: ['arn:aws:iam::111122223333:role/path/admin'],
        deleters: ['arn:aws:iam::111122223333:user/bob@x'],
        importers: ['arn:aws:iam::111122223333:role/mover'],
      },
      logRetentionDays: 30,
      caKeys: new Map([['ca', 'oneRegion']]),
    });
  });

  test('a function URL has no throttle', () => {
    const { frontDoor, limits } = deployment(`frontDoor: functionUrl\naccess: {iam: {principals: ['${role}']}}`);
    expect([frontDoor, limits]).toEqual(['functionUrl', { reservedConcurrency: 40, inFlightPerRequester: 24 }]);
  });

  test.each(['eu-central-1', 'cn-northwest-1', 'us-gov-west-1', 'eusc-de-east-1', 'ap-southeast-7'])(
    'a Region of any partition that attestation knows: %s',
    (region) => {
      expect(partitionOf(region)).toBeDefined();
      const written = `access: {iam: {principals: ['${role}']}}\naws: {account: '111122223333', region: ${region}}`;
      expect(deployment(written).region).toBe(region);
    },
  );

  test('an account with few concurrent executions reserves none', () => {
    const { limits } = deployment(`access: {iam: {principals: ['${role}']}}\nlimits: {reservedConcurrency: none}`);
    expect(limits.reservedConcurrency).toBe('none');
  });

  const primary = 'arn:aws:kms:eu-central-1:111122223333:key/mrk-0123456789abcdef0123456789abcdef';
  test('the key of a CA is in one Region, in several, or a replica', () => {
    const cas = `ca: {subject: {commonName: CA}}, wide: {subject: {commonName: W}, multiRegion: true}, copy: {subject: {commonName: C}, replicaOf: '${primary}'}`;
    const written = `access: {iam: {principals: ['${role}']}}\naws: {account: '111122223333', region: eu-west-1}`;
    expect(deployment(written, { cas }).caKeys).toEqual(
      new Map<string, unknown>([
        ['ca', 'oneRegion'],
        ['wide', 'multiRegion'],
        ['copy', { replicaOf: primary }],
      ]),
    );
  });

  test.each([
    [
      `multiRegion: true, replicaOf: '${primary}'`,
      'eu-west-1',
      'multiRegion: is said of the key that is replicated; a replica is one anyway',
    ],
    [
      `replicaOf: '${primary}'`,
      'eu-central-1',
      'replicaOf: is in the Region of this cluster: a Region has a multi-Region key once',
    ],
    [
      `replicaOf: '${primary.replace('mrk-', '')}'`,
      'eu-west-1',
      'replicaOf: must be the ARN of a multi-Region key, …:key/mrk-…',
    ],
  ])('a replica that cannot be: %s in %s', (more, region, problem) => {
    const cas = `ca: {subject: {commonName: CA}, ${more}}`;
    const written = `access: {iam: {principals: ['${role}']}}\naws: {account: '111122223333', region: ${region}}`;
    expect(problems(file(written, { cas }))).toEqual([`4 clusters.demo.cas.ca.${problem}`]);
  });

  test('without deploying, no way in is needed and any cluster name will do', () => {
    const text = file('{}', { name: '1-state' }).replace('    {}\n', '');
    expect(parseConfiguration(text, 'countersign.yaml').ok).toBe(true);
    expect(parse(text).ok).toBe(false);
  });
});

describe('problems, with their lines', () => {
  const jwt = (rest: string) => `access:
  jwt:
    issuer: https://issuer.example.com
    audience: countersign
    subjects: ['system:serviceaccount:a:b']
${rest}`;
  const at = 'clusters.demo';

  test.each<readonly [string, string, readonly string[]]>([
    ['no access', 'logs: {}', [`3 ${at}.access: is required to deploy: name callers under access.iam or access.jwt`]],
    ['no way in', 'access: {}', [`6 ${at}.access: is required to deploy: name callers under access.iam or access.jwt`]],
    [
      'IAM without principals',
      'access: {iam: {principals: []}}',
      [`6 ${at}.access.iam.principals: is required and must not be empty`],
    ],
    ['no principals', 'access: {iam: {}}', [`6 ${at}.access.iam.principals: is required and must not be empty`]],
    ...[
      '*',
      'arn:aws:iam::111122223333:role/*',
      'arn:aws:iam::*:root',
      'arn:aws:sts::111122223333:assumed-role/a/b',
      'arn:aws:iam::111122223333:role/a?',
    ].map((principal): readonly [string, string, readonly string[]] => [
      `principal ${principal}`,
      `access: {iam: {principals: ['${principal}']}}`,
      [
        `6 ${at}.access.iam.principals[0]: must be the ARN of one role, user or account (…:root), such as arn:aws:iam::111122223333:role/watch-relay; no wildcards`,
      ],
    ]),
    ['a way in that is not there', 'access: {mtls: {}}', [`6 ${at}.access.mtls: unknown key "mtls" (known: iam, jwt)`]],
    [
      'tokens at a function URL',
      `frontDoor: functionUrl\n${jwt('')}`,
      [`8 ${at}.access.jwt: a function URL cannot check tokens; use frontDoor: httpApi`],
    ],
    [
      'a name of yours at a function URL',
      `frontDoor: functionUrl\naccess:\n  iam:\n    principals: ['${role}']\n    domain: {name: a.b.com, certificate: '${certificate}'}`,
      [`10 ${at}.access.iam.domain: a function URL has no domain of yours; use frontDoor: httpApi`],
    ],
    [
      'a domain without its name and its certificate',
      `access: {iam: {principals: ['${role}'], domain: {}}}`,
      [`6 ${at}.access.iam.domain.name: is required`, `6 ${at}.access.iam.domain.certificate: is required`],
    ],
    [
      'a name with a wildcard',
      `access: {iam: {principals: ['${role}'], domain: {name: '*.example.com', certificate: '${certificate}'}}}`,
      [`6 ${at}.access.iam.domain.name: must be a DNS name in lower case, such as sign.example.com`],
    ],
    [
      'a certificate of another region',
      `access: {iam: {principals: ['${role}'], domain: {name: a.b.com, certificate: '${certificate}'}}}\naws: {account: '111122223333', region: us-east-1}`,
      [`6 ${at}.access.iam.domain.certificate: must be in the region of the stacks, us-east-1`],
    ],
    [
      'one name for two APIs',
      jwt(`    domain: {name: a.b.com, certificate: '${certificate}'}
  iam: {principals: ['${role}'], domain: {name: a.b.com, certificate: '${certificate}'}}`),
      [`11 ${at}.access.jwt.domain.name: is the name of access.iam; each API needs a name of its own`],
    ],
    [
      'a throttle at a function URL',
      `frontDoor: functionUrl\naccess: {iam: {principals: ['${role}']}}\nlimits:\n  throttle: {rate: 1}`,
      [`9 ${at}.limits.throttle: a function URL cannot throttle; set reservedConcurrency`],
    ],
    [
      'half a token',
      'access: {jwt: {}}',
      [
        `6 ${at}.access.jwt.issuer: is required`,
        `6 ${at}.access.jwt.audience: is required`,
        `6 ${at}.access.jwt.subjects: is required and must not be empty`,
      ],
    ],
    [
      'the audience of every pod',
      jwt('').replace('audience: countersign', 'audience: https://issuer.example.com'),
      [`9 ${at}.access.jwt.audience: must not be the issuer: the tokens every pod is given are for that audience`],
    ],
    [
      'an issuer in the clear',
      jwt('').replace('https:', 'http:'),
      [`8 ${at}.access.jwt.issuer: must be an https URL without user, query or fragment`],
    ],
    [
      'a whole namespace',
      jwt('').replace('a:b', 'a:*'),
      [
        `10 ${at}.access.jwt.subjects[0]: must be one service account, system:serviceaccount:<namespace>:<name>; no wildcards`,
      ],
    ],
    [
      'keys that are no JSON',
      jwt('    jwks: abc'),
      [`11 ${at}.access.jwt.jwks: must be JSON; quote it, or use a block (jwks: |)`],
    ],
    [
      'no keys',
      jwt(`    jwks: '{"keys":[]}'`),
      [`11 ${at}.access.jwt.jwks: must be a JSON Web Key Set with at least one key`],
    ],
    [
      'a private key',
      jwt(`    jwks: '{"keys":[{"kty":"EC","d":"AA"}]}'`),
      [`11 ${at}.access.jwt.jwks: holds a private or shared key; only public keys belong here`],
    ],
    [
      'a shared key',
      jwt(`    jwks: '{"keys":[{"kty":"oct","k":"AA"}]}'`),
      [`11 ${at}.access.jwt.jwks: holds a private or shared key; only public keys belong here`],
    ],
    [
      'a key that is neither RSA nor EC',
      jwt(`    jwks: '{"keys":[null]}'`),
      [`11 ${at}.access.jwt.jwks: holds a key that is neither RSA nor EC; tokens are RS256 or ES256`],
    ],
    [
      'numbers out of range',
      `access: {iam: {principals: ['${role}']}}\nlimits: {reservedConcurrency: 0}\nlogs: {retentionDays: 8}\naws: {account: 111122223333}`,
      [
        `7 ${at}.limits.reservedConcurrency: must be a whole number from 1 to 1000, or none`,
        `8 ${at}.logs.retentionDays: must be one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653`,
        `9 ${at}.aws.account: must be text: put it in quotes`,
      ],
    ],
    [
      'keys without an administrator',
      `access: {iam: {principals: ['${role}']}}\nkeys: {administrators: []}`,
      [`7 ${at}.keys.administrators: must not be empty, or the key policy could never be changed`],
    ],
  ])('%s', (_, text, expected) => {
    expect(problems(file(text))).toEqual(expected);
  });

  const iam = `access: {iam: {principals: ['${role}']}}`;
  test('a key that awaits its material, and no principal that may import it', () => {
    const cas = 'ca: {kind: imported, keyMaterial: imported, subject: {commonName: kubernetes}}';
    const message = 'is required: it names who may import the key of a CA with keyMaterial: imported';
    expect(problems(file(iam, { cas }))).toEqual([`3 clusters.demo.keys.importers: ${message}`]);
    const named = `${iam}\nkeys: {importers: ['arn:aws:iam::111122223333:role/mover']}`;
    expect(problems(file(named, { cas }))).toEqual([]);
    expect(problems(file(iam, { cas: cas.replace('keyMaterial: imported, ', '') }))).toEqual([]);
  });

  test('a name of more than 40 characters is too long for AWS; one may begin with a digit', () => {
    const name = 'a'.repeat(41);
    const message = 'must be at most 40 characters: it becomes part of role names';
    expect(problems(file(iam, { name }))).toEqual([`3 clusters.${name}: ${message}`]);
    expect(problems(file(iam, { name: '1demo' }))).toEqual([]);
  });

  test('the stacks of a cluster have names that are not those of other software', () => {
    expect(stackNames('demo')).toEqual({ service: 'countersign-demo', state: 'countersign-demo-state' });
  });

  test('the service stack of one cluster would be the state stack of another', () => {
    const more = `  demo-state: {cas: {ca: {subject: {commonName: CA}}}, profiles: {kubernetes.io/kubelet-serving: {}}, ${iam}}`;
    expect(problems(file(iam, { more }))).toEqual([
      '7 clusters.demo-state: gives its stack the name of the state stack of cluster demo',
    ]);
    expect(problems(file(iam, { name: 'other', more }))).toEqual([]);
  });
});

describe('worth a second look', () => {
  const iam = `access: {iam: {principals: ['${role}']}}`;

  test('an administrator who may delete', () => {
    expect(warnings(file(`${iam}\nkeys: {administrators: ['${role}'], deleters: ['${role}']}`))).toEqual([
      '7 clusters.demo.keys.deleters[0]: is an administrator too; deletion is safer with a separate principal',
    ]);
  });

  test('a Function URL in a region of which AWS’s page says that it has none', () => {
    const at = (frontDoor: string, region: string) =>
      warnings(file(`frontDoor: ${frontDoor}\n${iam}\naws: {account: '111122223333', region: ${region}}`));
    expect(at('functionUrl', 'eu-central-2')).toEqual([
      '6 clusters.demo.frontDoor: AWS listed eu-central-2 as a region without Function URLs: https://docs.aws.amazon.com/lambda/latest/dg/urls-configuration.html. If it still is one, use frontDoor: httpApi',
    ]);
    expect([at('functionUrl', 'eu-central-1'), at('httpApi', 'eu-central-2')]).toEqual([[], []]);
  });

  const other = (name: string, keySpec: string, rate: number, account: string) =>
    `  ${name}: {cas: {ca: {keySpec: ${keySpec}, subject: {commonName: CA}}}, profiles: {kubernetes.io/kubelet-serving: {}}, ${iam}, limits: {throttle: {rate: ${rate}}}, aws: {account: '${account}'}}\n`;
  const here = `${iam}\naws: {account: '111122223333'}\nlimits: {throttle: {rate: 600}}`;
  const told = (name: string, calls: number, line: number) =>
    `${line} clusters.${name}.limits.throttle.rate: up to here the endpoints of one account and region let through ${calls} calls a second; KMS signs 1000 unless AWS raised the quota`;

  test.each([
    ['just the quota', here, other('b', 'P-256', 400, '111122223333'), []],
    ['one more', here, other('b', 'P-384', 401, '111122223333'), [told('b', 1001, 9)]],
    ['another account', here, other('b', 'P-256', 401, '444455556666'), []],
    ['another kind of key', here, other('b', 'RSA-2048', 401, '111122223333'), []],
    [
      'two ways in',
      `${iam.replace('}}', `}, jwt: {issuer: 'https://a', audience: b, subjects: ['system:serviceaccount:a:b']}}`)}\nlimits: {throttle: {rate: 600}}`,
      '',
      [told('demo', 1200, 7)],
    ],
    [
      'told once',
      here,
      other('b', 'P-256', 500, '111122223333') + other('c', 'P-256', 500, '111122223333'),
      [told('b', 1100, 9)],
    ],
  ])('more calls than KMS can sign: %s', (_, text, more, expected) => {
    expect(warnings(file(text, { more }))).toEqual(expected);
  });
});
