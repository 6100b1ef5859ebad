import { algorithmIdentifiers } from '../../../../core/x509/model.ts';
import { X509Certificate, createHash, createPublicKey, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { buildCaTbs, caValidity } from '../../../../core/x509/ca-certificate.ts';
import { certificateFacts } from '../../../../core/x509/read-certificate.ts';
import { checkCertificate } from '../../../../core/x509/check-issued.ts';
import { assembleCertificate, buildTbs } from '../../../../core/x509/leaf-certificate.ts';
import type { Authority, LeafTemplate } from '../../../../core/x509/leaf-certificate.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import type { CertificateRequest } from '../../../../core/x509/model.ts';
import { encodingOf, oidOf, readDer } from '../../../../core/encoding/der-reader.ts';
import { serialFrom, validity } from '../../../../core/x509/validity.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import type { SignatureAlgorithm } from '../../../../core/ports/signer.ts';
import { maxSubjectAltNames } from '../../../../core/x509/subject-alt-names.ts';
import { knownUsages } from '../../../../core/x509/key-usages.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import { encodeSubject, makeRequest, newKey, sharedKey } from '../../../harness/x509/requests.ts';
import type { RequestSpec, TestKey } from '../../../harness/x509/requests.ts';

const now = Date.UTC(2026, 10, 21, 10, 0, 0);
const subject = { O: 'system:nodes', CN: 'system:node:n1' };
const usages = ['digital signature', 'client auth'];

function decoded(bytes: Uint8Array): CertificateRequest {
  const answer = decodeRequest(bytes);
  if (!answer.ok) throw new Error(JSON.stringify(answer.problem));
  return answer.value;
}

function authorityOf(
  certificate: Uint8Array,
  key?: TestKey,
  algorithm: SignatureAlgorithm = 'ECDSA_SHA_256',
): Authority {
  const signer = {
    keyId: 'test',
    algorithm,
    sign: (tbs: Uint8Array) =>
      key === undefined
        ? Promise.reject(new Error('no key'))
        : Promise.resolve({
            bytes: sign(digestOf(algorithm), tbs, { key: key.privateKey, ...paddingOf(algorithm) }),
          }),
  };
  return { name: 'test', certificate, intermediates: [], signer };
}

function digestOf(algorithm: SignatureAlgorithm): string {
  return `sha${algorithm.slice(-3)}`;
}

function paddingOf(algorithm: SignatureAlgorithm): { padding?: number; saltLength?: number } {
  return algorithm.startsWith('RSASSA_PSS') ? { padding: 6, saltLength: Number(algorithm.slice(-3)) / 8 } : {};
}

async function newAuthority(
  key = sharedKey('P-256'),
  algorithm: SignatureAlgorithm = 'ECDSA_SHA_256',
  seconds = 3650 * 86_400,
): Promise<Authority> {
  const tbs = buildCaTbs({
    subject: { commonName: 'Test CA', organization: 'Example' },
    spki: key.spki,
    algorithm,
    serial: serialFrom(Buffer.alloc(16, 9)),
    ...caValidity(now, seconds),
    pathLength: 0,
  });
  const unsigned = authorityOf(Buffer.alloc(0), key, algorithm);
  return authorityOf(assembleCertificate(tbs, (await unsigned.signer.sign(tbs)).bytes, algorithm), key, algorithm);
}

function template(spec: RequestSpec = {}, more: Partial<LeafTemplate> = {}): LeafTemplate {
  return {
    request: decoded(makeRequest({ key: 'Ed25519', subject, ...spec }).bytes),
    usages,
    serial: serialFrom(Buffer.alloc(16, 1)),
    notBefore: now - 300_000,
    notAfter: now + 86_100_000,
    ...more,
  };
}

async function issue(leaf: LeafTemplate, authority: Authority): Promise<{ certificate: Uint8Array; tbs: Uint8Array }> {
  const tbs = buildTbs(leaf, authority);
  const { signer } = authority;
  return { certificate: assembleCertificate(tbs, (await signer.sign(tbs)).bytes, signer.algorithm), tbs };
}

interface Vectors {
  readonly now: number;
  readonly ca: string;
  readonly vectors: readonly {
    readonly name: string;
    readonly usages: readonly string[];
    readonly ttlSeconds: number;
    readonly request: string;
    readonly certificate: string;
  }[];
}

describe("the in-tree signer's certificates, byte for byte but for our subject key identifier", () => {
  const file = JSON.parse(
    readFileSync(new URL('../in-tree-certificates.json', import.meta.url), 'utf8'),
  ) as unknown as Vectors;
  const authority = authorityOf(new X509Certificate(file.ca).raw);

  test.each(file.vectors.map((vector) => [vector.name, vector] as const))('%s', (_, vector) => {
    const theirs = certificateFacts(new X509Certificate(vector.certificate).raw);
    const { notAfter: caNotAfter } = certificateFacts(authority.certificate);
    const span = validity({
      maxTtlSeconds: vector.ttlSeconds,
      expirationSeconds: undefined,
      caNotAfter,
      now: file.now,
    });
    const serial = Buffer.from(theirs.serial, 'hex');
    const request = decoded(Buffer.from(vector.request));
    const ours = buildTbs({ request, usages: vector.usages, serial, ...span }, authority);
    expect(withoutSubjectKeyIdentifier(ours).toString('hex')).toBe(Buffer.from(theirs.tbs).toString('hex'));
  });
});

function withoutSubjectKeyIdentifier(tbs: Uint8Array): Buffer {
  const root = readDer(tbs);
  if (!root.ok) throw new Error(root.problem);
  const fields = root.value.children.slice(0, -1).map((field) => encodingOf(field));
  const extensions = root.value.children.at(-1)!.children[0]!.children;
  const kept = extensions.filter((extension) => oidOf(extension.children[0]) !== '2.5.29.14');
  expect(kept).toHaveLength(extensions.length - 1);
  return der.sequence(...fields, der.constructed(3, der.sequence(...kept.map((extension) => encodingOf(extension)))));
}

describe('a leaf', () => {
  test('as OpenSSL reads it', async () => {
    const key = newKey('RSA-2048');
    const leaf = template({ key, sans: { dns: ['n1'], ip: ['10.0.0.1'] } });
    const authority = await newAuthority();
    const { certificate, tbs } = await issue(leaf, authority);
    expect(checkCertificate(certificate, tbs, authority, leaf.request)).toEqual([]);
    const seen = new X509Certificate(toPem('CERTIFICATE', certificate));
    expect(seen.subject).toBe('O=system:nodes\nCN=system:node:n1');
    expect(seen.issuer).toBe('O=Example\nCN=Test CA');
    expect(seen.subjectAltName).toBe('DNS:n1, IP Address:10.0.0.1');
    expect(seen.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(seen.serialNumber).toBe(`41${'01'.repeat(15)}`);
    expect([seen.validFromDate.getTime(), seen.validToDate.getTime()]).toEqual([now - 300_000, now + 86_100_000]);
    expect(seen.publicKey.equals(createPublicKey(key.privateKey))).toBe(true);
    expect(seen.verify(createPublicKey(sharedKey('P-256').privateKey))).toBe(true);
    expect(seen.ca).toBe(false);
  });

  test.each<[TestKey['kind'], SignatureAlgorithm]>([
    ['P-256', 'ECDSA_SHA_256'],
    ['P-384', 'ECDSA_SHA_384'],
    ['P-521', 'ECDSA_SHA_512'],
    ['RSA-2048', 'RSASSA_PKCS1_V1_5_SHA_256'],
    ['RSA-2048', 'RSASSA_PKCS1_V1_5_SHA_384'],
    ['RSA-2048', 'RSASSA_PKCS1_V1_5_SHA_512'],
    ['RSA-2048', 'RSASSA_PSS_SHA_256'],
    ['RSA-2048', 'RSASSA_PSS_SHA_384'],
    ['RSA-2048', 'RSASSA_PSS_SHA_512'],
  ])('signed with %s, %s', async (kind, algorithm) => {
    const authority = await newAuthority(sharedKey(kind), algorithm);
    const leaf = template();
    const { certificate, tbs } = await issue(leaf, authority);
    expect(checkCertificate(certificate, tbs, authority, leaf.request)).toEqual([]);
  });

  test('the subject key identifier is the start of SHA-256 over the key (RFC 7093)', async () => {
    const { certificate } = await issue(template({ key: 'P-384' }), await newAuthority());
    const point = sharedKey('P-384').spki.subarray(-97);
    expect(Buffer.from(certificateFacts(certificate).subjectKeyIdentifier!)).toEqual(
      createHash('sha256').update(point).digest().subarray(0, 20),
    );
  });

  test('the same template gives the same bytes', async () => {
    const authority = await newAuthority();
    const leaf = template({ sans: { dns: ['b', 'a'] } });
    expect(buildTbs(leaf, authority)).toEqual(buildTbs(leaf, authority));
  });

  test('no TBS for a usage outside the table, or an invalid serial number', async () => {
    const authority = await newAuthority();
    expect(() => buildTbs(template({}, { usages: ['client auth', 'toString'] }), authority)).toThrow(RangeError);
    for (const serial of ['', '00', '0011', '11'.repeat(21)])
      expect(() => buildTbs(template({}, { serial: Buffer.from(serial, 'hex') }), authority)).toThrow(RangeError);
  });

  test('an empty subject and the subject of the CA itself are signed, as in-tree: the policy refuses them', async () => {
    const authority = await newAuthority();
    for (const name of [[], { O: 'Example', CN: 'Test CA' }]) {
      const { certificate, tbs } = await issue(template({ subject: name }), authority);
      expect(checkCertificate(certificate, tbs, authority, template().request)).toEqual([]);
    }
  });

  test('a serial number with its top bit set stays positive', async () => {
    const authority = await newAuthority();
    const { certificate, tbs } = await issue(template({}, { serial: Buffer.alloc(16, 0xff) }), authority);
    expect(checkCertificate(certificate, tbs, authority, template().request)).toEqual([]);
    expect(certificateFacts(certificate).serial).toBe('ff'.repeat(16));
  });

  test('a CA without subject key identifier gives no authority key identifier, as in Go', async () => {
    const { certificate, signer } = await newAuthority();
    const tbs = withoutSubjectKeyIdentifier(certificateFacts(certificate).tbs);
    const bare = authorityOf(
      assembleCertificate(tbs, (await signer.sign(tbs)).bytes, signer.algorithm),
      sharedKey('P-256'),
    );
    const leaf = await issue(template(), bare);
    expect(certificateFacts(leaf.certificate).extensions.has('2.5.29.35')).toBe(false);
    expect(checkCertificate(leaf.certificate, leaf.tbs, bare, template().request)).toEqual([]);
  });

  test('the largest request: 256 names', async () => {
    const dns = Array.from({ length: maxSubjectAltNames }, (_, i) => `n${i}.example.com`);
    const authority = await newAuthority();
    const leaf = template({ sans: { dns } });
    const { certificate, tbs } = await issue(leaf, authority);
    expect(checkCertificate(certificate, tbs, authority, leaf.request)).toEqual([]);
    expect(new X509Certificate(certificate).subjectAltName?.split(', ')).toHaveLength(maxSubjectAltNames);
  });
});

/** A leaf in raw pieces: what a broken encoder, signer or store could hand over. */
interface RawLeaf {
  readonly version: Uint8Array;
  readonly serial: Uint8Array;
  readonly algorithm: Uint8Array;
  readonly issuer: Uint8Array;
  readonly validity: Uint8Array;
  readonly subject: Uint8Array;
  readonly spki: Uint8Array;
  readonly extensions: readonly Uint8Array[];
}

describe('what must not leave', async () => {
  const authority = await newAuthority();
  const leafKey = sharedKey('Ed25519');
  const request = template({ sans: { dns: ['n1'] } }).request;
  const good = await issue(template({ sans: { dns: ['n1'] } }), authority);
  const root = readDer(good.tbs);
  if (!root.ok) throw new Error(root.problem);
  const [version, serial, algorithm, issuer, span, name, spki, extensions] = root.value.children;
  const pieces: RawLeaf = {
    version: encodingOf(version!),
    serial: encodingOf(serial!),
    algorithm: encodingOf(algorithm!),
    issuer: encodingOf(issuer!),
    validity: encodingOf(span!),
    subject: encodingOf(name!),
    spki: encodingOf(spki!),
    extensions: extensions!.children[0]!.children.map((extension) => encodingOf(extension)),
  };
  const raw = (changes: Partial<RawLeaf>): Buffer => {
    const leaf = { ...pieces, ...changes };
    return der.sequence(
      leaf.version,
      leaf.serial,
      leaf.algorithm,
      leaf.issuer,
      leaf.validity,
      leaf.subject,
      leaf.spki,
      der.constructed(3, der.sequence(...leaf.extensions)),
    );
  };
  const extension = (oid: string, critical: boolean, value: Uint8Array): Buffer =>
    der.sequence(der.oid(oid), ...(critical ? [der.boolean(true)] : []), der.octets(value));
  const [keyUsage, extKeyUsage, constraints, subjectKey, authorityKey, alternative] = pieces.extensions as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  const utc = (text: string): Buffer => der.tlv(0x17, Buffer.from(text));
  const { subjectKeyIdentifier: caKeyId = Buffer.alloc(0) } = certificateFacts(authority.certificate);
  const signed = async (tbs: Uint8Array): Promise<Uint8Array> =>
    assembleCertificate(tbs, (await authority.signer.sign(tbs)).bytes, authority.signer.algorithm);

  test('the pieces together are the good one', async () => {
    expect(raw({})).toEqual(Buffer.from(good.tbs));
    expect(checkCertificate(await signed(raw({})), good.tbs, authority, request)).toEqual([]);
  });

  test.each<[string, string, Partial<RawLeaf>]>([
    [
      'a CA',
      'it does not say that it is no CA',
      {
        extensions: [
          keyUsage,
          extKeyUsage,
          extension('2.5.29.19', true, der.sequence(der.boolean(true))),
          subjectKey,
          authorityKey,
          alternative,
        ],
      },
    ],
    [
      'a path length',
      'it does not say that it is no CA',
      {
        extensions: [
          keyUsage,
          extKeyUsage,
          extension('2.5.29.19', true, der.sequence(der.integer(0))),
          subjectKey,
          authorityKey,
          alternative,
        ],
      },
    ],
    [
      'basic constraints that may be ignored',
      'it does not say that it is no CA',
      {
        extensions: [
          keyUsage,
          extKeyUsage,
          extension('2.5.29.19', false, der.sequence()),
          subjectKey,
          authorityKey,
          alternative,
        ],
      },
    ],
    [
      'no basic constraints',
      'it does not say that it is no CA',
      { extensions: [keyUsage, extKeyUsage, subjectKey, authorityKey, alternative] },
    ],
    [
      'a key usage that may be ignored',
      'its key usage is not critical',
      {
        extensions: [
          extension('2.5.29.15', false, der.bits(Buffer.from([0x80]), 7)),
          extKeyUsage,
          constraints,
          subjectKey,
          authorityKey,
          alternative,
        ],
      },
    ],
    [
      'an extension that was not asked for',
      'it has other extensions than a leaf',
      { extensions: [...pieces.extensions, extension('1.2.3.4', false, der.nothing())] },
    ],
    [
      'another order',
      'it has other extensions than a leaf',
      { extensions: [extKeyUsage, keyUsage, constraints, subjectKey, authorityKey, alternative] },
    ],
    ['an extension twice', 'it cannot be read back', { extensions: [...pieces.extensions, alternative] }],
    [
      "another's subject key identifier",
      'its subject key identifier is not that of its key',
      {
        extensions: [
          keyUsage,
          extKeyUsage,
          constraints,
          extension('2.5.29.14', false, der.octets(caKeyId)),
          authorityKey,
          alternative,
        ],
      },
    ],
    [
      'no subject key identifier',
      'its subject key identifier is not that of its key',
      { extensions: [keyUsage, extKeyUsage, constraints, authorityKey, alternative] },
    ],
    [
      "another's authority key identifier",
      'its authority key identifier is not that of the CA',
      {
        extensions: [
          keyUsage,
          extKeyUsage,
          constraints,
          subjectKey,
          extension('2.5.29.35', false, der.sequence(der.primitive(0, Buffer.alloc(20)))),
          alternative,
        ],
      },
    ],
    [
      'no authority key identifier',
      'its authority key identifier is not that of the CA',
      { extensions: [keyUsage, extKeyUsage, constraints, subjectKey, alternative] },
    ],
    [
      'critical names beside a subject',
      'the criticality of its alternative names',
      {
        extensions: [
          keyUsage,
          extKeyUsage,
          constraints,
          subjectKey,
          authorityKey,
          extension('2.5.29.17', true, der.sequence(der.primitive(2, Buffer.from('n1')))),
        ],
      },
    ],
    [
      'names that may be ignored beside no subject',
      'the criticality of its alternative names',
      { subject: der.sequence() },
    ],
    ['serial number 0', 'its serial number is not positive', { serial: der.integer(0) }],
    ['a negative serial number', 'its serial number is not positive', { serial: der.tlv(2, Buffer.alloc(16, 0x81)) }],
    [
      'a serial number of 21 octets',
      'its serial number has more than 20 octets',
      { serial: der.tlv(2, Buffer.alloc(21, 1)) },
    ],
    ['another issuer', 'its issuer is not the subject of the CA', { issuer: encodeSubject({ CN: 'other' }) }],
    [
      "the issuer's name in another string type",
      'its issuer is not the subject of the CA',
      { issuer: encodeSubject([[['O', der.utf8('Example')]], [['CN', der.utf8('Test CA')]]]) },
    ],
    ['no time', 'it is never valid', { validity: der.sequence(utc('270101000000Z'), utc('270101000000Z')) }],
    [
      'a time that ends before it starts',
      'it is never valid',
      { validity: der.sequence(utc('270101000000Z'), utc('260101000000Z')) },
    ],
    [
      'a time beyond the CA',
      'it is valid when its CA is not',
      { validity: der.sequence(utc('270101000000Z'), utc('370101000000Z')) },
    ],
    [
      'a time before the CA',
      'it is valid when its CA is not',
      { validity: der.sequence(utc('200101000000Z'), utc('210101000000Z')) },
    ],
    [
      'a time without seconds',
      'it cannot be read back',
      { validity: der.sequence(utc('2701010000Z'), utc('280101000000Z')) },
    ],
    ['another key', 'its key is not that of the request', { spki: newKey('Ed25519').spki }],
    ['version 1', 'it cannot be read back', { version: Buffer.alloc(0) }],
    ['BER', 'it cannot be read back', { serial: Buffer.from('02020001', 'hex') }],
    [
      'another algorithm inside',
      'its signature algorithm is not that of the CA key',
      { algorithm: algorithmIdentifiers.ECDSA_SHA_384 },
    ],
  ])('%s', async (_, fault, changes) => {
    const tbs = raw(changes);
    const faults = checkCertificate(await signed(tbs), tbs, authority, request);
    expect(faults.join('; ')).toContain(fault);
  });

  test('bytes other than those recorded', async () => {
    expect(checkCertificate(await signed(raw({ serial: der.integer(5) })), good.tbs, authority, request)).toEqual([
      'it is not what was recorded',
    ]);
  });

  test('a signature by another key', () => {
    const signature = sign('sha256', good.tbs, newKey('P-256').privateKey);
    const certificate = assembleCertificate(good.tbs, signature, 'ECDSA_SHA_256');
    expect(checkCertificate(certificate, good.tbs, authority, request)).toEqual([
      'its signature is not made with the key of the CA',
    ]);
  });

  test("a signature of other bytes, the leaf's own signature, no signature", async () => {
    const signatures = [
      (await authority.signer.sign(raw({ serial: der.integer(5) }))).bytes,
      sign(null, good.tbs, leafKey.privateKey),
      Buffer.alloc(0),
    ];
    for (const signature of signatures) {
      const certificate = assembleCertificate(good.tbs, signature, 'ECDSA_SHA_256');
      expect(checkCertificate(certificate, good.tbs, authority, request)).toEqual([
        'its signature is not made with the key of the CA',
      ]);
    }
  });

  test('another algorithm outside', async () => {
    const certificate = assembleCertificate(good.tbs, (await authority.signer.sign(good.tbs)).bytes, 'ECDSA_SHA_384');
    expect(checkCertificate(certificate, good.tbs, authority, request)).toContain(
      'its two signature algorithms differ',
    );
  });

  test.each<[string, (certificate: Uint8Array) => Uint8Array]>([
    ['nothing', () => Buffer.alloc(0)],
    ['a trailing byte', (certificate) => der.concat(certificate, Buffer.from([0]))],
    ['half of it', (certificate) => certificate.subarray(0, certificate.length / 2)],
    ['the TBS alone', () => good.tbs],
    ['PEM', (certificate) => Buffer.from(toPem('CERTIFICATE', certificate))],
  ])('%s', (_, change) => {
    expect(checkCertificate(change(good.certificate), good.tbs, authority, request)).toEqual([
      'it cannot be read back',
    ]);
  });

  test('every single bit of the certificate counts', () => {
    for (let i = 0; i < good.certificate.length; i++) {
      const changed = Uint8Array.from(good.certificate);
      changed[i]! ^= 1 << (i % 8);
      expect(checkCertificate(changed, good.tbs, authority, request), `byte ${i}`).not.toEqual([]);
    }
  });

  test('a leaf of another CA of the same name', async () => {
    const twin = await newAuthority(newKey('P-256'));
    const other = await issue(template(), twin);
    expect(checkCertificate(other.certificate, other.tbs, authority, request)).not.toEqual([]);
  });
});

test('all usages there are can be built', async () => {
  const authority = await newAuthority();
  for (const usage of knownUsages) {
    const { certificate, tbs } = await issue(template({}, { usages: [usage] }), authority);
    expect(checkCertificate(certificate, tbs, authority, template().request)).toEqual([]);
  }
});

describe('facts', () => {
  test('of a CA and of a leaf', async () => {
    const authority = await newAuthority();
    const ca = certificateFacts(authority.certificate);
    expect(ca).toMatchObject({ isCa: true, subject: 'O=Example, CN=Test CA', issuer: 'O=Example, CN=Test CA' });
    const { certificate } = await issue(template(), authority);
    const facts = certificateFacts(certificate);
    const seen = new X509Certificate(certificate);
    expect(facts).toMatchObject({ isCa: false, subject: 'O=system:nodes, CN=system:node:n1', issuer: ca.subject });
    expect(facts.fingerprintSha256).toBe(seen.fingerprint256.replaceAll(':', '').toLowerCase());
    expect(facts.serial).toBe(seen.serialNumber.toLowerCase());
    expect([facts.notBefore, facts.notAfter]).toEqual([seen.validFromDate.getTime(), seen.validToDate.getTime()]);
  });

  test('of times in both forms: two-digit years from 50 on are of the last century', async () => {
    const authority = await newAuthority();
    const { certificate } = await issue(template(), authority);
    const ends = (from: string, to: string): Uint8Array =>
      Buffer.from(
        Buffer.from(certificate).toString('latin1').replace('261121095500Z', from).replace('261122095500Z', to),
        'latin1',
      );
    expect(certificateFacts(ends('500101000000Z', '491231235959Z'))).toMatchObject({
      notBefore: Date.UTC(1950, 0, 1),
      notAfter: Date.UTC(2049, 11, 31, 23, 59, 59),
    });
    expect(() => certificateFacts(ends('26112109550+Z', '261122095500Z'))).toThrow('its validity cannot be read');
  });

  test('of what is no certificate', () => {
    for (const bytes of ['', '3000', '300630003000 0300'.replace(' ', '')])
      expect(() => certificateFacts(Buffer.from(bytes, 'hex'))).toThrow(/^not a certificate: /);
  });
});
