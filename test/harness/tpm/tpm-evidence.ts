import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { createPublicKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { objectName } from '../../../core/attestation/tpm/structures/public-area.ts';
import type { Challenge } from '../../../kubelet-authenticator/providers/provider.ts';
import { tpmProvider } from '../../../kubelet-authenticator/providers/tpm.ts';
import { withTpm } from '../../../kubelet-authenticator/providers/tpm-tools.ts';
import type { EndorsementKeyKind } from '../../../kubelet-authenticator/settings/settings.ts';
import type { SoftwareTpm } from './software-tpm.ts';

/* What a node with a TPM makes, and what a manufacturer, an approver or an attacker makes for it, by tpm2-tools. */

export interface NodeOfTpm {
  readonly tpm: SoftwareTpm;
  /** The node's cache. */
  readonly directory: string;
  readonly kind?: EndorsementKeyKind | undefined;
  /** Its event log. */
  readonly eventLog?: string;
}

export const providerOf = ({ tpm, directory, kind, eventLog }: NodeOfTpm) =>
  tpmProvider((work) => withTpm({ directory, tcti: tpm.tcti, path: process.env['PATH'] }, work), kind, eventLog);

export interface TpmEvidence {
  readonly v: number;
  readonly ek: { readonly cert?: string; readonly spki?: string };
  readonly ak: string;
  readonly quote: {
    readonly attest: string;
    readonly sig: string;
    readonly pcrs: Readonly<Record<string, string>>;
    readonly events?: Readonly<Record<string, string>>;
  };
  readonly activation?: { readonly challenge: string; readonly proof: string };
  readonly nonce: string;
}

export async function evidenceOf(node: NodeOfTpm, challenge?: Challenge, refused = false) {
  const digest = randomBytes(32);
  const { data } = await providerOf(node).makeEvidence({
    version: 'tpm/v1',
    clusterName: 'demo',
    binding: (nonce) => (nonce === 'the-nonce' ? digest.toString('hex') : ''),
    nonce: 'the-nonce',
    challenge,
    refused,
    now: 0,
  });
  return { digest, evidence: JSON.parse(data) as TpmEvidence };
}

export const bytes = (text = '') => Buffer.from(text, 'base64');
/** SubjectPublicKeyInfo of the EK in the evidence. */
export const spkiOf = ({ ek }: TpmEvidence) =>
  ek.cert === undefined
    ? bytes(ek.spki)
    : new X509Certificate(bytes(ek.cert)).publicKey.export({ type: 'spki', format: 'der' });

/** What is in the TPM when nothing of ours is: the manufacturer's keys. */
export const untouched = { transient: [], loaded: [], saved: [], persistent: ['0x81010001', '0x81010016'] };
export const left = async (tpm: SoftwareTpm) => ({
  transient: await tpm.handles('transient'),
  loaded: await tpm.handles('loaded-session'),
  saved: await tpm.handles('saved-session'),
  persistent: await tpm.handles('persistent'),
});

/** A challenge by tpm2_makecredential, which needs no TPM. */
export async function challengeFor(
  tpm: SoftwareTpm,
  evidence: TpmEvidence,
  secret: Buffer,
  akName?: Buffer,
): Promise<Challenge> {
  const ek = createPublicKey({ key: spkiOf(evidence), format: 'der', type: 'spki' });
  const file = (name: string, content: string | Buffer) => writeFileSync(join(tpm.folder, name), content);
  file('ek.pem', ek.export({ type: 'spki', format: 'pem' }).toString());
  file('secret', secret);
  const public384 = ek.asymmetricKeyDetails?.namedCurve === 'secp384r1';
  const type = ek.asymmetricKeyType === 'rsa' ? 'rsa' : 'ecc';
  // From PEM the tool takes a P-256 or RSA-2048 key; the P-384 one comes from the TPM with its template.
  if (public384) await tpm.tool('tpm2_readpublic', '-c', '0x81010016', '-o', 'ek.tss', '-f', 'tss');
  const from = public384 ? ['-u', 'ek.tss'] : ['-u', 'ek.pem', '-G', type];
  const name = (akName ?? nameOf(evidence)).toString('hex');
  await tpm.tool('tpm2_makecredential', '-T', 'none', ...from, '-s', 'secret', '-n', name, '-o', 'blob');
  return { challenge: 'AQID', credential: tpm.read('blob').toString('base64') };
}

export function nameOf({ ak }: TpmEvidence): Buffer {
  return Buffer.from(objectName('sha256', bytes(ak)));
}

/** TPM2B_PUBLIC, message and signature, as tpm2_checkquote reads them. */
export async function checkQuote(tpm: SoftwareTpm, { ak, quote }: TpmEvidence, digest: Buffer): Promise<void> {
  const size = Buffer.alloc(2);
  size.writeUInt16BE(bytes(ak).length);
  for (const [name, content] of [
    ['check.pub', Buffer.concat([size, bytes(ak)])],
    ['check.attest', bytes(quote.attest)],
    ['check.sig', bytes(quote.sig)],
  ] as const)
    writeFileSync(join(tpm.folder, name), content);
  const files = ['-u', 'check.pub', '-m', 'check.attest', '-s', 'check.sig'];
  await tpm.tool('tpm2_checkquote', ...files, '-g', 'sha256', '-q', digest.toString('hex'));
}

/** As a manufacturer provisions it, in place of what is there. */
export async function writeNv(tpm: SoftwareTpm, index: string, content: Buffer): Promise<void> {
  writeFileSync(join(tpm.folder, 'nv'), content);
  await tpm.tool('tpm2_nvundefine', index, '-C', 'p').catch(() => {});
  const attributes = 'platformcreate|ppwrite|ppread|ownerread|authread|no_da';
  await tpm.tool('tpm2_nvdefine', index, '-C', 'p', '-s', String(content.length), '-a', attributes);
  await tpm.tool('tpm2_nvwrite', index, '-C', 'p', '-i', 'nv');
}

export const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** A certificate about that key, by an unknown CA: the node does not verify it. */
export async function certificateFor(publicKeyPem: string): Promise<Buffer> {
  const { privateKey } = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: '01',
    subject: 'CN=machine',
    issuer: 'CN=manufacturer',
    notBefore: new Date(0),
    notAfter: new Date(4e12),
    signingAlgorithm: algorithm,
    publicKey: new x509.PublicKey(publicKeyPem),
    signingKey: privateKey,
  });
  return Buffer.from(certificate.rawData);
}
