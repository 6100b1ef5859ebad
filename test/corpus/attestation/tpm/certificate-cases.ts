/** Certificates of endorsement keys, and who else is trusted. */
import * as x509 from '@peculiar/x509';
import type { TpmAttestation } from '../../../../core/configuration/providers/tpm.ts';
import { createEk } from '../../../harness/tpm/model-tpm.ts';
import { ekCertificate, ekPurpose } from './certificates.ts';
import type { Ca, EkOptions } from './certificates.ts';
import type { Case } from './judge.ts';
import { b64, cas, certificate, ek, hashOf, now, otherEk } from './machine.ts';

const invalid = (check: string) => ['AttestationInvalid', `the certificate of the endorsement key ${check}`] as const;
const from = async (issuer: Ca, options: EkOptions = {}, spki = ek.spki) => ({
  data: { ek: { cert: b64(await ekCertificate(spki, issuer, options)) } },
});
const usages = x509.KeyUsageFlags;
const unknown = new x509.Extension('1.2.3.4', true, Buffer.from('0500', 'hex'));
const notUnder = (check: string) => invalid(`is not under a root that attestation.tpm names: ${check}`);
const noRoot = notUnder('the chain of certificates does not lead to a root');
const ecc = createEk('P-384');

/** Signed with the key of the endorsement key itself, as only software has it. */
async function selfSigned(): Promise<Ca> {
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  return { ...cas.stranger, name: '', keys };
}
const own = await selfSigned();
const ownSpki = Buffer.from(await crypto.subtle.exportKey('spki', own.keys.publicKey));

/** The algorithm outside the signed part, changed from SHA-256 to SHA-512 and back to the same length. */
function otherAlgorithm(der: Buffer): Buffer {
  const at = der.lastIndexOf(Buffer.from('06082a8648ce3d040302', 'hex'));
  const changed = Buffer.from(der);
  changed[at + 9] = 4;
  return changed;
}
/** A byte inside the signed part: the serial number. */
function otherSerial(der: Buffer): Buffer {
  const at = der.indexOf(Buffer.from('020102', 'hex'));
  const changed = Buffer.from(der);
  changed[at + 2] = 3;
  return changed;
}

