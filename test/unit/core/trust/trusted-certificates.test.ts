import { describe, expect, test } from 'vitest';
import type { Profile } from '../../../../core/policy/profile.ts';
import { generationsOf } from '../../../../core/configuration/model/generations.ts';
import { trustedCertificates } from '../../../../core/trust/trusted-certificates.ts';

const der = (text: string) => new TextEncoder().encode(text);
const cas = (...pairs: readonly (readonly [string, string?])[]) =>
  new Map(pairs.map(([name, replaces]) => [name, { name, ...(replaces === undefined ? {} : { replaces }) }]));
/** `chain`: the names of the CAs above, the root last. */
const records = (...list: readonly (readonly [string, ...string[]])[]) =>
  new Map(list.map(([name, ...chain]) => [name, { certificate: der(name), chain: chain.map(der) }]));
const custom = (...allowed: string[]): Pick<Profile, 'kind' | 'custom'> => ({
  kind: 'custom',
  custom: { usages: { allowed, required: [] }, sans: { dns: [], email: [], ip: [], uri: [], required: false } },
});
const text = (trusted: ReturnType<typeof trustedCertificates>) =>
  trusted.map(({ ca, certificate }) => `${ca}: ${Buffer.from(certificate).toString()}`);

describe('the anchor', () => {
  const belowRoot = records(['ca', 'between', 'root']);
  test.each<readonly [string, Pick<Profile, 'kind' | 'custom'>, 'ca' | 'root']>([
    ['of clients of the API server: the issuing CA', { kind: 'kube-apiserver-client' }, 'ca'],
    ['of kubelets as clients', { kind: 'kube-apiserver-client-kubelet' }, 'ca'],
    ['of a signer with any usage', { kind: 'legacy-unknown' }, 'ca'],
    ['of an own signer of clients and servers', custom('server auth', 'client auth'), 'ca'],
    ['of an own signer with usage any', custom('any'), 'ca'],
    ['of kubelets as servers: the root', { kind: 'kubelet-serving' }, 'root'],
    ['of an own signer of servers', custom('server auth', 'digital signature'), 'root'],
  ])('%s', (_, profile, anchor) => {
    expect(text(trustedCertificates({ ...profile, ca: 'ca' }, cas(['ca']), belowRoot))).toEqual([`ca: ${anchor}`]);
  });

  test('of a self-signed CA is its certificate', () => {
    expect(text(trustedCertificates({ kind: 'kubelet-serving', ca: 'ca' }, cas(['ca']), records(['ca'])))).toEqual([
      'ca: ca',
    ]);
  });
});

describe('during a rotation', () => {
  const line = cas(['new', 'ca'], ['ca', 'old'], ['old'], ['unrelated'], ['next', 'unrelated']);
  const client = { kind: 'kube-apiserver-client', ca: 'ca' } as const;

  test('old and new are trusted, whichever of them signs, in one order', () => {
    for (const ca of ['old', 'ca', 'new']) expect(generationsOf(ca, line)).toEqual(['old', 'ca', 'new']);
    expect(text(trustedCertificates(client, line, records(['old'], ['ca'], ['new'], ['unrelated'], ['next'])))).toEqual(
      ['old: old', 'ca: ca', 'new: new'],
    );
  });

  test('a CA that is not in force is left out', () => {
    expect(text(trustedCertificates(client, line, records(['old'], ['ca'])))).toEqual(['old: old', 'ca: ca']);
    expect(trustedCertificates(client, line, records(['unrelated']))).toEqual([]);
  });

  test('one root of two CAs is named once', () => {
    const serving = { kind: 'kubelet-serving', ca: 'ca' } as const;
    const rotated = records(['old', 'root'], ['ca', 'root'], ['new', 'other root']);
    expect(text(trustedCertificates(serving, line, rotated))).toEqual(['old: root', 'new: other root']);
  });

  test('the end of the rotation removes the old one', () => {
    expect(generationsOf('new', cas(['new']))).toEqual(['new']);
  });
});
