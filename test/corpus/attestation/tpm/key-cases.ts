/** Endorsement keys and attestation keys: those that are, and those that pose as one. */
import { generateKeyPairSync } from 'node:crypto';
import { createAk, createEk, id, nameOf, publicArea, u16 } from '../../../harness/tpm/model-tpm.ts';
import type { Ak } from '../../../harness/tpm/model-tpm.ts';
import { vectors } from './vectors.ts';
import type { Case } from './judge.ts';
import { ekCertificate } from './certificates.ts';
import { ak, b64, cas, certificate, ek, good, hashOf, otherAk, withKey } from './machine.ts';
import type { Json } from './machine.ts';

const invalid = (check: string) => ['AttestationInvalid', check] as const;

async function endorsementKeyCases(): Promise<readonly Case[]> {
  const kinds = (['P-256', 'P-384'] as const).map((kind) => [kind, createEk(kind).spki] as const);
  const bySpki = (spki: Uint8Array) => ({
    data: { ek: { spki: b64(spki) } },
    policy: { endorsementKeys: [hashOf(spki)] },
  });
  const rsa = (modulusLength: number) => spkiOf(generateKeyPairSync('rsa', { modulusLength }));
  const unfit = invalid('the endorsement key is not an RSA key of 2048 bits or on P-256 or P-384');
  const unreadable = invalid('the endorsement key cannot be decoded');
  return [
    ...kinds.map(([kind, spki]) => ({ name: `on ${kind}`, ...bySpki(spki), expect: 'accepted' }) as const),
    { name: 'RSA of 2048 bits', ...bySpki(ek.spki), expect: 'accepted' },
    { name: 'RSA of 1024 bits', ...bySpki(rsa(1024)), expect: unfit },
    { name: 'RSA of 3072 bits', ...bySpki(rsa(3072)), expect: unfit },
    { name: 'on P-521', ...bySpki(spkiOf(generateKeyPairSync('ec', { namedCurve: 'P-521' }))), expect: unfit },
    { name: 'Ed25519', ...bySpki(spkiOf(generateKeyPairSync('ed25519'))), expect: unfit },
    {
      name: 'RSA of 1024 bits, in a certificate',
      data: { ek: { cert: b64(await ekCertificate(rsa(1024), cas.maker)) } },
      expect: unfit,
    },
    { name: 'not DER', ...bySpki(Buffer.of(1, 2, 3)), expect: unreadable },
    { name: 'a trailing byte', ...bySpki(Buffer.concat([ek.spki, Buffer.of(0)])), expect: unreadable },
    { name: 'a certificate as SPKI', ...bySpki(certificate), expect: unreadable },
    {
      name: 'an SPKI as certificate',
      data: { ek: { cert: b64(ek.spki) } },
      expect: invalid('has a certificate that is not X.509 v3 in DER'),
    },
    {
      name: 'a certificate with a trailing byte',
      data: { ek: { cert: b64(Buffer.concat([certificate, Buffer.of(0)])) } },
      expect: invalid('has a certificate that is not X.509 v3 in DER'),
    },
  ];
}

function spkiOf({ publicKey }: { readonly publicKey: { export(options: object): unknown } }): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' }) as Buffer;
}

const attributes = 0x00050072;
/** The same private key under another public area. */
const posed = (of: Ak, options: Parameters<typeof publicArea>[1]): Json => {
  const area = publicArea(of.publicKey, options);
  return withKey({ ...of, area });
};
const aes128 = Buffer.concat([u16(6), u16(128), u16(0x43)]);
const decrypts = invalid('the attestation key decrypts and does not sign, as an endorsement key or storage key does');
const rsaAk = createAk('RSA-2048');
const pssAk = createAk('RSA-2048', { scheme: id.rsapss });

function attestationKeyCases(): readonly Case[] {
  const off = Buffer.from(ak.area);
  off[30] = (off[30] ?? 0) ^ 1;
  return [
    { name: 'on P-384, with SHA-384', data: withKey(createAk('P-384', { hash: id.sha384 })), expect: 'accepted' },
    {
      name: 'on P-256, named by SHA-512',
      data: withKey(createAk('P-256', { nameAlg: id.sha512 })),
      expect: 'accepted',
    },
    { name: 'RSASSA', data: withKey(rsaAk), expect: 'accepted' },
    { name: 'RSAPSS', data: withKey(pssAk), expect: 'accepted' },
    { name: 'an endorsement key', data: { ak: vectors.keys['ek-rsa'].public }, expect: decrypts },
    { name: 'the endorsement key of another template', data: { ak: vectors.keys['ek-p384'].public }, expect: decrypts },
    { name: 'a storage key', data: { ak: vectors.keys.storage.public }, expect: decrypts },
    {
      name: 'a signing key of the TPM that is not restricted',
      data: { ak: vectors.keys.unrestricted.public },
      expect: invalid('the attestation key is not restricted: it signs any data'),
    },
    {
      name: 'a key that was made outside',
      data: { ak: vectors.keys.software.public },
      expect: invalid('the attestation key is not restricted: it signs any data'),
    },
    ...(
      [
        ['not restricted', attributes & ~0x10000, 'is not restricted: it signs any data'],
        ['no fixedTPM', attributes & ~2, 'may be duplicated to another TPM'],
        ['no fixedParent', attributes & ~0x10, 'may be moved to another parent'],
        ['no sensitiveDataOrigin', attributes & ~0x20, 'was not created by the TPM'],
        ['neither signs nor decrypts', attributes & ~0x40000, 'the attestation key does not sign'],
        ['signs and decrypts', attributes | 0x20000, 'the attestation key signs and decrypts'],
        ['with an attribute that is reserved', attributes | 1, 'the attestation key has a reserved attribute'],
      ] as const
    ).map(([name, bits, problem]) => ({
      name,
      data: posed(ak, { attributes: bits }),
      expect: invalid(problem),
    })),
    {
      name: 'decrypts',
      data: posed(ak, { attributes: (attributes & ~0x40000) | 0x20000, symmetric: aes128 }),
      expect: decrypts,
    },
    {
      name: 'without a scheme',
      data: posed(ak, { scheme: id.null }),
      expect: invalid('the attestation key has no signature scheme'),
    },
    {
      name: 'RSA of 1024 bits',
      data: withKey(createAk('RSA-1024')),
      expect: invalid('the attestation key has fewer than 2048 bits'),
    },
    {
      name: 'a point that is not on its curve',
      data: { ...good, ak: b64(off) },
      expect: invalid('the attestation key has a point that is not on its curve'),
    },
    {
      name: 'a trailing byte',
      data: { ak: b64(Buffer.concat([ak.area, Buffer.of(0)])) },
      expect: invalid('the attestation key has trailing bytes'),
    },
    {
      name: 'named by SHA-1',
      data: posed(ak, { nameAlg: id.sha1 }),
      expect: invalid('the attestation key names a hash that is not'),
    },
    {
      name: 'of another machine',
      data: { ak: b64(otherAk.area) },
      expect: invalid('the quote is not signed with the attestation key'),
    },
  ];
}

export const endorsementKeys = await endorsementKeyCases();
export const attestationKeys = attestationKeyCases();
export const rsaKeys = { rsaAk, pssAk, name: nameOf(ak.area) };
