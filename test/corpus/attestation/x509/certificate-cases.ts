/** What one certificate shows by itself, the machine's or that of a CA. */
import * as der from '../../../harness/x509/der-writer.ts';
import {
  basicConstraints,
  extension,
  extKeyUsage,
  general,
  keyOf,
  keyUsage,
  name,
  subjectAltName,
} from '../../../harness/x509/certificate-writer.ts';
import type { SigningAlgorithmName } from '../../../harness/x509/certificate-writer.ts';
import * as world from './machine.ts';
import type { Change } from './machine.ts';
import type { Case } from './judge.ts';

const invalid = (check: string) => ['AttestationInvalid', check] as const;
const day = 86_400_000;
const weak = invalid('has a key that is not accepted');
const badAlgorithm = invalid('is signed with an algorithm that is not accepted');
const notDer = invalid('is not an X.509 v3 certificate in DER');

const leaf = (change: Change): Pick<Case, 'chain'> => ({
  chain: [world.leaf(change), world.certificates.intermediate],
});
const leafWith = (...args: Parameters<typeof world.leafExtensionsBut>): Pick<Case, 'chain'> =>
  leaf({ extensions: world.leafExtensionsBut(...args) });
const ca = (change: Change): Pick<Case, 'chain'> => ({ chain: [world.certificates.leaf, world.intermediate(change)] });
const caWith = (...extensions: readonly Buffer[]): Pick<Case, 'chain'> => ca({ extensions });
const isCa = basicConstraints(true, 0);
const rootIs = (change: Change): Pick<Case, 'policy'> => ({
  policy: { roots: [{ name: 'prod', certificates: [world.pem(world.root(change))] }] },
});

/** The machine's certificate, signed by an intermediate CA with such a key and algorithm. */
function signedWith(algorithm: SigningAlgorithmName, kind: Parameters<typeof keyOf>[1]): Pick<Case, 'chain'> {
  const key = keyOf('intermediate', kind);
  return { chain: [world.leaf({ signer: key, algorithm }), world.intermediate({ key })] };
}

/** A PrintableString with `_`. */
const unreadable = der.sequence(der.set(der.sequence(der.oid('2.5.4.3'), der.printable('Factory_CA'))));