export const certificateCases: readonly Case[] = [
  { name: 'directly under a root', ...(await from(cas.root)), expect: 'accepted' },
  { name: 'under a root that is signed with SHA-1', ...(await from(cas.oldRoot)), expect: 'accepted' },
  { name: 'issued by a CA for endorsement keys', ...(await from(cas.ekCa)), expect: 'accepted' },
  { name: 'issued by a CA for any purpose', ...(await from(cas.anyCa)), expect: 'accepted' },
  {
    name: 'issued by a CA for servers',
    ...(await from(cas.serverCa)),
    expect: invalid(`has the wrong issuer: certificate "CN=server CA" does not permit ${ekPurpose} below it`),
  },
  { name: 'below a CA that permits one CA below it', ...(await from(cas.belowWide)), expect: 'accepted' },
  { name: 'under two intermediates', ...(await from(cas.deep)), expect: 'accepted' },
  { name: 'under a CA that was renewed with the same key', ...(await from(cas.renewed)), expect: 'accepted' },
  {
    name: 'of an elliptic curve',
    ...(await from(cas.maker, { usage: usages.keyAgreement }, ecc.spki)),
    expect: 'accepted',
  },
  {
    name: 'for this and other purposes',
    ...(await from(cas.maker, { purposes: ['1.3.6.1.5.5.7.3.1', ekPurpose] })),
    expect: 'accepted',
  },
  {
    name: 'under a pinned CA that is not self-signed',
    ...(await from(cas.unlisted)),
    policy: { roots: [cas.unlisted.pem], intermediates: [] },
    expect: 'accepted',
  },
  { name: 'of another root', ...(await from(cas.stranger)), expect: noRoot },
  { name: 'of an intermediate that is not configured', ...(await from(cas.unlisted)), expect: noRoot },
  { name: 'of a CA with the name of one that is trusted', ...(await from(cas.impostor)), expect: noRoot },
  {
    name: 'under an intermediate alone, without the root',
    ...(await from(cas.maker)),
    policy: { roots: [cas.stranger.pem] },
    expect: noRoot,
  },
  {
    name: 'self-signed inside the evidence',
    ...(await from(own, { usage: usages.keyAgreement }, ownSpki)),
    expect: noRoot,
  },
  {
    name: 'of the root itself',
    data: { ek: { cert: b64(Buffer.from(cas.root.certificate.rawData)) } },
    expect: invalid('is the certificate of a CA'),
  },
  {
    name: 'with the CA bit',
    ...(await from(cas.maker, { isCa: true })),
    expect: invalid('is the certificate of a CA'),
  },
  {
    name: 'for a server',
    ...(await from(cas.maker, { purposes: ['1.3.6.1.5.5.7.3.1'] })),
    expect: invalid('is not for endorsement keys'),
  },
  {
    name: 'for a platform',
    ...(await from(cas.maker, { purposes: ['2.23.133.8.2'] })),
    expect: invalid('is not for endorsement keys'),
  },
  {
    name: 'for any purpose',
    ...(await from(cas.maker, { purposes: ['2.5.29.37.0'] })),
    expect: invalid('is not for endorsement keys'),
  },
  {
    name: 'for no purpose',
    ...(await from(cas.maker, { purposes: [] })),
    expect: invalid('is not for endorsement keys'),
  },
  {
    name: 'without keyUsage',
    ...(await from(cas.maker, { usage: 'none' })),
    expect: invalid('does not permit the use of an endorsement key'),
  },
  {
    name: 'for signatures',
    ...(await from(cas.maker, { usage: usages.digitalSignature })),
    expect: invalid('does not permit the use of an endorsement key'),
  },
  {
    name: 'RSA for key agreement',
    ...(await from(cas.maker, { usage: usages.keyAgreement })),
    expect: invalid('does not permit the use of an endorsement key'),
  },
  {
    name: 'EC for key encipherment',
    ...(await from(cas.maker, { usage: usages.keyEncipherment }, ecc.spki)),
    expect: invalid('does not permit the use of an endorsement key'),
  },
  {
    name: 'expired',
    ...(await from(cas.maker, { notAfter: now - 1000 })),
    expect: notUnder('the certificate expired at'),
  },
  {
    name: 'not valid yet',
    ...(await from(cas.maker, { notBefore: now + 1000 })),
    expect: notUnder('the certificate is valid only from'),
  },
  {
    name: 'on its last second',
    ...(await from(cas.maker, { notAfter: now })),
    now: Math.floor(now / 1000) * 1000,
    expect: 'accepted',
  },
  {
    name: 'with an unknown critical extension',
    ...(await from(cas.maker, { extensions: [unknown] })),
    expect: notUnder('the certificate has the critical extension 1.2.3.4'),
  },
  {
    name: 'with an unknown extension that is not critical',
    ...(await from(cas.maker, { extensions: [new x509.Extension('1.2.3.4', false, Buffer.from('0500', 'hex'))] })),
    expect: 'accepted',
  },
  {
    name: 'signed with SHA-1',
    ...(await from(cas.maker, { hash: 'SHA-1' })),
    expect: invalid('is signed with an algorithm that is not accepted'),
  },
  {
    name: 'with two signature algorithms',
    data: { ek: { cert: b64(otherAlgorithm(certificate)) } },
    expect: invalid('names two signature algorithms'),
  },
  {
    name: 'with another serial number than was signed',
    data: { ek: { cert: b64(otherSerial(certificate)) } },
    expect: noRoot,
  },
  {
    name: 'with an expired intermediate',
    ...(await from(cas.expired)),
    expect: notUnder('certificate "CN=expired" expired at'),
  },
  {
    name: 'with an intermediate that is not valid yet',
    ...(await from(cas.early)),
    expect: notUnder('certificate "CN=early" is valid only from'),
  },
  {
    name: 'with an expired root',
    ...(await from(cas.expiredRoot)),
    expect: notUnder('certificate "CN=expired root" expired at'),
  },
  {
    name: 'issued by a certificate that is not a CA',
    ...(await from(cas.noCa)),
    expect: notUnder('certificate "CN=no CA" is not a CA'),
  },
  {
    name: 'issued by a CA that may not sign certificates',
    ...(await from(cas.noSign)),
    expect: notUnder('certificate "CN=no sign" has a key that may not sign certificates'),
  },
  {
    name: 'issued below a CA that permits no CA below it',
    ...(await from(cas.belowNarrow)),
    expect: notUnder('certificate "CN=narrow" does not permit so many CAs below it'),
  },
  { name: 'issued by a CA that permits no CA below it', ...(await from(cas.narrow)), expect: 'accepted' },
  {
    name: 'issued by a CA with name constraints',
    ...(await from(cas.constrained)),
    expect: invalid('is under a CA that has name constraints'),
  },
  {
    name: 'issued by a CA with an unknown critical extension',
    ...(await from(cas.critical)),
    expect: notUnder('certificate "CN=critical" has the critical extension 1.2.3.4'),
  },
  {
    name: 'issued by a CA that was signed with SHA-1',
    ...(await from(cas.sha1)),
    policy: { intermediates: [cas.sha1.pem] },
    expect: ['temporary', 'a certificate under attestation.tpm is signed with an algorithm that is not accepted'],
  },
];

