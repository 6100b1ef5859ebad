/**
 * What other verifiers refuse, or read in another way, must not become a CA: the subjects of x509-limbo's cases about CA certificates, and
 * what Go's parser refuses, since kube-apiserver does not start with such a certificate in a file of CAs.
 */
import { generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { checkImport } from '../../../../../core/ca/import/check-import.ts';
import type { ImportFaultName } from '../../../../../core/ca/import/faults.ts';
import { readImport } from '../../../../../core/ca/import/files.ts';
import type { ImportedCa } from '../../../../../core/configuration/model/cluster.ts';
import {
  basicConstraints,
  extension,
  general,
  keyIdentifiers,
  keyOf,
  keyUsage,
  name,
  spkiOf,
} from '../../../../harness/x509/certificate-writer.ts';
import * as der from '../../../../harness/x509/der-writer.ts';
import { caExtensions, importNow, keyId, pathKeys, pathPems } from '../../../../harness/x509/imported-path.ts';
import type { PathPems, PathSpec } from '../../../../harness/x509/imported-path.ts';

const ca: ImportedCa = {
  name: 'nodes',
  kind: 'imported',
  keyMaterial: 'kms',
  keySpec: 'P-256',
  signatureAlgorithm: 'ECDSA_SHA_256',
  subject: { commonName: 'prod nodes' },
  pathLen: 0,
};
const { own: ownKey, middle: middleKey, root: rootKey } = pathKeys;

async function outcome(texts: PathPems, configured: ImportedCa = ca) {
  const files = readImport(texts);
  if (!files.ok) throw new Error(files.problem.message);
  return checkImport(configured, files.value, spkiOf(ownKey), importNow);
}

type Change = Parameters<typeof caExtensions>[2];
const places = {
  own: (change: Change) =>
    pathPems({
      own: { extensions: caExtensions(ownKey, middleKey, { constraints: basicConstraints(true, 0), ...change }) },
    }),
  middle: (change: Change) => pathPems({ middle: { extensions: caExtensions(middleKey, rootKey, change) } }),
  root: (change: Change) => pathPems({ root: { extensions: caExtensions(rootKey, rootKey, change) } }),
};
type Place = keyof typeof places;
const everywhere: readonly Place[] = ['own', 'middle', 'root'];
const keys = { own: [ownKey, middleKey], middle: [middleKey, rootKey], root: [rootKey, rootKey] } as const;

const subjectKey = (key: KeyObject, critical = false): Buffer =>
  extension('2.5.29.14', der.octets(keyId(key)), critical);
const issuerKey = (...fields: readonly Buffer[]): Buffer => extension('2.5.29.35', der.sequence(...fields));
const named = (key: KeyObject): Buffer => der.primitive(0, keyId(key));

/** Refused on each certificate of the path. */
const onEach: readonly (readonly [what: string, why: ImportFaultName, change: (place: Place) => Change])[] = [
  [
    'a critical subjectKeyIdentifier',
    'UnknownCriticalExtension',
    (place) => ({ identifiers: [subjectKey(keys[place][0], true), issuerKey(named(keys[place][1]))] }),
  ],
  [
    'a critical authorityKeyIdentifier',
    'UnknownCriticalExtension',
    (place) => ({
      identifiers: [subjectKey(keys[place][0]), extension('2.5.29.35', der.sequence(named(keys[place][1])), true)],
    }),
  ],
  [
    'a critical authorityInfoAccess',
    'UnknownCriticalExtension',
    () => ({
      more: [
        extension(
          '1.3.6.1.5.5.7.1.1',
          der.sequence(der.sequence(der.oid('1.3.6.1.5.5.7.48.2'), general.uri('http://ca.example/ca.crt'))),
          true,
        ),
      ],
    }),
  ],
  [
    'a critical inhibitAnyPolicy',
    'UnknownCriticalExtension',
    () => ({ more: [extension('2.5.29.54', der.integer(0), true)] }),
  ],
  [
    'an unknown critical extension',
    'UnknownCriticalExtension',
    () => ({ more: [extension('1.2.3.4', der.nothing(), true)] }),
  ],
  [
    'policyConstraints that are not critical',
    'PolicyConstraints',
    () => ({ more: [extension('2.5.29.36', der.sequence(der.primitive(0, Buffer.of(0))))] }),
  ],
  [
    'name constraints that are not critical',
    'NameConstraints',
    () => ({
      more: [extension('2.5.29.30', der.sequence(der.constructed(0, der.sequence(general.dns('a.example')))))],
    }),
  ],
  [
    'basicConstraints that are not critical',
    'NotCa',
    () => ({ constraints: extension('2.5.29.19', der.sequence(der.boolean(true))) }),
  ],
  [
    'a pathLen and no CA bit',
    'NotCa',
    () => ({ constraints: extension('2.5.29.19', der.sequence(der.integer(3)), true) }),
  ],
  ['keyUsage without keyCertSign', 'NoCertSign', () => ({ usage: keyUsage(6) })],
  [
    'a keyUsage without any bit',
    'NoCertSign',
    () => ({ usage: extension('2.5.29.15', der.bits(Buffer.of(), 0), true) }),
  ],
  ['an extKeyUsage without any purpose', 'Unreadable', () => ({ more: [extension('2.5.29.37', der.sequence())] })],
  ...(
    [
      ['subjectKeyIdentifier', '2.5.29.14'],
      ['authorityKeyIdentifier', '2.5.29.35'],
    ] as const
  ).map(
    ([type, oid]) =>
      [
        `a ${type} that is an INTEGER`,
        'Unreadable',
        () => ({ identifiers: [extension(oid, der.integer(1))] }),
      ] as const,
  ),
  ...(
    [
      ['keyUsage', '2.5.29.15', 'usage'],
      ['basicConstraints', '2.5.29.19', 'constraints'],
    ] as const
  ).map(
    ([type, oid, key]) =>
      [`${type} that is an INTEGER`, 'Unreadable', () => ({ [key]: extension(oid, der.integer(1), true) })] as const,
  ),
  ...(
    [
      ['subjectAltName', '2.5.29.17'],
      ['certificatePolicies', '2.5.29.32'],
      ['cRLDistributionPoints', '2.5.29.31'],
      ['authorityInfoAccess', '1.3.6.1.5.5.7.1.1'],
    ] as const
  ).map(
    ([type, oid]) =>
      [`${type} that is an INTEGER`, 'Unreadable', () => ({ more: [extension(oid, der.integer(1))] })] as const,
  ),
];

describe('on each certificate of the path', () => {
  test.each(onEach)('%s: %s', async (_, why, change) => {
    for (const place of everywhere) {
      const result = await outcome(places[place](change(place)));
      expect(result.ok ? 'accepted' : result.problem.why, place).toBe(why);
    }
  });

  test.each<[string, ImportFaultName, NonNullable<PathSpec['own']>]>([
    ['the serial number 0', 'SerialNumber', { serial: 0n }],
    ['a negative serial number', 'SerialNumber', { serial: -1n }],
    ['a serial number of 21 octets', 'SerialNumber', { serial: 1n << 159n }],
    ['parameters of ECDSA', 'SignatureAlgorithm', { algorithm: 'ECDSA SHA-256 NULL' }],
    ['two signature algorithms', 'SignatureAlgorithm', { innerAlgorithm: 'ECDSA SHA-384' }],
    ['an end before its beginning', 'NotYetValid', { notBefore: importNow + 1_000, notAfter: importNow - 1_000 }],
    ['an end a second ago', 'Expired', { notAfter: importNow - 1_000 }],
    ['version 1', 'Unreadable', { version: 0, extensions: [] }],
  ])('%s: %s', async (_, why, change) => {
    for (const place of everywhere) {
      const result = await outcome(pathPems({ [place]: change }));
      expect(result.ok ? 'accepted' : result.problem.why, place).toBe(why);
    }
  });

  test('a name that Go does not read, and an empty one', async () => {
    const printable = der.sequence(der.set(der.sequence(der.oid('2.5.4.3'), der.tlv(0x13, Buffer.from('root@corp')))));
    const renamed = (subject: Buffer): Readonly<Record<string, PathPems>> => ({
      middle: pathPems({ own: { issuer: subject }, middle: { subject } }),
      root: pathPems({ middle: { issuer: subject }, root: { subject, issuer: subject } }),
    });
    for (const texts of Object.values(renamed(printable)))
      expect(await outcome(texts)).toMatchObject({ ok: false, problem: { why: 'Unreadable' } });
    for (const texts of Object.values(renamed(der.sequence())))
      expect(await outcome(texts)).toMatchObject({ ok: false, problem: { why: 'NoSubject' } });
  });

  test('the first and the last second of a certificate are in it', async () => {
    for (const place of everywhere)
      for (const dates of [{ notBefore: importNow }, { notAfter: importNow }])
        expect((await outcome(pathPems({ [place]: dates }))).ok).toBe(true);
  });
});

describe('who issued it', () => {
  test('another key in authorityKeyIdentifier than the one that signed: OpenSSL would not find the issuer', async () => {
    for (const texts of [
      places.own({ identifiers: keyIdentifiers(keyId(ownKey), keyId(rootKey)) }),
      places.middle({ identifiers: keyIdentifiers(keyId(middleKey), keyId(ownKey)) }),
      places.root({ identifiers: keyIdentifiers(keyId(rootKey), keyId(ownKey)) }),
      // The issuer’s issuer and serial number.
      places.own({ identifiers: [subjectKey(ownKey), issuerKey(named(middleKey), der.primitive(2, Buffer.of(9)))] }),
      places.own({
        identifiers: [
          subjectKey(ownKey),
          issuerKey(
            named(middleKey),
            der.constructed(1, general.directory('Corp Other')),
            der.primitive(2, Buffer.of(9)),
          ),
        ],
      }),
    ])
      expect(await outcome(texts)).toMatchObject({ ok: false, problem: { why: 'IssuerKeyMismatch' } });
    const serial = 0x1234n;
    const full = issuerKey(
      named(middleKey),
      der.constructed(1, general.directory('Corp Root')),
      der.primitive(2, Buffer.from('1234', 'hex')),
    );
    const extensions = caExtensions(ownKey, middleKey, {
      constraints: basicConstraints(true, 0),
      identifiers: [subjectKey(ownKey), full],
    });
    expect((await outcome(pathPems({ own: { extensions }, middle: { serial } }))).ok).toBe(true);
    const other = issuerKey(named(middleKey), der.constructed(1, general.directory('Corp Other')));
    expect(await outcome(places.own({ identifiers: [subjectKey(ownKey), other] }))).toMatchObject({ ok: false });
  });

  test('no authorityKeyIdentifier: a new certificate is refused, an existing one and those above are accepted with a note', async () => {
    const without = places.own({ identifiers: [subjectKey(ownKey)] });
    expect(await outcome(without)).toMatchObject({ ok: false, problem: { why: 'NoAuthorityKeyIdentifier' } });
    const onlySerial = places.own({ identifiers: [subjectKey(ownKey), issuerKey(der.primitive(2, Buffer.of(1)))] });
    expect(await outcome(onlySerial)).toMatchObject({ ok: false, problem: { why: 'NoAuthorityKeyIdentifier' } });
    const note = (what: string): object => ({
      ok: true,
      value: { notes: [`${what}: strict verifiers (Python from 3.13 on) refuse it.`] },
    });
    expect(await outcome(without, { ...ca, keyMaterial: 'imported' })).toMatchObject(
      note('The certificate of the CA lacks authorityKeyIdentifier'),
    );
    expect(await outcome(places.middle({ identifiers: [subjectKey(middleKey)] }))).toMatchObject(
      note('Certificate 1 of the chain lacks authorityKeyIdentifier'),
    );
    expect(await outcome(places.middle({ identifiers: [issuerKey(named(rootKey))] }))).toMatchObject(
      note('Certificate 1 of the chain lacks subjectKeyIdentifier'),
    );
    expect(await outcome(places.root({ identifiers: [] }))).toMatchObject(note('The root lacks subjectKeyIdentifier'));
  });

  test('a name of another string type, or in other letters, is another name, as for Go', async () => {
    const other = der.sequence(der.set(der.sequence(der.oid('2.5.4.3'), der.tlv(0x13, Buffer.from('Corp Middle')))));
    for (const issuer of [other, name('corp middle')])
      expect(await outcome(pathPems({ own: { issuer } }))).toMatchObject({
        ok: false,
        problem: { why: 'ChainIncomplete' },
      });
    expect(await outcome(pathPems({ own: { issuer: der.sequence() } }))).toMatchObject({
      ok: false,
      problem: { why: 'ChainIncomplete' },
    });
  });

  test('two CAs that signed each other lead to no root', async () => {
    const cycle = pathPems({
      middle: { issuer: name('Corp Root') },
      root: { issuer: name('Corp Middle'), signer: middleKey, extensions: caExtensions(rootKey, middleKey) },
    });
    expect(await outcome(cycle)).toMatchObject({ ok: false, problem: { why: 'RootNotSelfSigned' } });
  });

  test.each<[string, () => KeyObject]>([
    ['DSA', () => generateKeyPairSync('dsa', { modulusLength: 2048, divisorLength: 256 }).privateKey],
    ['RSA-PSS', () => generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).privateKey],
    ['P-256 with explicit parameters (CVE-2020-0601)', () => explicitKey()],
    ['P-224', () => keyOf('small', 'P-224')],
  ])('a root with a key of kind %s', async (_, make) => {
    const key = make();
    const texts = pathPems({
      middle: { signer: key, extensions: caExtensions(middleKey, key) },
      root: { key, signer: key, extensions: caExtensions(key, key) },
    });
    expect(await outcome(texts)).toMatchObject({ ok: false, problem: { why: 'KeyNotAccepted' } });
  });
});

function explicitKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256', paramEncoding: 'explicit' }).privateKey;
}
