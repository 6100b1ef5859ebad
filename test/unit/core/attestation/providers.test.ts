import { describe, expect, test } from 'vitest';
import type { ClusterAttestation } from '../../../../core/configuration/model/attestation.ts';
import { insecureProvider } from '../../../../core/attestation/evidence/insecure.ts';
import { createProviders } from '../../../../core/attestation/providers.ts';
import { policy } from '../../../corpus/attestation/aws-machine.ts';

const cluster: ClusterAttestation = {
  audience: 'a',
  addressRanges: [],
};
const aws = {
  sts: () => Promise.reject(new Error('')),
  ec2: { describeInstance: () => Promise.reject(new Error('')) },
  regionCertificates: new Map(),
};

describe('createProviders', () => {
  test('names each as on the wire', () => {
    expect([...createProviders(cluster, {}).keys()]).toEqual(['insecure']);
    const both = createProviders({ ...cluster, aws: policy }, { aws });
    expect([...both.keys()]).toEqual(['insecure', 'aws']);
    expect([...both].map(([name, provider]) => [name === provider.name, provider.versions, provider.secure])).toEqual([
      [true, ['insecure/v1'], false],
      [true, ['aws/v2', 'aws/v1'], true],
    ]);
  });

  test('no provider that approves everything is among them', () => {
    expect(createProviders({ ...cluster, aws: policy }, { aws }).has('null')).toBe(false);
  });

  test('does not leave out in silence what the cluster configures', () => {
    expect(() => createProviders({ ...cluster, aws: policy }, {})).toThrow('attestation.aws is configured');
  });

  test('passes on for how long a restart may change the key', () => {
    const restart = (allowRestart: boolean) =>
      createProviders({ ...cluster, aws: { ...policy, allowRestart } }, { aws }).get('aws')?.restartWindow;
    expect([restart(false), restart(true)]).toEqual([undefined, 900_000]);
  });
});

describe('the insecure provider', () => {
  const examine = (data: string, providerId?: string) =>
    insecureProvider.examine({
      version: 'insecure/v1',
      data: Buffer.from(data),
      request: { providerId } as never,
      nodeName: 'worker-1',
      clusterName: 'blue',
      binding: () => '',
      now: 0,
    });

  test('is the node that it says it is, with nothing of its own', async () => {
    const examined = examine('{"v":1}', 'docker:////worker-1');
    if (!examined.ok) throw new Error('refused');
    expect(examined.value).toMatchObject({ identity: 'insecure#worker-1', once: [], machines: [] });
    expect(await examined.value.verify()).toEqual({
      ok: true,
      value: {
        identity: 'insecure#worker-1',
        providerId: 'docker:////worker-1',
        nodeNames: ['worker-1'],
        addresses: [],
        dnsNames: [],
      },
    });
  });

  test.for([
    ['', 'is not JSON'],
    ['[]', 'is not a JSON object'],
    ['{}', 'lacks one of v'],
    ['{"v":2}', 'is not of insecure/v1'],
    ['{"v":1,"v":1}', 'has a key twice'],
    ['{"v":1,"nodeName":"cp-1"}', 'has an unknown key'],
  ])('refuses %s: it %s', ([data = '', problem]) => {
    expect(examine(data)).toEqual({
      ok: false,
      problem: [{ code: 'AttestationInvalid', message: `the attestation data ${problem}` }],
    });
  });

  test('neither renews nor serves, and its machines are never gone', async () => {
    expect(insecureProvider).toMatchObject({ secure: false });
    expect(insecureProvider.restartWindow).toBeUndefined();
    expect(await insecureProvider.describe('insecure#worker-1', 0)).toEqual({ kind: 'stopped' });
  });
});
