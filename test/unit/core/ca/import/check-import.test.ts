/** Which CA certificates are imported, and the reason for each that is not. OpenSSL and Go judge the good ones in other suites. */
import { sign, X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { checkImport } from '../../../../../core/ca/import/check-import.ts';
import { importFaults } from '../../../../../core/ca/import/faults.ts';
import type { ImportFaultName } from '../../../../../core/ca/import/faults.ts';
import { readImport } from '../../../../../core/ca/import/files.ts';
import type { ImportTexts } from '../../../../../core/ca/import/files.ts';
import type { ImportedCa } from '../../../../../core/configuration/model/cluster.ts';
import {
  basicConstraints,
  extension,
  extKeyUsage,
  general,
  keyIdentifiers,
  keyOf,
  keyUsage,
  name,
  nameConstraints,
  purposes,
  signingAlgorithms,
  spkiOf,
  subjectAltName,
  writeCertificate,
} from '../../../../harness/x509/certificate-writer.ts';
import * as der from '../../../../harness/x509/der-writer.ts';
import {
  caExtensions,
  importNow,
  keyId,
  pathDer,
  pathKeys,
  pathPems,
  pem,
  unknownExtension,
} from '../../../../harness/x509/imported-path.ts';
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
const day = 86_400_000;
const { own: ownKey, middle: middleKey, root: rootKey } = pathKeys;

async function outcome(texts: ImportTexts, configured: ImportedCa = ca, key = ownKey) {
  const files = readImport(texts);
  return files.ok ? checkImport(configured, files.value, spkiOf(key), importNow) : files;
}

async function reason(texts: ImportTexts, configured?: ImportedCa): Promise<ImportFaultName | 'accepted'> {
  const result = await outcome(texts, configured);
  if (result.ok) return 'accepted';
  expect(result.problem.message).not.toBe('');
  return result.problem.why;
}

const extensionsOf = {
  own: (change: Parameters<typeof caExtensions>[2]) =>
    caExtensions(ownKey, middleKey, { constraints: basicConstraints(true, 0), ...change }),
  middle: (change: Parameters<typeof caExtensions>[2]) => caExtensions(middleKey, rootKey, change),
  root: (change: Parameters<typeof caExtensions>[2]) => caExtensions(rootKey, rootKey, change),
};

describe('accepted', () => {
  test('a CA under an intermediate and a root, with its chain, nearest first', async () => {
    const texts = pathPems();
    const bytes = [texts.certificate, texts.chain, texts.root].map((text) => new X509Certificate(text).raw);
    const [own, ...above] = bytes.map((der) => new Uint8Array(der));
    expect(await outcome(texts)).toEqual({ ok: true, value: { certificate: own, chain: above, notes: [] } });
  });

  test.each<[string, ImportTexts, RegExp | undefined]>([
    [
      'directly under the root',
      {
        certificate: pem(
          pathDer({
            own: {
              issuer: name('Corp Root'),
              signer: rootKey,
              extensions: caExtensions(ownKey, rootKey, { constraints: basicConstraints(true, 0) }),
            },
          }).own,
        ),
        root: pathPems().root,
      },
      undefined,
    ],
    ['with text around the blocks, as openssl writes it', textsWith('Certificate:\n    Data: x\n'), undefined],
    ['with CRLF', withCrlf(pathPems()), undefined],
    [
      'without pathLen',
      pathPems({ own: { extensions: extensionsOf.own({ constraints: basicConstraints(true) }) } }),
      /permits any number of CAs/,
    ],
    ['that outlives its root', pathPems({ own: { notAfter: importNow + 400 * day } }), /ends before it/],
    [
      'with other attributes in its subject',
      pathPems({
        own: {
          subject: name([
            ['2.5.4.7', 'Berlin'],
            ['2.5.4.3', 'prod nodes'],
          ]),
        },
      }),
      undefined,
    ],
    [
      'with an extension of its own that is not critical',
      pathPems({ own: { extensions: extensionsOf.own({ more: [unknownExtension(false)] }) } }),
      undefined,
    ],
    [
      'with a name, as kubeadm writes it',
      pathPems({ own: { extensions: extensionsOf.own({ more: [subjectAltName(general.dns('kubernetes'))] }) } }),
      undefined,
    ],
    [
      'for all purposes',
      pathPems({ middle: { extensions: extensionsOf.middle({ more: [extKeyUsage(purposes.any)] }) } }),
      undefined,
    ],
    [
      'for clients and servers',
      pathPems({
        own: { extensions: extensionsOf.own({ more: [extKeyUsage(purposes.clientAuth, purposes.serverAuth)] }) },
      }),
      undefined,
    ],
    ['under an RSA root with PSS', rsaRoot('PSS SHA-256'), undefined],
    ['under an RSA root', rsaRoot('RSA SHA-512'), undefined],
    ['under an Ed25519 root', underRoot(keyOf('root', 'Ed25519')), undefined],
    ['under a P-384 root', underRoot(keyOf('root', 'P-384')), undefined],
  ])('%s', async (_, texts, note) => {
    const result = await outcome(texts);
    expect(result.ok ? '' : result.problem.message).toBe('');
    expect(result.ok && result.value.notes.join()).toMatch(note ?? /^$/);
  });

  test('an existing CA of kubeadm: self-signed, without cRLSign, its key to be imported', async () => {
    const existing: ImportedCa = { ...ca, keyMaterial: 'imported', subject: { commonName: 'kubernetes' } };
    const of = (usage: Uint8Array | null) =>
      pem(
        writeCertificate({
          ...selfSigned('kubernetes'),
          extensions: [
            ...(usage === null ? [] : [usage]),
            basicConstraints(true),
            ...keyIdentifiers(keyId(ownKey)),
            subjectAltName(general.dns('kubernetes')),
          ],
        }),
      );
    const result = await outcome({ certificate: of(keyUsage(0, 2, 5)) }, existing);
    expect(result).toMatchObject({
      ok: true,
      value: { chain: [], notes: [expect.stringContaining('cRLSign'), expect.anything()] },
    });
    expect(await reason({ certificate: of(null) }, existing)).toBe('accepted');
    expect(await reason({ certificate: of(keyUsage(0, 2, 6)) }, existing)).toBe('NoCertSign');
    expect(await reason({ certificate: of(keyUsage(0, 2, 5)) }, { ...existing, keyMaterial: 'kms' })).toBe('NoCrlSign');
    const published = { ...existing, crlDistributionPoint: 'http://pki.example/nodes.crl' };
    expect(await reason({ certificate: of(keyUsage(0, 2, 5)) }, published)).toBe('NoCrlSign');
    expect(await reason({ certificate: of(keyUsage(0, 2, 5, 6)) }, published)).toBe('accepted');
    expect(await reason({ certificate: of(keyUsage(0, 2, 5)), root: of(keyUsage(0, 2, 5)) }, existing)).toBe(
      'ExtraCertificate',
    );
  });
});

function withCrlf({ certificate, chain, root }: PathPems): ImportTexts {
  const ended = (text: string): string => text.replaceAll('\n', '\r\n');
  return { certificate: ended(certificate), chain: ended(chain), root: ended(root) };
}

function textsWith(before: string): ImportTexts {
  const { certificate, chain, root } = pathPems();
  return { certificate: before + certificate, chain: chain + before, root: `${before}${root}${before}` };
}

function selfSigned(commonName: string) {
  return {
    subject: name(commonName),
    issuer: name(commonName),
    key: ownKey,
    signer: ownKey,
    notBefore: importNow - day,
    notAfter: importNow + day,
  };
}

function underRoot(key: typeof rootKey, algorithm?: keyof typeof signingAlgorithms): ImportTexts {
  const signing = algorithm === undefined ? {} : { algorithm };
  return pathPems({
    middle: { signer: key, extensions: caExtensions(middleKey, key), ...signing },
    root: { key, signer: key, extensions: caExtensions(key, key), ...signing },
  });
}

function rsaRoot(algorithm: keyof typeof signingAlgorithms, bits: 'RSA-2048' | 'RSA-1024' = 'RSA-2048'): ImportTexts {
  return underRoot(keyOf('root', bits), algorithm);
}

/** The structure of a certificate with another signature. */
function signedOver(certificate: Buffer, key: typeof rootKey): Buffer {
  const size = certificate.readUInt16BE(6) + 4;
  const tbs = certificate.subarray(4, 4 + size);
  return der.sequence(tbs, signingAlgorithms['ECDSA SHA-256'].identifier, der.bits(sign('sha256', Buffer.of(1), key)));
}

const other = keyOf('another CA');
const { certificate, chain, root } = pathPems();

/** One mistake each. */
const refused: readonly (readonly [what: string, why: ImportFaultName, texts: ImportTexts])[] = [
  ['no certificate in the file', 'NotPem', { certificate: 'hello', chain, root }],
  ['DER instead of PEM', 'NotPem', { certificate: pathDer().own.toString('latin1'), chain, root }],
  [
    'a private key beside it',
    'NotPem',
    { certificate: certificate + ownKey.export({ type: 'pkcs8', format: 'pem' }).toString(), chain, root },
  ],
  [
    'a private key in the chain',
    'NotPem',
    { certificate, chain: chain + ownKey.export({ type: 'pkcs8', format: 'pem' }).toString(), root },
  ],
  [
    'a block of another label',
    'NotPem',
    { certificate: certificate.replaceAll('CERTIFICATE', 'TRUSTED CERTIFICATE'), chain, root },
  ],
  ['a request', 'NotPem', { certificate: certificate.replaceAll('CERTIFICATE', 'CERTIFICATE REQUEST'), chain, root }],
  ['a block without its end', 'NotPem', { certificate: certificate.slice(0, -30), chain, root }],
  ['a block that begins twice', 'NotPem', { certificate: `-----BEGIN CERTIFICATE-----\n${certificate}`, chain, root }],
  ['base64 that is not canonical', 'NotPem', { certificate: certificate.replace('\n', '\n!'), chain, root }],
  ['two certificates in one file', 'ExtraCertificate', { certificate: certificate + chain, root }],
  ['two roots', 'ExtraCertificate', { certificate, chain, root: root + root }],
  ['an empty chain file', 'NotPem', { certificate, chain: '\n', root }],
  ['an empty root file', 'NotPem', { certificate, chain, root: '' }],
  ['trailing bytes', 'Unreadable', { certificate: pem(Buffer.concat([pathDer().own, Buffer.of(0)])), chain, root }],
  [
    'trailing bytes in the chain',
    'Unreadable',
    { certificate, chain: pem(Buffer.concat([pathDer().middle, Buffer.of(5, 0)])), root },
  ],
  [
    'two certificates in one block',
    'Unreadable',
    { certificate: pem(Buffer.concat([pathDer().own, pathDer().own])), chain, root },
  ],
  ['no certificate in the block', 'Unreadable', { certificate: pem(Buffer.of(0x30, 0)), chain, root }],
  ['version 1', 'Unreadable', pathPems({ own: { version: 0, extensions: [] } })],
  ['version 1 of the root', 'Unreadable', pathPems({ root: { version: 0, extensions: [] } })],
  [
    'two extensions of one type',
    'Unreadable',
    pathPems({ own: { extensions: extensionsOf.own({ more: [basicConstraints(true, 0)] }) } }),
  ],
  [
    'basicConstraints that cannot be read',
    'Unreadable',
    pathPems({ own: { extensions: extensionsOf.own({ constraints: extension('2.5.29.19', der.integer(1), true) }) } }),
  ],
  [
    'a negative pathLen',
    'Unreadable',
    pathPems({
      middle: {
        extensions: extensionsOf.middle({
          constraints: extension('2.5.29.19', der.sequence(der.boolean(true), der.integer(-1)), true),
        }),
      },
    }),
  ],
  ['the serial number 0', 'SerialNumber', pathPems({ own: { serial: 0n } })],
  ['a negative serial number', 'SerialNumber', pathPems({ own: { serial: -5n } })],
  ['a serial number of 21 octets', 'SerialNumber', pathPems({ middle: { serial: 1n << 160n } })],
  ['SHA-1 in its signature', 'SignatureAlgorithm', pathPems({ own: { algorithm: 'ECDSA SHA-1' } })],
  [
    'SHA-1 in the signature of the intermediate',
    'SignatureAlgorithm',
    pathPems({ middle: { algorithm: 'ECDSA SHA-1' } }),
  ],
  ['SHA-1 in the signature of the root', 'SignatureAlgorithm', rsaRoot('RSA SHA-1')],
  ['MD5 in its signature', 'SignatureAlgorithm', withAlgorithm('1.2.840.113549.1.1.4')],
  ['two signature algorithms', 'SignatureAlgorithm', pathPems({ own: { innerAlgorithm: 'ECDSA SHA-384' } })],
  ['a root with RSA-1024', 'KeyNotAccepted', rsaRoot('RSA SHA-256', 'RSA-1024')],
  ['a root with P-224', 'KeyNotAccepted', underRoot(keyOf('root', 'P-224'))],
  ['a root with secp256k1', 'KeyNotAccepted', underRoot(keyOf('root', 'secp256k1'))],
  ['another key', 'WrongKey', pathPems({ own: { key: other, extensions: caExtensions(other, middleKey) } })],
  ['the chain’s certificate instead of the CA’s', 'WrongKey', { certificate: chain, root }],
  ['another common name', 'SubjectMismatch', pathPems({ own: { subject: name('prod webs') } })],
  [
    'an organization that is not configured',
    'SubjectMismatch',
    pathPems({
      own: {
        subject: name([
          ['2.5.4.10', 'X'],
          ['2.5.4.3', 'prod nodes'],
        ]),
      },
    }),
  ],
  [
    'two common names',
    'SubjectMismatch',
    pathPems({
      own: {
        subject: name([
          ['2.5.4.3', 'prod nodes'],
          ['2.5.4.3', 'prod nodes'],
        ]),
      },
    }),
  ],
  ['an empty subject', 'SubjectMismatch', pathPems({ own: { subject: der.sequence() } })],
  [
    'no basicConstraints',
    'NoBasicConstraints',
    pathPems({ own: { extensions: extensionsOf.own({ constraints: null }) } }),
  ],
  [
    'an intermediate without basicConstraints',
    'NoBasicConstraints',
    pathPems({ middle: { extensions: extensionsOf.middle({ constraints: null }) } }),
  ],
  [
    'a root without basicConstraints',
    'NoBasicConstraints',
    pathPems({ root: { extensions: extensionsOf.root({ constraints: null }) } }),
  ],
  ['no CA bit', 'NotCa', pathPems({ own: { extensions: extensionsOf.own({ constraints: basicConstraints(false) }) } })],
  [
    'an intermediate that is no CA',
    'NotCa',
    pathPems({ middle: { extensions: extensionsOf.middle({ constraints: basicConstraints(false) }) } }),
  ],
  [
    'basicConstraints that are not critical',
    'NotCa',
    pathPems({
      own: { extensions: extensionsOf.own({ constraints: extension('2.5.29.19', der.sequence(der.boolean(true))) }) },
    }),
  ],
  ['no keyUsage', 'NoKeyUsage', pathPems({ own: { extensions: extensionsOf.own({ usage: null }) } })],
  [
    'keyUsage without keyCertSign',
    'NoCertSign',
    pathPems({ own: { extensions: extensionsOf.own({ usage: keyUsage(6) }) } }),
  ],
  [
    'keyUsage without cRLSign',
    'NoCrlSign',
    pathPems({ own: { extensions: extensionsOf.own({ usage: keyUsage(5) }) } }),
  ],
  ['keyUsage of a leaf', 'NoCertSign', pathPems({ own: { extensions: extensionsOf.own({ usage: keyUsage(0) }) } })],
  [
    'an intermediate without keyCertSign',
    'NoCertSign',
    pathPems({ middle: { extensions: extensionsOf.middle({ usage: keyUsage(6) }) } }),
  ],
  [
    'no subjectKeyIdentifier',
    'NoSubjectKeyIdentifier',
    pathPems({ own: { extensions: extensionsOf.own({ identifiers: [] }) } }),
  ],
  [
    'extKeyUsage for servers only',
    'ExtKeyUsage',
    pathPems({ own: { extensions: extensionsOf.own({ more: [extKeyUsage(purposes.serverAuth)] }) } }),
  ],
  [
    'extKeyUsage for clients only',
    'ExtKeyUsage',
    pathPems({ own: { extensions: extensionsOf.own({ more: [extKeyUsage(purposes.clientAuth)] }) } }),
  ],
  [
    'extKeyUsage for mail, of the intermediate',
    'ExtKeyUsage',
    pathPems({ middle: { extensions: extensionsOf.middle({ more: [extKeyUsage('1.3.6.1.5.5.7.3.4')] }) } }),
  ],
  [
    'name constraints that exclude all DNS names',
    'NameConstraints',
    pathPems({
      middle: { extensions: extensionsOf.middle({ more: [nameConstraints({ excluded: [general.dns('')] })] }) },
    }),
  ],
  [
    'name constraints for other subjects',
    'NameConstraints',
    pathPems({
      root: { extensions: extensionsOf.root({ more: [nameConstraints({ permitted: [general.directory('Corp')] })] }) },
    }),
  ],
  [
    'name constraints of its own',
    'NameConstraints',
    pathPems({
      own: { extensions: extensionsOf.own({ more: [nameConstraints({ permitted: [general.dns('example.com')] })] }) },
    }),
  ],
  [
    'an unknown critical extension',
    'UnknownCriticalExtension',
    pathPems({ own: { extensions: extensionsOf.own({ more: [unknownExtension(true)] }) } }),
  ],
  [
    'policyConstraints above it',
    'PolicyConstraints',
    pathPems({
      middle: {
        extensions: extensionsOf.middle({
          more: [extension('2.5.29.36', der.sequence(der.primitive(0, Buffer.of(0))), true)],
        }),
      },
    }),
  ],
  ['a date in the future', 'NotYetValid', pathPems({ own: { notBefore: importNow + 1_000 } })],
  ['an intermediate that is not valid yet', 'NotYetValid', pathPems({ middle: { notBefore: importNow + day } })],
  ['an end in the past', 'Expired', pathPems({ own: { notAfter: importNow - 1_000 } })],
  ['an expired intermediate', 'Expired', pathPems({ middle: { notAfter: importNow - day / 2 } })],
  ['an expired root', 'Expired', pathPems({ root: { notAfter: importNow - day / 2 } })],
  [
    'pathLen 0 above it',
    'PathLength',
    pathPems({ middle: { extensions: extensionsOf.middle({ constraints: basicConstraints(true, 0) }) } }),
  ],
  [
    'a pathLen of the root that is too small',
    'PathLength',
    pathPems({ root: { extensions: extensionsOf.root({ constraints: basicConstraints(true, 1) }) } }),
  ],
  ['a chain out of order', 'ChainOrder', outOfOrder()],
  ['the chain and the root exchanged', 'ChainOrder', { certificate, chain: root, root: chain }],
  ['no chain', 'ChainIncomplete', { certificate, root }],
  [
    'another intermediate',
    'ChainIncomplete',
    { certificate, chain: pem(pathDer({ middle: { subject: name('Corp Other') } }).middle), root },
  ],
  ['no root', 'RootMissing', { certificate, chain }],
  [
    'a root that is not self-signed',
    'RootNotSelfSigned',
    pathPems({ root: { issuer: name('Older Root'), signer: other } }),
  ],
  ['a root that another key signed', 'RootNotSelfSigned', pathPems({ root: { signer: other } })],
  [
    'an extra certificate in the chain',
    'ExtraCertificate',
    { certificate, chain: chain + pem(pathDer({ own: { subject: name('stranger') } }).own), root },
  ],
  ['the root in the chain too', 'ExtraCertificate', { certificate, chain: chain + root, root }],
  ['the certificate in the chain too', 'ExtraCertificate', { certificate, chain: certificate + chain, root }],
  ['a broken signature', 'SignatureInvalid', { certificate: pem(signedOver(pathDer().own, middleKey)), chain, root }],
  [
    'a broken signature of the intermediate',
    'SignatureInvalid',
    { certificate, chain: pem(signedOver(pathDer().middle, rootKey)), root },
  ],
  ['an issuer of the same name with another key', 'IssuerKeyMismatch', pathPemsOtherMiddle()],
  [
    'no authorityKeyIdentifier',
    'NoAuthorityKeyIdentifier',
    pathPems({ own: { extensions: extensionsOf.own({ identifiers: keyIdentifiers(keyId(ownKey)) }) } }),
  ],
  [
    'a root without a subject',
    'NoSubject',
    pathPems({ middle: { issuer: der.sequence() }, root: { subject: der.sequence(), issuer: der.sequence() } }),
  ],
  ['the subject of its root', 'SameSubject', sameSubject()],
  ['eight certificates', 'ChainTooLong', { certificate, chain: chain.repeat(6), root }],
];

function withAlgorithm(oid: string): ImportTexts {
  const own = pathDer().own;
  const from = signingAlgorithms['ECDSA SHA-256'].identifier;
  const text = own.toString('latin1').split(from.toString('latin1'));
  // The lengths of the outer structures change, so the parts are put together anew.
  const identifier = der.sequence(der.oid(oid), der.nothing());
  const grown = (bytes: Buffer, by: number): Buffer => {
    const copy = Buffer.from(bytes);
    copy.writeUInt16BE(copy.readUInt16BE(2) + by, 2);
    return copy;
  };
  const by = identifier.length - from.length;
  const joined = Buffer.from(text.join(identifier.toString('latin1')), 'latin1');
  const outer = grown(joined, 2 * by);
  outer.writeUInt16BE(outer.readUInt16BE(6) + by, 6);
  return { certificate: pem(outer), chain, root };
}

function outOfOrder(): ImportTexts {
  const lower = keyOf('lower CA');
  const spec: PathSpec = {
    own: {
      issuer: name('Corp Lower'),
      signer: lower,
      extensions: caExtensions(ownKey, lower, { constraints: basicConstraints(true, 0) }),
    },
    middle: { extensions: extensionsOf.middle({}) },
  };
  const below = writeCertificate({
    subject: name('Corp Lower'),
    issuer: name('Corp Middle'),
    key: lower,
    signer: middleKey,
    notBefore: importNow - day,
    notAfter: importNow + day,
    extensions: caExtensions(lower, middleKey),
  });
  const path = pathPems(spec);
  return { certificate: path.certificate, chain: path.chain + pem(below), root: path.root };
}

function pathPemsOtherMiddle(): ImportTexts {
  return {
    certificate,
    chain: pem(pathDer({ middle: { key: other, extensions: caExtensions(other, rootKey) } }).middle),
    root,
  };
}

function sameSubject(): ImportTexts {
  const spec: PathSpec = {
    middle: { issuer: name('prod nodes') },
    root: { subject: name('prod nodes'), issuer: name('prod nodes') },
  };
  return pathPems(spec);
}

describe('refused', () => {
  test.each(refused)('%s: %s', async (_, why, texts) => {
    expect(await reason(texts)).toBe(why);
  });

  test('each reason of the list by a case', () => {
    expect(new Set(refused.map(([, why]) => why))).toEqual(new Set(Object.keys(importFaults)));
  });

  test('a CA that may have fewer CAs below it than configured', async () => {
    expect(await reason({ certificate, chain, root }, { ...ca, pathLen: 1 })).toBe('PathLength');
  });

  test('no message repeats what is in the files besides names', async () => {
    const result = await outcome({
      certificate: certificate + ownKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    });
    expect(JSON.stringify(result)).not.toMatch(/PRIVATE|[A-Za-z0-9+/]{40}/);
  });
});
