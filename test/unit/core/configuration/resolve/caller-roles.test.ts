/** The roles in `access.iam.principals`, held against what the file says of the machines that may join. */
import { describe, expect, test } from 'vitest';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';

const account = '111122223333';
const worker = `arn:aws:iam::${account}:role/prod-worker`;
const relay = `arn:aws:iam::${account}:role/prod-watch-relay`;

interface Said {
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

function validate(iam: object, aws: object | undefined = {}): Said {
  const attested = {
    accounts: { [account]: {} },
    regions: ['eu-central-1'],
    nodeName: ['privateDnsName'],
    tags: { cluster: 'prod' },
    ...aws,
  };
  const text = JSON.stringify({
    version: 1,
    clusters: {
      prod: {
        cas: { ca: { subject: { commonName: 'prod' } } },
        profiles: {
          'kubernetes.io/kube-apiserver-client-kubelet':
            aws === undefined ? {} : { attestation: { providers: ['aws'] } },
        },
        ...(aws === undefined ? {} : { attestation: { aws: attested } }),
        access: { iam },
        aws: { account, region: 'eu-central-1' },
      },
    },
  });
  const parsed = parseConfiguration(text, 'countersign.yaml');
  const told = (problems: readonly { readonly path: string; readonly message: string }[]): string[] =>
    problems.filter(({ path }) => path.includes('.access.')).map(({ path, message }) => `${path}: ${message}`);
  return parsed.ok
    ? { errors: [], warnings: told(parsed.value.warnings) }
    : { errors: parsed.problem.map(({ path, message }) => `${path}: ${message}`), warnings: [] };
}

const inProfiles = (...instanceProfiles: readonly string[]) => ({ instanceProfiles });
const sessions = { requireIdentityRole: false, roles: [worker] };

describe('finding 3: the role of nodes as a caller', () => {
  test.each<[string, object, string]>([
    ['is among those whose sessions prove a machine', sessions, 'attestation.aws.roles'],
    ['has an instance profile of its name that may join', inProfiles('prod-worker'), 'instanceProfiles prod-worker'],
    [
      'has one that is admitted by name and by a pattern',
      inProfiles('prod-*', 'prod-worker'),
      'instanceProfiles prod-worker',
    ],
    [
      'has one that is admitted by ARN',
      inProfiles(`arn:aws:iam::${account}:instance-profile/prod-worker`),
      'instance-profile/prod-worker',
    ],
  ])('is refused where it %s', (_, aws, where) => {
    const { errors } = validate({ principals: [`arn:aws:iam::${account}:role/watch-relay`, worker] }, aws);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(
      /^clusters\.prod\.access\.iam\.principals\[1\]: is the role of machines that may join \(/,
    );
    expect(errors[0]).toContain(where);
    expect(errors[0]).toContain('everyNodeMayAskForCertificates');
  });

  test('is warned about where a pattern of instance profiles admits its name, which others may have too', () => {
    const { errors, warnings } = validate({ principals: [relay] }, inProfiles('prod-*'));
    expect(errors).toEqual([]);
    expect(warnings).toEqual([
      expect.stringContaining('has a name that attestation.aws.instanceProfiles prod-* admits machines by') as unknown,
    ]);
  });

  test('is a caller where the file says so twice, and then warns', () => {
    const { errors, warnings } = validate(
      { principals: [worker], everyNodeMayAskForCertificates: [worker] },
      inProfiles('prod-worker'),
    );
    expect(errors).toEqual([]);
    expect(warnings).toEqual([
      expect.stringMatching(/everyNodeMayAskForCertificates\[0\]: every node with this role/) as unknown,
    ]);
  });

  test('spelled out for another role than a principal, is refused', () => {
    expect(validate({ principals: [relay], everyNodeMayAskForCertificates: [worker] }).errors).toEqual([
      'clusters.prod.access.iam.everyNodeMayAskForCertificates[0]: is not among principals',
    ]);
    expect(validate({ principals: [relay, worker], everyNodeMayAskForCertificates: [relay] }, sessions).errors).toEqual(
      [expect.stringContaining('principals[1]: is the role of machines') as unknown],
    );
  });

  test.each([
    'nodes.cluster-api-provider-aws.sigs.k8s.io',
    'KarpenterNodeRole-prod',
    'eksctl-prod-nodegroup-ng-1-NodeInstanceRole-1ABC',
    'prod-worker',
    'nodes.prod.example.com',
  ])('is warned about by its name, where the file does not say whose it is: %s', (name) => {
    const { errors, warnings } = validate({ principals: [`arn:aws:iam::${account}:role/team/${name}`] }, undefined);
    expect(errors).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining('has the name of a role of nodes') as unknown]);
  });

  test('is warned about where the whole account of the nodes is a principal', () => {
    const root = `arn:aws:iam::${account}:root`;
    expect(validate({ principals: [root] }).warnings).toEqual([
      expect.stringContaining('is an account whose instances may join') as unknown,
    ]);
    expect(validate({ principals: [`arn:aws:iam::999999999999:root`] }).warnings).toEqual([]);
  });

  test.each([
    ['prod-watch-relay', inProfiles('prod-worker')],
    ['prod-control-plane', inProfiles('prod-worker')],
    ['control-plane.cluster-api-provider-aws.sigs.k8s.io', {}],
    ['countersign-relay', inProfiles('countersign-*-node')],
    ['shop-watch-relay', undefined],
  ])('is not what the relay’s own role is: %s', (name, aws) => {
    expect(validate({ principals: [`arn:aws:iam::${account}:role/${name}`] }, aws)).toEqual({
      errors: [],
      warnings: [],
    });
  });
});
