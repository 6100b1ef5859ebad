import { describe, expect, test } from 'vitest';
import type { TpmAttestation } from '../../../../core/configuration/providers/tpm.ts';
import type { ClusterAttestation } from '../../../../core/configuration/model/attestation.ts';
import { insecureProvider } from '../../../../core/attestation/evidence/insecure.ts';
import { lazyProvider } from '../../../../core/attestation/evidence/lazy-provider.ts';
import type { AttestationProvider, Evidence } from '../../../../core/attestation/evidence/provider.ts';
import { gceProvider } from '../../../../core/attestation/gce/provider.ts';
import { createProviders } from '../../../../core/attestation/providers.ts';
import { awsNitroTpmProvider } from '../../../../core/attestation/aws-nitrotpm/provider.ts';
import { tpmProvider } from '../../../../core/attestation/tpm/provider.ts';
import { x509Provider } from '../../../../core/attestation/x509/provider.ts';
import { policy } from '../../../corpus/attestation/aws-machine.ts';
import { portsOf as googlePorts } from '../../../corpus/attestation/gce/judge.ts';
import { policy as gcePolicy } from '../../../corpus/attestation/gce/machine.ts';
import { policy as x509Policy } from '../../../corpus/attestation/x509/machine.ts';

const cluster: ClusterAttestation = {
  audience: 'a',
  retireTerminated: true,
  addressRanges: [],
};
const tpmPolicy: TpmAttestation = {
  roots: [],
  intermediates: [],
  endorsementKeys: [],
  machines: 'listed',
  nodeNames: [],
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
    expect(() => createProviders({ ...cluster, tpm: tpmPolicy }, {})).toThrow('attestation.tpm is configured');
    const { compute, keySet: googleKeySet } = googlePorts({}, []);
    for (const ports of [{}, { compute: () => compute }, { googleKeySet }])
      expect(() => createProviders({ ...cluster, gce: gcePolicy }, ports)).toThrow('attestation.gce is configured');
  });

  test('loads the tpm provider with its first evidence, under the name that it has', async () => {
    const missing = () => Promise.reject(new Error(''));
    const tpm = { challengeKey: { mac: missing }, randomBytes: () => Buffer.of(), findMachine: missing };
    const lazy = createProviders({ ...cluster, tpm: tpmPolicy }, { tpm }).get('tpm');
    const loaded = tpmProvider(tpmPolicy, 'a', tpm);
    const facts = ({ name, versions, secure, provesHardware }: AttestationProvider) => [
      name,
      versions,
      secure,
      provesHardware,
    ];
    expect(lazy && facts(lazy)).toEqual(facts(loaded));
    const evidence = { data: Buffer.from('{}') } as unknown as Evidence;
    expect(await lazy?.examine(evidence)).toEqual(await loaded.examine(evidence));
  });

  test('loads the aws-nitrotpm provider with its first evidence, under the name that it has', async () => {
    const missing = () => Promise.reject(new Error(''));
    const tpm = { challengeKey: { mac: missing }, randomBytes: () => Buffer.of(), findMachine: missing };
    const ports = { ...aws, endorsementKeys: missing };
    const nitro = { ...cluster, aws: policy, awsNitroTpm: true } as const;
    expect(() => createProviders(nitro, { aws, tpm })).toThrow('aws-nitrotpm is configured, but');
    expect(() => createProviders(nitro, { aws: ports })).toThrow('aws-nitrotpm is configured, but');
    const providers = createProviders(nitro, { aws: ports, tpm });
    // Both describe the instances that the other registered.
    expect([...providers.keys()]).toEqual(['insecure', 'aws', 'aws-nitrotpm']);
    const loaded = awsNitroTpmProvider(policy, 'a', { ...ports, ...tpm });
    const facts = ({ name, versions, secure, provesHardware }: AttestationProvider) => [
      name,
      versions,
      secure,
      provesHardware,
    ];
    const lazy = providers.get('aws-nitrotpm');
    expect(lazy && facts(lazy)).toEqual(facts(loaded));
    const evidence = { data: Buffer.from('{}') } as unknown as Evidence;
    expect(await lazy?.examine(evidence)).toEqual(await loaded.examine(evidence));
  });

  test('loads the x509 provider with its first evidence, under the name that it has', async () => {
    const lazy = createProviders({ ...cluster, x509: x509Policy }, {}).get('x509');
    const loaded = x509Provider(x509Policy);
    const facts = ({ name, versions, secure }: AttestationProvider) => [name, versions, secure];
    expect(lazy && facts(lazy)).toEqual(facts(loaded));
    const evidence = { data: Buffer.from('{}') } as unknown as Evidence;
    expect(await lazy?.examine(evidence)).toEqual(await loaded.examine(evidence));
  });

  test('loads the gce provider with its first evidence, under the name that it has', async () => {
    const { compute, keySet } = googlePorts({}, []);
    const ports = { compute: () => compute, googleKeySet: keySet };
    const lazy = createProviders({ ...cluster, gce: gcePolicy }, ports).get('gce');
    const loaded = gceProvider(gcePolicy, { compute, keySet });
    const facts = ({ name, versions, secure }: AttestationProvider) => [name, versions, secure];
    expect(lazy && facts(lazy)).toEqual(facts(loaded));
    const evidence = { data: Buffer.from('{}') } as unknown as Evidence;
    expect(await lazy?.examine(evidence)).toEqual(await loaded.examine(evidence));
  });

  test('passes on for how long a restart may change the key', () => {
    const restart = (allowRestart: boolean) =>
      createProviders({ ...cluster, aws: { ...policy, allowRestart } }, { aws }).get('aws')?.restartWindow;
    expect([restart(false), restart(true)]).toEqual([undefined, 900_000]);
  });
});

describe('a lazy provider', () => {
  test('is loaded once, by the first request that needs it', async () => {
    let loads = 0;
    const lazy = lazyProvider(insecureProvider, () => Promise.resolve(((loads += 1), insecureProvider)));
    expect([loads, lazy.versions]).toEqual([0, ['insecure/v1']]);
    expect(await lazy.describe('insecure#worker-1', 0)).toEqual({ kind: 'stopped' });
    const evidence = { data: Buffer.from('{}') } as unknown as Evidence;
    expect(await lazy.examine(evidence)).toMatchObject({ ok: false });
    expect(loads).toBe(1);
  });
});

describe('the insecure provider', () => {
  const examine = async (data: string, providerId?: string) =>
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
    const examined = await examine('{"v":1}', 'docker:////worker-1');
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
  ])('refuses %s: it %s', async ([data = '', problem]) => {
    expect(await examine(data)).toEqual({
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
