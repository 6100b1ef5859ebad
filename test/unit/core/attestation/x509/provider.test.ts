import { describe, expect, test } from 'vitest';
import { x509Provider } from '../../../../../core/attestation/x509/provider.ts';
import { usualName } from '../../../../../core/attestation/x509/rules.ts';
import { decodeCertificate } from '../../../../../core/x509/chain/chain-certificate.ts';
import { dataOf, evidenceOf, judge } from '../../../../corpus/attestation/x509/judge.ts';
import type { Case } from '../../../../corpus/attestation/x509/judge.ts';
import * as world from '../../../../corpus/attestation/x509/machine.ts';
import { runX509Campaign } from '../../../../corpus/attestation/x509/mutations.ts';
import { general, keyOf, name, subjectAltName } from '../../../../harness/x509/certificate-writer.ts';

const identity = `x509#prod/uri/${world.spiffeId}`;
const provider = x509Provider(world.policy);

async function onceOf(one: Omit<Case, 'name' | 'expect'>) {
  const examined = await provider.examine(evidenceOf(dataOf(one)));
  if (!examined.ok) throw new Error(JSON.stringify(examined.problem));
  return examined.value.once;
}

describe('a proof', () => {
  test('is remembered until it is too old, under a name that does not depend on the signature', async () => {
    const [first, second] = [await onceOf({}), await onceOf({})];
    expect(first).toEqual([
      {
        kind: 'x509',
        id: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        expiresAt: world.now - 20_000 + 5 * world.minute,
      },
    ]);
    // ECDSA signs with a random number: the two signatures differ.
    expect(dataOf({})).not.toEqual(dataOf({}));
    expect(second).toEqual(first);
  });

  test('is another one with another nonce, and with the key of another machine', async () => {
    const key = keyOf('other machine');
    const ids = [
      await onceOf({}),
      await onceOf({ nonce: world.nonceAt(world.now) }),
      await onceOf({ key, chain: [world.leaf({ key }), world.certificates.intermediate] }),
    ].map(([once]) => once?.id);
    expect(new Set(ids).size).toBe(3);
  });
});

describe('the identity', () => {
  test('stays the same when the certificate, its key and the intermediate are renewed', async () => {
    const key = keyOf('new machine key', 'Ed25519');
    const ca = keyOf('new intermediate');
    const chain = [world.leaf({ key, signer: ca, subject: name('renewed') }), world.intermediate({ key: ca })];
    const { machine } = await judge(x509Provider, { name: '', expect: 'accepted', key, chain });
    expect(machine?.identity).toBe(identity);
  });

  test('describes the machine to requests without evidence: its names by the rule, and no address', async () => {
    expect(await provider.describe(identity, world.now)).toEqual({
      kind: 'running',
      violations: [],
      machine: {
        identity,
        providerId: `x509:///${world.spiffeId}`,
        nodeNames: ['worker-1'],
        addresses: [],
        dnsNames: [],
      },
    });
  });

  test.for([
    'x509#other/uri/spiffe://prod.example/node/worker-1',
    'x509#prod/cn/spiffe://prod.example/node/worker-1',
    'x509#prod/uri/spiffe://prod.example/pod/worker-1',
    'aws#aws/111122223333/eu-central-1/i-0123456789abcdef0',
  ])('%s, which no rule gives any more, keeps its name and gets nothing', async (other) => {
    expect(await provider.describe(other, world.now)).toEqual({ kind: 'stopped' });
  });
});

test('a certificate of the configuration that cannot be read is an error, and not a refusal of every machine', () => {
  for (const certificates of [['no PEM'], [world.pem(world.root({ version: 0, extensions: [] }))]])
    expect(() => x509Provider({ ...world.policy, roots: [{ name: 'prod', certificates }] })).toThrow(
      'a certificate under attestation.x509',
    );
});

test('a node calls itself by its URI, else its common name, else its DNS name', () => {
  const nameIn = (extensions: readonly Buffer[], subject: Buffer): string | undefined => {
    const decoded = decodeCertificate(world.leaf({ extensions, subject }));
    return decoded.ok ? usualName(decoded.value.names) : decoded.problem;
  };
  const dns = subjectAltName(general.dns('A.example'), general.dns('b.example'));
  expect(nameIn(Object.values(world.leafExtensions), name('cn'))).toBe(world.spiffeId);
  expect(nameIn([dns], name('cn'))).toBe('cn');
  expect(nameIn([dns], name([['2.5.4.10', 'Example']]))).toBe('a.example');
  expect(nameIn([], name([['2.5.4.10', 'Example']]))).toBeUndefined();
});

test('changed evidence is refused by name, or read as another reader reads it', async () => {
  const { refused, accepted, faults, reasons } = await runX509Campaign(1, 1_500);
  expect(faults).toEqual([]);
  expect(refused).toBeGreaterThan(1_000);
  expect(accepted).toBeGreaterThan(10);
  expect(reasons.size).toBeGreaterThan(15);
});
