/** The gce provider: once-keys, the list of machines, Google's keys over time, the state of a machine on record, changed evidence. */
import { describe, expect, test } from 'vitest';
import { gceProvider } from '../../../../../core/attestation/gce/provider.ts';
import type { VmDescription } from '../../../../../core/attestation/google/compute.ts';
import type { GceAttestation } from '../../../../../core/configuration/providers/gce.ts';
import { dataOf, evidenceOf, judge, portsOf } from '../../../../corpus/attestation/gce/judge.ts';
import type { Case } from '../../../../corpus/attestation/gce/judge.ts';
import * as world from '../../../../corpus/attestation/gce/machine.ts';
import { runGceCampaign } from '../../../../corpus/attestation/gce/mutations.ts';
import { jwkOf } from '../../../../harness/fake-google/identity-token.ts';

const { identity } = world;
const seconds = world.now / 1_000;
const accepted = (one: Omit<Case, 'name' | 'expect'>) => judge(gceProvider, { name: '', expect: 'accepted', ...one });

describe('a token', () => {
  test('is remembered until it is too old, by what is signed', async () => {
    const { once } = await accepted({});
    expect(once).toEqual([
      {
        kind: 'gce',
        id: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        expiresAt: world.now - 20_000 + 5 * world.minute,
      },
    ]);
  });

  test('is the same one with another spelling of its signature, and another one with another time', async () => {
    // Of the last character two bits are not used.
    const respelled = (usual: string): string => usual.slice(0, -1) + next(usual.at(-1) ?? '');
    const ids = [
      await accepted({}),
      await accepted({ token: respelled }),
      await accepted({ claims: { iat: seconds } }),
    ].map(({ once }) => once?.[0]?.id);
    expect(ids[1]).toBe(ids[0]);
    expect(ids[2]).not.toBe(ids[0]);
  });
});

function next(character: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return alphabet.charAt(alphabet.indexOf(character) + 1);
}

test('is looked for on the list of machines only where the list counts', async () => {
  expect((await accepted({})).machines).toEqual([]);
  expect((await accepted({ policy: { machines: 'listed' } })).machines).toEqual([identity]);
});

describe("Google's keys", () => {
  /** Google as it is then; a token of then, signed with this key. */
  function google() {
    let now = world.now;
    let keySet: () => unknown = () => world.keySet;
    const asked: string[] = [];
    const ports = { ...portsOf({}, asked), keySet: () => Promise.resolve().then(() => (asked.push('keys'), keySet())) };
    const provider = gceProvider(world.policy, ports);
    return {
      fetches: () => asked.filter((one) => one === 'keys').length,
      pass: (more: number) => void (now += more * 1_000),
      publish: (answer: () => unknown) => void (keySet = answer),
      ask: async (key = world.keys.google) => {
        const iat = now / 1_000;
        const examined = await provider.examine(evidenceOf(dataOf({ key, claims: { iat, exp: iat + 3_600 } }), now));
        if (!examined.ok) return examined.problem[0].message;
        const answer = await examined.value.verify().catch((error: unknown) => (error as Error).message);
        if (typeof answer === 'string') return answer;
        return answer.ok ? 'accepted' : answer.problem[0].message;
      },
    };
  }

  test('are read once in ten minutes', async () => {
    const { ask, fetches, pass } = google();
    for (let index = 0; index < 10; index += 1) {
      expect(await ask()).toBe('accepted');
      pass(59);
    }
    expect(fetches()).toBe(1);
    pass(10);
    expect(await ask()).toBe('accepted');
    expect(fetches()).toBe(2);
  });

  test('a key that Google took out is believed for ten minutes at most', async () => {
    const { ask, publish, pass } = google();
    expect(await ask()).toBe('accepted');
    publish(() => ({ keys: [jwkOf(world.keys.next)] }));
    pass(600);
    expect(await ask()).toContain('does not publish');
    expect(await ask(world.keys.next)).toBe('accepted');
  });

  test('an unknown key has them read again, twice a minute at most', async () => {
    const { ask, fetches, pass } = google();
    expect(await ask()).toBe('accepted');
    for (let index = 0; index < 60; index += 1) {
      expect(await ask(world.keys.unknown)).toContain('does not publish');
      pass(1);
    }
    expect(fetches()).toBe(2);
    expect(await ask()).toBe('accepted');
  });

  test('while they cannot be read, a request waits and is not refused', async () => {
    const { ask, publish, pass } = google();
    publish(() => {
      throw new Error('connect ECONNREFUSED');
    });
    expect(await ask()).toContain("Google's keys cannot be read (KeysUnreachable): connect ECONNREFUSED");
    publish(() => world.keySet);
    expect(await ask()).toContain('cannot be read');
    pass(5);
    expect(await ask()).toBe('accepted');
  });
});

describe('the state of a machine on record', () => {
  const stateOf = (of: string, vm: Partial<VmDescription> | 'notFound', policy: Partial<GceAttestation> = {}) =>
    gceProvider({ ...world.policy, ...policy }, portsOf({ vm }, [])).describe(of, world.now);

  test('running, with what the policy says about it today', async () => {
    expect(await stateOf(identity, {})).toEqual({
      kind: 'running',
      violations: [],
      machine: (await accepted({})).machine,
    });
    expect(await stateOf(identity, { labels: new Map() })).toMatchObject({
      kind: 'running',
      violations: [{ code: 'IdentityNotAllowed' }],
    });
  });

  test.each(['STOPPING', 'TERMINATED', 'SUSPENDED'])(
    '%s: it may be started again, so it is not gone',
    async (status) => {
      expect(await stateOf(identity, { status })).toEqual({ kind: 'stopped' });
    },
  );

  test.each(['PROVISIONING', 'STAGING'])('%s is no answer yet', async (status) => {
    await expect(stateOf(identity, { status })).rejects.toThrow('does not yet know');
  });

  test('not known', async () => {
    expect(await stateOf(identity, 'notFound')).toEqual({ kind: 'unknown' });
  });

  test.each([
    ['of a project that may not join any more', identity.replace(world.vm.projectNumber, '4242')],
    ['of the other provider for VMs of Google', identity.replace('gce#', 'gce-vtpm#')],
    ['of another provider', 'aws#aws/111122223333/eu-central-1/i-0123456789abcdef0'],
    ['with more behind it', `${identity}/x`],
  ])('%s: Google is not asked', async (_, of) => {
    const asked: string[] = [];
    expect(await gceProvider(world.policy, portsOf({}, asked)).describe(of, world.now)).toEqual({ kind: 'stopped' });
    expect(asked).toEqual([]);
  });
});

test('1 500 changed proofs are refused by name, or state what Google signed', async () => {
  const { refused, accepted: taken, faults, reasons } = await runGceCampaign(1, 1_500);
  expect(faults).toEqual([]);
  expect(refused).toBeGreaterThan(1_000);
  expect(taken).toBeGreaterThan(10);
  expect(reasons.size).toBeGreaterThan(15);
});
