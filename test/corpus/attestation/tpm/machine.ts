/** One machine with a TPM, other machines and CAs, and what the operator trusts: what the cases of this folder vary. */
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { createHash } from 'node:crypto';
import type { TpmAttestation } from '../../../../core/configuration/providers/tpm.ts';
import type { MachineEntry } from '../../../../core/ports/attestation-store.ts';
import { createAk, createEk, quote } from '../../../harness/tpm/model-tpm.ts';
import type { Ak, Pcrs, Quoted } from '../../../harness/tpm/model-tpm.ts';
import { createCa, ekCertificate, ekPurpose, now } from './certificates.ts';

export { now } from './certificates.ts';

const day = 86_400_000;
export const audience = '111122223333/eu-central-1/blue';
/** Stands for B: what the core computes out of key, node, signer and audience. */
export const binding = (nonce: string): string => `b1${'0'.repeat(60)}${nonce === '' ? '00' : nonce.slice(0, 2)}`;
export const bound = Buffer.from(binding(''), 'hex');

export const ek = createEk('RSA-2048');
export const otherEk = createEk('RSA-2048');
export const ak = createAk('P-256');
export const otherAk = createAk('P-256');

/** What each PCR holds: its number, 32 times. */
export const pcrs: Pcrs = new Map([0, 1, 2, 3, 4, 5, 6, 7].map((pcr) => [pcr, Buffer.alloc(32, pcr)]));
export const pcrsSent = (values: Pcrs = pcrs) =>
  Object.fromEntries([...values].map(([pcr, value]) => [pcr, value.toString('hex')]));

export const hashOf = (spki: Uint8Array) => createHash('sha256').update(spki).digest('hex');

// ── What the operator trusts ────────────────────────────────────────────────────────────────────────────────────────

const root = await createCa('root');
const expiredRoot = await createCa('expired root', undefined, { notAfter: now - day });
const maker = await createCa('maker', root);
const renewed = await createCa('renewed', root, { notAfter: now - day });
const wide = await createCa('wide', root, { pathLength: 1 });
const narrow = await createCa('narrow', root, { pathLength: 0 });
const keyUsages = x509.KeyUsageFlags;

export const cas = {
  root,
  maker,
  expiredRoot,
  /** Its key is pinned, so its own signature does not count. */
  oldRoot: await createCa('old root', undefined, { hash: 'SHA-1' }),
  deep: await createCa('deep', maker),
  expired: await createCa('expired', root, { notAfter: now - day }),
  early: await createCa('early', root, { notBefore: now + day }),
  /** Renewed with the same key; the expired certificate comes first in the configuration. */
  renewed,
  renewal: await createCa('renewed', root, { keys: renewed.keys }),
  noCa: await createCa('no CA', root, { isCa: false }),
  noSign: await createCa('no sign', root, { usage: keyUsages.digitalSignature | keyUsages.cRLSign }),
  serverCa: await createCa('server CA', root, {
    extensions: [new x509.ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.1'])],
  }),
  ekCa: await createCa('EK CA', root, { extensions: [new x509.ExtendedKeyUsageExtension([ekPurpose])] }),
  anyCa: await createCa('any CA', root, { extensions: [new x509.ExtendedKeyUsageExtension(['2.5.29.37.0'])] }),
  wide,
  belowWide: await createCa('below wide', wide),
  narrow,
  belowNarrow: await createCa('below narrow', narrow),
  constrained: await createCa('constrained', root, {
    // Excludes the DNS name "x".
    extensions: [new x509.Extension('2.5.29.30', false, Buffer.from('3007a1053003820178', 'hex'))],
  }),
  critical: await createCa('critical', root, {
    extensions: [new x509.Extension('1.2.3.4', true, Buffer.from('0500', 'hex'))],
  }),
  /** The configuration refuses it as an intermediate. */
  sha1: await createCa('sha1', root, { hash: 'SHA-1' }),
  /** In no configuration. */
  stranger: await createCa('stranger'),
  /** Under the name of a CA that the operator trusts. */
  impostor: await createCa('maker'),
  /** Not in the configuration, and issued by a CA that is. */
  unlisted: await createCa('unlisted', root),
} as const;

const {
  root: _,
  expiredRoot: __,
  oldRoot: ___,
  stranger: ____,
  impostor: _____,
  unlisted: ______,
  sha1: _______,
  ...intermediates
} = cas;

export const policy: TpmAttestation = {
  roots: [cas.root.pem, cas.expiredRoot.pem, cas.oldRoot.pem],
  intermediates: Object.values(intermediates).map(({ pem }) => pem),
  endorsementKeys: [],
  machines: 'any',
  nodeNames: ['edge-*'],
};

export const entry: MachineEntry = {
  name: `tpm#${hashOf(ek.spki)}`,
  nodeName: 'worker-3',
  addresses: ['192.0.2.3'],
  dnsNames: ['worker-3.example.com'],
  addedAt: now - day,
  by: 'operator',
  reason: 'rack 3',
};

// ── What the machine sends ──────────────────────────────────────────────────────────────────────────────────────────

export type Json = Readonly<Record<string, unknown>>;

export const b64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');
export const certificate = await ekCertificate(ek.spki, cas.maker);

export function quoteData({ attest, sig }: Quoted, values: Pcrs | 'unsent' = pcrs): Json {
  return { attest: b64(attest), sig: b64(sig), ...(values === 'unsent' ? {} : { pcrs: pcrsSent(values) }) };
}

/** Evidence with another attestation key, quoted with it. */
export function withKey(key: Ak, signedWith: Ak = key): Json {
  return { ak: b64(key.area), quote: quoteData(quote(signedWith, bound, pcrs)) };
}

export const good: Json = {
  v: 1,
  ek: { cert: b64(certificate) },
  ...withKey(ak),
};
