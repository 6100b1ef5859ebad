/** What the tpm provider says about a machine, and its challenge, answered by a TPM in memory. */
import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { tpmProvider } from '../../../../../core/attestation/tpm/provider.ts';
import type { TpmPorts } from '../../../../../core/attestation/tpm/ports.ts';
import { casesBySubject } from '../../../../corpus/attestation/tpm/cases.ts';
import { judge } from '../../../../corpus/attestation/tpm/judge.ts';
import * as world from '../../../../corpus/attestation/tpm/machine.ts';
import { activateCredential, createEk, nameOf } from '../../../../harness/tpm/model-tpm.ts';

const hash = world.hashOf(world.ek.spki);
const identity = `tpm#${hash}`;
const listed = { roots: [], intermediates: [], machines: 'listed' } as const;

test('a machine has the names of the configuration, its TPM and nothing else', async () => {
  const { machine, once } = await judge(tpmProvider, { name: '', expect: 'accepted' });
  expect(machine).toEqual({
    identity,
    providerId: `tpm:///${hash}`,
    nodeNames: ['edge-*'],
    addresses: [],
    dnsNames: [],
    device: {
      endorsementKey: world.ek.spki,
      state: { akName: nameOf(world.ak.area).toString('hex'), resetCount: 3, clock: 5000 },
      activated: false,
      challenge: expect.any(Function) as unknown,
    },
  });
  expect(once).toEqual([]);
});

test('a machine on the list has the names of its entry', async () => {
  const entry = { name: '', expect: 'accepted', entry: {} } as const;
  const { machine } = await judge(tpmProvider, entry);
  const { nodeName, addresses, dnsNames } = world.entry;
  expect(machine).toMatchObject({ nodeNames: [nodeName], addresses, dnsNames });
  // An entry without a node name leaves the name to the configuration.
  const { nodeName: _, ...unnamed } = world.entry;
  const provider = providerWith({ findMachine: () => Promise.resolve(unnamed) });
  expect(await provider.describe(identity, world.now)).toMatchObject({ machine: { nodeNames: ['edge-*'], addresses } });
});

test('the machine has to be on the list exactly where the configuration says so', async () => {
  const machinesOf = async (machines: 'any' | 'listed') => {
    const examined = await providerWith({}, { machines }).examine(evidence(world.good));
    return examined.ok ? examined.value.machines : examined.problem;
  };
  expect(await machinesOf('any')).toEqual([]);
  expect(await machinesOf('listed')).toEqual([identity]);
});

test('an answer spends its challenge until it expires', async () => {
  const [answered] = casesBySubject['challenge']!;
  const { once } = await judge(tpmProvider, answered!);
  const { challenge } = answered!.data!['activation'] as Record<string, string>;
  const id = Buffer.from(challenge!, 'base64url').toString('hex');
  expect(once).toEqual([{ kind: 'challenge', id, expiresAt: world.now + 60_000 }]);
});

describe('a challenge', () => {
  test.each(['RSA-2048', 'P-256', 'P-384'] as const)('for an endorsement key %s', async (kind) => {
    const ek = createEk(kind);
    const policy = { endorsementKeys: [world.hashOf(ek.spki)] };
    const data = { ek: { spki: world.b64(ek.spki) } };
    const { machine } = await judge(tpmProvider, { name: '', expect: 'accepted', data, policy });
    const sent = JSON.parse((await machine?.device?.challenge()) ?? '') as Record<string, string>;
    expect(Object.keys(sent)).toEqual(['v', 'challenge', 'credential']);
    const challenge = Buffer.from(sent['challenge'] ?? '', 'base64url');
    // Version, expiry after 120 seconds, 16 random bytes.
    const expiry = (world.now + 120_000).toString(16).padStart(12, '0');
    expect(challenge.toString('hex')).toBe(`01${expiry}${'5a'.repeat(16)}`);

    const credential = Buffer.from(sent['credential'] ?? '', 'base64');
    expect(() => activateCredential(ek, nameOf(world.otherAk.area), credential)).toThrow('TPM_RC_INTEGRITY');
    expect(() => activateCredential(createEk(kind), nameOf(world.ak.area), credential)).toThrow(/./);
    const secret = activateCredential(ek, nameOf(world.ak.area), credential);
    expect(secret).toHaveLength(32);
    const proof = createHmac('sha256', secret).update(world.bound).digest('base64');
    const activation = { challenge: sent['challenge'], proof };
    const answered = await judge(tpmProvider, { name: '', expect: 'activated', data: { ...data, activation }, policy });
    expect(answered.outcome).toBe('activated');
  });

  test('throws if its key does not answer, because that is no answer', async () => {
    const ports = { challengeKey: { mac: () => Promise.reject(new Error('throttled')) } };
    const { machine } = await judge(tpmProvider, { name: '', expect: 'accepted', ports });
    await expect(machine?.device?.challenge()).rejects.toThrow('throttled');
  });
});

describe('what is known of a machine today', () => {
  test('on the list: its names', async () => {
    const provider = providerWith({ findMachine: () => Promise.resolve(world.entry) }, listed);
    expect(await provider.describe(identity, world.now)).toEqual({
      kind: 'running',
      machine: {
        identity,
        providerId: `tpm:///${hash}`,
        nodeNames: ['worker-3'],
        addresses: ['192.0.2.3'],
        dnsNames: ['worker-3.example.com'],
        // Its removal ends them: the claim depends on it.
        entry: identity,
      },
      violations: [],
    });
  });

  test('removed from the list: unknown to its platform', async () => {
    expect(await providerWith({}, listed).describe(identity, world.now)).toEqual({ kind: 'unknown' });
  });

  test('where no list is required: as the configuration describes it', async () => {
    expect(await providerWith({}).describe(identity, world.now)).toMatchObject({ machine: { nodeNames: ['edge-*'] } });
  });

  test('not of this provider: keeps its name', async () => {
    for (const other of ['aws#i-1', 'tpm#1', `${identity}0`, identity.toUpperCase()])
      expect(await providerWith({}, listed).describe(other, world.now)).toEqual({ kind: 'stopped' });
  });

  test('a list that does not answer is no answer', async () => {
    const provider = providerWith({ findMachine: () => Promise.reject(new Error('throttled')) });
    await expect(provider.describe(identity, world.now)).rejects.toThrow('throttled');
  });
});

test('no message repeats what the sender wrote', async () => {
  for (const one of Object.values(casesBySubject).flat()) {
    const { outcome } = await judge(tpmProvider, one);
    expect(outcome.length).toBeLessThan(200);
    expect(outcome).not.toMatch(/[0-9a-f]{20}|[A-Za-z0-9+/]{30}/);
  }
});

function evidence(data: world.Json) {
  return {
    version: 'tpm/v1',
    data: Buffer.from(JSON.stringify(data)),
    request: undefined as never,
    nodeName: 'edge-1',
    clusterName: 'blue',
    binding: world.binding,
    now: world.now,
  };
}

function providerWith(ports: Partial<TpmPorts>, policy: object = {}) {
  return tpmProvider({ ...world.policy, ...policy }, world.audience, {
    challengeKey: { mac: () => Promise.reject(new Error('asked')) },
    randomBytes: (count) => Buffer.alloc(count),
    findMachine: () => Promise.resolve(undefined),
    ...ports,
  });
}