export const certificateCases: readonly Case[] = [
  // The encoding.
  {
    name: 'trailing bytes',
    expect: notDer,
    chain: [Buffer.concat([world.certificates.leaf, Buffer.of(0)]), world.certificates.intermediate],
  },
  { name: 'X.509 v1', expect: notDer, ...leaf({ version: 0, extensions: [] }) },
  { name: 'an extension twice', expect: notDer, ...leafWith({}, keyUsage(0)) },
  {
    name: 'an indefinite length',
    expect: notDer,
    chain: [
      Buffer.concat([Buffer.of(0x30, 0x80), world.certificates.leaf.subarray(4), Buffer.of(0, 0)]),
      world.certificates.intermediate,
    ],
  },
  {
    name: 'an invalid URI',
    expect: invalid('has a subjectAltName that cannot be read'),
    ...leafWith({ subjectAltName: subjectAltName(general.uri('spiffe://prod.example/node/worker-1\0.evil')) }),
  },
  {
    name: 'a subject that cannot be read',
    expect: invalid('has a subject that cannot be read'),
    ...leaf({ subject: name('a\nb') }),
  },
  {
    name: 'a CA with a subject that cannot be read, which no decision needs',
    expect: 'accepted',
    chain: [
      world.leaf({ issuer: unreadable, extensions: Object.values(world.leafExtensions) }),
      world.intermediate({ subject: unreadable }),
    ],
  },
  {
    name: 'basicConstraints that are no sequence',
    expect: invalid('has basicConstraints that cannot be read'),
    ...leafWith({ basicConstraints: extension('2.5.29.19', der.boolean(true), true) }),
  },
  {
    name: 'a negative path length',
    expect: invalid('has basicConstraints that cannot be read'),
    ...caWith(extension('2.5.29.19', der.sequence(der.boolean(true), der.tlv(2, Buffer.of(0xff))), true), keyUsage(5)),
  },
  {
    name: 'a path length of two octets',
    expect: invalid('has basicConstraints that cannot be read'),
    ...caWith(extension('2.5.29.19', der.sequence(der.boolean(true), der.integer(256)), true), keyUsage(5)),
  },
  {
    name: 'a path length that is no number',
    expect: invalid('has basicConstraints that cannot be read'),
    ...caWith(extension('2.5.29.19', der.sequence(der.boolean(true), der.octets(Buffer.of(0))), true), keyUsage(5)),
  },
  {
    name: 'two path lengths',
    expect: invalid('has basicConstraints that cannot be read'),
    ...caWith(
      extension('2.5.29.19', der.sequence(der.boolean(true), der.integer(0), der.integer(5)), true),
      keyUsage(5),
    ),
  },
  {
    name: 'a keyUsage that is no bit string',
    expect: invalid('has a keyUsage that cannot be read'),
    ...leafWith({ keyUsage: extension('2.5.29.15', der.integer(128), true) }),
  },
  {
    name: 'an extKeyUsage that is empty',
    expect: invalid('has an extKeyUsage that cannot be read'),
    ...leafWith({ extKeyUsage: extKeyUsage() }),
  },
  {
    name: 'an extKeyUsage with something else in it',
    expect: invalid('has an extKeyUsage that cannot be read'),
    ...leafWith({ extKeyUsage: extension('2.5.29.37', der.sequence(der.oid(world.purpose), der.nothing())) }),
  },

  // Validity, of every certificate.
  {
    name: 'a certificate that expired',
    expect: invalid('expired at 2026-11-22T11:59:59.000Z'),
    ...leaf({ notAfter: world.now - 1_000 }),
  },
  { name: 'a certificate in its last second', expect: 'accepted', ...leaf({ notAfter: world.now }) },
  {
    name: 'a certificate that is not valid yet',
    expect: invalid('is valid only from 2026-11-22T12:00:01.000Z on'),
    ...leaf({ notBefore: world.now + 1_000 }),
  },
  { name: 'a certificate in its first second', expect: 'accepted', ...leaf({ notBefore: world.now }) },
  {
    name: 'an intermediate that expired',
    expect: invalid('certificate "CN=Intermediate" expired at'),
    ...ca({ notAfter: world.now - day / 2 }),
  },
  {
    name: 'an intermediate that is not valid yet',
    expect: invalid('certificate "CN=Intermediate" is valid only from'),
    ...ca({ notBefore: world.now + day / 2 }),
  },
  {
    name: 'a root that expired',
    expect: invalid('certificate "CN=Root" expired at'),
    ...rootIs({ notAfter: world.now - 1_000 }),
  },
  {
    name: 'a root that is not valid yet',
    expect: invalid('certificate "CN=Root" is valid only from'),
    ...rootIs({ notBefore: world.now + 1_000 }),
  },

  // Algorithms.
  { name: 'signed with SHA-1 and RSA', expect: badAlgorithm, ...signedWith('RSA SHA-1', 'RSA-2048') },
  { name: 'signed with SHA-1 and ECDSA', expect: badAlgorithm, ...leaf({ algorithm: 'ECDSA SHA-1' }) },
  { name: 'an intermediate signed with SHA-1', expect: badAlgorithm, ...ca({ algorithm: 'ECDSA SHA-1' }) },
  {
    name: 'two signature algorithms',
    expect: invalid('names two signature algorithms'),
    ...leaf({ innerAlgorithm: 'ECDSA SHA-384' }),
  },
  ...(
    [
      ['RSA SHA-256', 'RSA-2048'],
      ['RSA SHA-512', 'RSA-2048'],
      ['PSS SHA-256', 'RSA-2048'],
      ['ECDSA SHA-256', 'P-384'],
      ['ECDSA SHA-384', 'P-384'],
      ['ECDSA SHA-384', 'P-521'],
      ['Ed25519', 'Ed25519'],
    ] as const
  ).map(([algorithm, kind]) => ({
    name: `signed with ${algorithm} by a CA with a key ${kind}`,
    expect: 'accepted' as const,
    ...signedWith(algorithm, kind),
  })),

  {
    name: 'a root signed with SHA-1',
    expect: 'accepted',
    ...rootIs({ algorithm: 'ECDSA SHA-1' }),
  },
  {
    name: 'a root whose algorithm has NULL parameters',
    expect: 'accepted',
    ...rootIs({ algorithm: 'ECDSA SHA-256 NULL' }),
  },
  {
    name: 'an intermediate whose algorithm has NULL parameters',
    expect: badAlgorithm,
    ...ca({ algorithm: 'ECDSA SHA-256 NULL' }),
  },

  // Keys.
  {
    name: 'a machine with an RSA key of 1024 bits',
    expect: weak,
    ...leaf({ key: keyOf('machine', 'RSA-1024') }),
    key: keyOf('machine', 'RSA-1024'),
  },
  {
    name: 'a machine with a key P-224',
    expect: weak,
    ...leaf({ key: keyOf('machine', 'P-224') }),
    key: keyOf('machine', 'P-224'),
  },
  {
    name: 'a machine with a key secp256k1',
    expect: weak,
    ...leaf({ key: keyOf('machine', 'secp256k1') }),
    key: keyOf('machine', 'secp256k1'),
  },
  { name: 'an intermediate with an RSA key of 1024 bits', expect: weak, ...signedWith('RSA SHA-256', 'RSA-1024') },

  // Extensions that are critical and not known.
  {
    name: 'an unknown critical extension',
    expect: invalid('has the critical extension 1.3.6.1.4.1.34380.1.1.1, which is not judged here'),
    ...leafWith({}, extension('1.3.6.1.4.1.34380.1.1.1', der.utf8('x'), true)),
  },
  {
    name: 'an unknown extension that is not critical',
    expect: 'accepted',
    ...leafWith({}, extension('1.3.6.1.4.1.34380.1.1.1', der.utf8('x'))),
  },
  {
    name: 'critical policy constraints of an intermediate',
    expect: invalid('certificate "CN=Intermediate" has the critical extension 2.5.29.36'),
    ...caWith(isCa, keyUsage(5), extension('2.5.29.36', der.sequence(der.primitive(0, Buffer.of(0))), true)),
  },
  {
    name: 'critical certificate policies, which limit nothing without constraints',
    expect: 'accepted',
    ...caWith(isCa, keyUsage(5), extension('2.5.29.32', der.sequence(der.sequence(der.oid('1.2.3'))), true)),
  },
  {
    name: 'an unknown critical extension of the root',
    expect: invalid('certificate "CN=Root" has the critical extension 1.2.3'),
    ...rootIs({ extensions: [basicConstraints(true), keyUsage(5), extension('1.2.3', der.nothing(), true)] }),
  },

  // What the certificate of a machine must be.
  {
    name: 'a CA instead of a machine',
    expect: invalid('is a CA and not of a machine'),
    ...leafWith({ basicConstraints: basicConstraints(true) }),
  },
  { name: 'no basicConstraints', expect: 'accepted', ...leafWith({ basicConstraints: undefined }) },
  {
    name: 'a path length without a CA',
    expect: 'accepted',
    ...leafWith({ basicConstraints: basicConstraints(false, 3) }),
  },
  {
    name: 'a key that may sign certificates',
    expect: invalid('has a key that may sign certificates (keyUsage)'),
    ...leafWith({ keyUsage: keyUsage(0, 5) }),
  },
  {
    name: 'a key that may only encrypt',
    expect: invalid('has a key that may not sign (keyUsage)'),
    ...leafWith({ keyUsage: keyUsage(2) }),
  },
  { name: 'no keyUsage', expect: 'accepted', ...leafWith({ keyUsage: undefined }) },
  {
    name: 'no extended key usage',
    expect: invalid(`the certificate of the machine is not for ${world.purpose} (extKeyUsage)`),
    ...leafWith({ extKeyUsage: undefined }),
  },
  {
    name: 'another extended key usage',
    expect: invalid(`the certificate of the machine is not for ${world.purpose} (extKeyUsage)`),
    ...leafWith({ extKeyUsage: extKeyUsage('1.3.6.1.5.5.7.3.1') }),
  },
  {
    name: 'any extended key usage, which names no purpose',
    expect: invalid(`the certificate of the machine is not for ${world.purpose} (extKeyUsage)`),
    ...leafWith({ extKeyUsage: extKeyUsage('2.5.29.37.0') }),
  },
  {
    name: 'no extended key usage where it is unchecked',
    expect: 'accepted',
    ...leafWith({ extKeyUsage: undefined }),
    policy: { rules: [unchecked()] },
  },
  {
    name: 'the extended key usage of the rule',
    expect: 'accepted',
    ...leafWith({ extKeyUsage: extKeyUsage('1.2.3.4') }),
    rule: { extKeyUsage: '1.2.3.4' },
  },

  // What a CA must be.
  {
    name: 'a machine as CA',
    expect: invalid('certificate "CN=Intermediate" is not a CA'),
    ...caWith(basicConstraints(false), keyUsage(0)),
  },
  {
    name: 'a CA without basicConstraints',
    expect: invalid('certificate "CN=Intermediate" is not a CA'),
    ...caWith(keyUsage(5)),
  },
  {
    name: 'a CA that may not sign certificates',
    expect: invalid('certificate "CN=Intermediate" has a key that may not sign certificates'),
    ...caWith(isCa, keyUsage(0, 6)),
  },
  { name: 'a CA without keyUsage', expect: 'accepted', ...caWith(isCa) },
  {
    name: 'a root that is no CA',
    expect: invalid('certificate "CN=Root" is not a CA'),
    ...rootIs({ extensions: [keyUsage(5)] }),
  },
  {
    name: 'a root that may not sign certificates',
    expect: invalid('certificate "CN=Root" has a key that may not sign certificates'),
    ...rootIs({ extensions: [basicConstraints(true), keyUsage(0)] }),
  },
  {
    name: 'a root that permits no CA below it',
    expect: invalid('certificate "CN=Root" does not permit so many CAs below it'),
    ...rootIs({ extensions: [basicConstraints(true, 0), keyUsage(5)] }),
  },
  {
    name: 'a root that permits one CA below it',
    expect: 'accepted',
    ...rootIs({ extensions: [basicConstraints(true, 1), keyUsage(5)] }),
  },
  {
    name: 'a CA for other purposes',
    expect: invalid(`certificate "CN=Intermediate" does not permit ${world.purpose} below it`),
    ...caWith(isCa, keyUsage(5), extKeyUsage('1.3.6.1.5.5.7.3.3')),
  },
  { name: 'a CA for this purpose', expect: 'accepted', ...caWith(isCa, keyUsage(5), extKeyUsage(world.purpose)) },
  { name: 'a CA for any purpose', expect: 'accepted', ...caWith(isCa, keyUsage(5), extKeyUsage('2.5.29.37.0')) },
];

function unchecked() {
  const { extKeyUsage: _, ...rest } = world.rule;
  return rest;
}
