/** The provider `gce-vtpm`: every case of the corpus, the real requests, what it states about a machine, and the state of one. */
import { describe, expect, test } from 'vitest';
import { gceVtpmProvider } from '../../../../../core/attestation/gce-vtpm/provider.ts';
import type { ComputeEndpoint, VmDescription } from '../../../../../core/attestation/google/compute.ts';
import type { Examined } from '../../../../../core/attestation/evidence/provider.ts';
import type { GceVtpmAttestation } from '../../../../../core/configuration/providers/gce-vtpm.ts';
import { decodeRequest } from '../../../../../core/x509/certificate-request.ts';
import {
  described,
  isAsExpected,
  judgeVm,
  pinned,
  policy,
  providerCases,
} from '../../../../corpus/attestation/gce-vtpm/provider-cases.ts';
import {
  certificateAuthority,
  realNow,
  realVm,
  requests,
  signingKey,
} from '../../../../corpus/attestation/gce-vtpm/real-requests.ts';
import { identityText, keys, publicPem, vm, vmRequest } from '../../../../corpus/attestation/gce-vtpm/vm.ts';

const place = `${vm.projectNumber}/${vm.zone}/${vm.instanceId}`;
const identity = `gce-vtpm#${place}`;

describe('the corpus', () => {
  test.for(providerCases.map((one) => [one.name, one] as const))('%s', async ([, one]) => {
    const { outcome, asked } = await judgeVm(gceVtpmProvider, one);
    if (!isAsExpected(one, outcome)) expect(outcome).toBe(JSON.stringify(one.expect));
    // By the id: a name can pass to another VM between the two calls.
    expect(asked).toEqual([`describe ${place}`, `key ${place}`].slice(0, asked.length));
    if (one.calls !== undefined) expect(asked).toHaveLength(one.calls);
    expect(outcome).not.toContain(identityText());
    expect(outcome.length).toBeLessThan(300);
  });

  test('names are told apart', () => {
    expect(new Set(providerCases.map(({ name }) => name)).size).toBe(providerCases.length);
  });
});

describe('requests of the real plugin', () => {
  const real = {
    ...policy,
    projects: { [realVm.projectNumber]: realVm.projectId },
    labels: {},
    instances: [{ project: '2', zone: realVm.zone, id: '7', name: 'vm', signingKey, addresses: [], dnsNames: [] }],
  };
  const examine = async (text: string, nodeName = 'vm', changed: Partial<GceVtpmAttestation> = {}) => {
    const decoded = decodeRequest(Buffer.from(text), 'gce-vtpm');
    if (!decoded.ok) throw new Error('malformed');
    const examined = await gceVtpmProvider({ ...real, ...changed }, undefined).examine({
      version: 'gce-vtpm/v1',
      data: new Uint8Array(),
      request: decoded.value,
      nodeName,
      clusterName: 'blue',
      binding: () => '',
      now: realNow,
    });
    const answer = examined.ok ? await examined.value.verify() : examined;
    return answer.ok ? answer.value.identity : answer.problem[0].message;
  };
  test.each(Object.entries(requests))('%s', async (_, { text }) => {
    expect(await examine(text)).toBe('gce-vtpm#2/us-central1-c/7');
    expect(await examine(text, 'vm', { roots: [certificateAuthority] })).toBe('gce-vtpm#2/us-central1-c/7');
    expect(await examine(text, 'vm-2')).toContain('names another VM');
    const instances = [{ ...real.instances[0]!, signingKey: publicPem(keys.other) }];
    expect(await examine(text, 'vm', { instances })).toContain('another key than that of the VM');
  });
});

describe('what a machine is', () => {
  test('as Google describes it', async () => {
    const { machine } = await judgeVm(gceVtpmProvider, { name: '', expect: 'accepted' });
    expect(machine).toEqual({
      identity,
      providerId: 'gce://my-nodes/europe-west3-b/worker-1',
      mayOmitProviderId: true,
      nodeNames: ['worker-1'],
      addresses: ['10.156.0.7', '2600:1900:40e0:9c:0:7::', '203.0.113.9'],
      dnsNames: ['worker-1.europe-west3-b.c.my-nodes.internal', 'worker-1.c.my-nodes.internal'],
    });
  });

  test('as the operator lists it', async () => {
    const one = { name: '', expect: 'accepted', policy: { instances: [pinned] } } as const;
    const { machine } = await judgeVm(gceVtpmProvider, one);
    expect(machine).toMatchObject({ identity, addresses: ['10.0.0.9'], dnsNames: ['worker-1.example.com'] });
  });

  test('a project in a domain has no internal names that are known', async () => {
    const projectId = 'example.com:my-nodes';
    const one = { projects: { [vm.projectNumber]: projectId } };
    const { machine } = await judgeVm(gceVtpmProvider, {
      name: '',
      expect: 'accepted',
      policy: one,
      request: { identity: { projectId } },
    });
    expect(machine).toMatchObject({ providerId: 'gce://example.com:my-nodes/europe-west3-b/worker-1', dnsNames: [] });
  });
});