const spki = { data: { ek: { spki: b64(ek.spki) } } };
const stranger = await from(cas.stranger);
const listed: Partial<TpmAttestation> = { roots: [], intermediates: [], machines: 'listed' };
const notListed = ['IdentityNotAllowed', 'this machine is not on the list (countersign machines allow)'] as const;

export const trustCases: readonly Case[] = [
  {
    name: 'a key without a certificate, where certificates are required',
    ...spki,
    expect: invalid('is missing: the evidence holds the key alone'),
  },
  {
    name: 'a key that the configuration names',
    ...spki,
    policy: { endorsementKeys: [hashOf(ek.spki)] },
    expect: 'accepted',
  },
  {
    name: 'a key that the configuration names, in a certificate of a stranger',
    ...stranger,
    policy: { endorsementKeys: [hashOf(ek.spki)] },
    expect: 'accepted',
  },
  {
    name: 'a key that the configuration does not name',
    ...spki,
    policy: { roots: [], endorsementKeys: [hashOf(otherEk.spki)] },
    expect: ['IdentityNotAllowed', 'the endorsement key is not one that attestation.tpm names'],
  },
  {
    name: 'nothing configured',
    policy: { roots: [], intermediates: [] },
    expect: ['IdentityNotAllowed', 'the endorsement key is not one that attestation.tpm names'],
  },
  { name: 'a key on the list', ...spki, policy: listed, entry: {}, expect: 'accepted' },
  {
    name: 'a key on the list, in a certificate of a stranger',
    ...stranger,
    policy: listed,
    entry: {},
    expect: 'accepted',
  },
  { name: 'a key that is not on the list', ...spki, policy: listed, expect: notListed },
  {
    name: 'a key that the configuration names, and that is not on the list',
    ...spki,
    policy: { ...listed, endorsementKeys: [hashOf(ek.spki)] },
    expect: notListed,
  },
  { name: 'a certified key that is not on the list', policy: { machines: 'listed' }, expect: notListed },
  { name: 'a certified key on the list', policy: { machines: 'listed' }, entry: {}, expect: 'accepted' },
  {
    name: 'a key on the list, where certificates are required',
    ...spki,
    policy: { machines: 'listed' },
    entry: {},
    expect: invalid('is missing'),
  },
  {
    name: 'a key on the list, in a certificate of a stranger, where roots are configured',
    ...stranger,
    policy: { machines: 'listed' },
    entry: {},
    expect: noRoot,
  },
  {
    name: 'a root that is no certificate',
    policy: { roots: ['root'] },
    expect: ['temporary', 'is not one PEM certificate'],
  },
];