async function examined(changed: Partial<GceVtpmAttestation>): Promise<Examined> {
  const decoded = decodeRequest(Buffer.from(vmRequest({ attest: { clock: 77n, resetCount: 3 } })), 'gce-vtpm');
  if (!decoded.ok) throw new Error('malformed');
  const provider = gceVtpmProvider({ ...policy, instances: [pinned], ...changed }, undefined);
  const about = { version: '', data: new Uint8Array(), clusterName: '', binding: () => '', now: 0 };
  const result = await provider.examine({ ...about, request: decoded.value, nodeName: vm.name });
  if (!result.ok) throw new Error('refused');
  return result.value;
}

test('is looked for on the list of machines only where the list counts', async () => {
  expect((await examined({})).machines).toEqual([]);
  expect((await examined({ machines: 'listed' })).machines).toEqual([identity]);
  expect((await examined({})).once).toEqual([]);
});

test('shows the clock of its vTPM only where a new key needs a later one', async () => {
  const refused = await (await examined({})).verify();
  expect(refused.ok && refused.value.device).toBeUndefined();
  const attested = await (await examined({ newKeys: 'attested' })).verify();
  const device = attested.ok ? attested.value.device : undefined;
  expect(device).toMatchObject({ state: { resetCount: 3, clock: 77 }, activated: true });
  expect(device?.state.akName).toMatch(/^[0-9a-f]{64}$/);
  await expect(device?.challenge()).rejects.toThrow('no challenge');
  const provesHardware = (newKeys: 'attested' | 'refused') =>
    gceVtpmProvider({ ...policy, newKeys }, undefined).provesHardware;
  expect([provesHardware('refused'), provesHardware('attested')]).toEqual([undefined, true]);
});

describe('the state of a machine on record', () => {
  const none: ComputeEndpoint = {
    describeInstance: () => Promise.reject(new Error('this test allows no call of Google')),
    signingKey: () => Promise.reject(new Error('this test allows no request for a key')),
  };
  const answering = (answer: Partial<VmDescription> | 'notFound'): ComputeEndpoint => ({
    ...none,
    describeInstance: () => Promise.resolve(answer === 'notFound' ? answer : { ...described, ...answer }),
  });
  const stateOf = (of: string, compute: ComputeEndpoint | undefined, changed: Partial<GceVtpmAttestation> = {}) =>
    gceVtpmProvider({ ...policy, ...changed }, compute).describe(of, 0);

  test('running, with what the policy says about it today', async () => {
    expect(await stateOf(identity, answering({}))).toMatchObject({
      kind: 'running',
      machine: { identity },
      violations: [],
    });
    expect(await stateOf(identity, answering({ labels: new Map() }))).toMatchObject({
      kind: 'running',
      violations: [{ code: 'IdentityNotAllowed' }],
    });
  });

  test.each(['STOPPING', 'TERMINATED', 'SUSPENDED'])(
    '%s: it may be started again, so it is not gone',
    async (status) => {
      expect(await stateOf(identity, answering({ status }))).toEqual({ kind: 'stopped' });
    },
  );

  test.each(['PROVISIONING', 'STAGING'])('%s is no answer yet', async (status) => {
    await expect(stateOf(identity, answering({ status }))).rejects.toThrow('does not yet know');
  });

  test('not known', async () => {
    expect(await stateOf(identity, answering('notFound'))).toEqual({ kind: 'unknown' });
  });

  test.each([
    ['of a project that may not join any more', identity.replace(vm.projectNumber, '4242')],
    ['of another provider', 'aws#aws/111122223333/eu-central-1/i-0123456789abcdef0'],
    ['that is no identity', 'gce-vtpm#x'],
  ])('%s: Google is not asked', async (_, of) => {
    expect(await stateOf(of, none)).toEqual({ kind: 'stopped' });
  });

  test('on the list: Google is not asked', async () => {
    const running = { kind: 'running', machine: { identity, addresses: ['10.0.0.9'] }, violations: [] };
    expect(await stateOf(identity, none, { instances: [pinned] })).toMatchObject(running);
  });

  test('removed from the list, with no other source', async () => {
    expect(await stateOf(identity, undefined)).toEqual({ kind: 'stopped' });
  });
});
