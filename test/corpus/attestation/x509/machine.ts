/** A machine with a certificate of its operator's PKI, and everything around it: the one good request that the cases change. */
import { constants, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { X509Attestation, X509Rule } from '../../../../core/configuration/providers/x509.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import { bindingDigest } from '../../../../core/attestation/evidence/binding-digest.ts';
import {
  basicConstraints,
  extKeyUsage,
  general,
  keyOf,
  keyUsage,
  name,
  purposes,
  subjectAltName,
  writeCertificate,
} from '../../../harness/x509/certificate-writer.ts';
import type { CertificateSpec } from '../../../harness/x509/certificate-writer.ts';

export const now = Date.UTC(2026, 10, 22, 12);
export const minute = 60_000;
const day = 86_400_000;

export const audience = '111122223333/eu-central-1/blue';
export const nodeName = 'worker-1';
export const spiffeId = 'spiffe://prod.example/node/worker-1';
export const purpose = purposes.clientAuth;

const requestKey = Buffer.alloc(91, 7);
export const binding = (nonce: string, more: { readonly nodeName?: string } = {}): string =>
  bindingDigest({
    audience,
    signerName: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-x509',
    nodeName,
    nonce,
    spki: requestKey,
    ...more,
  });

export const nonceAt = (instant: number): string => `${instant}.MDEyMzQ1Njc4OWFiY2RlZg`;

// ── The PKI ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const life = { notBefore: now - day, notAfter: now + day };

/** Instead of the usual certificate of that place in the chain. */
export type Change = Partial<CertificateSpec>;

export function root(change: Change = {}): Buffer {
  const key = keyOf('root');
  const extensions = [basicConstraints(true), keyUsage(5, 6)];
  return writeCertificate({
    ...life,
    subject: name('Root'),
    issuer: name('Root'),
    key,
    signer: key,
    extensions,
    ...change,
  });
}

export function intermediate(change: Change = {}): Buffer {
  const extensions = [basicConstraints(true, 0), keyUsage(5, 6)];
  return writeCertificate({
    ...life,
    subject: name('Intermediate'),
    issuer: name('Root'),
    key: keyOf('intermediate'),
    signer: keyOf('root'),
    extensions,
    ...change,
  });
}

export const leafExtensions = {
  basicConstraints: basicConstraints(false),
  keyUsage: keyUsage(0, 2),
  extKeyUsage: extKeyUsage(purposes.serverAuth, purposes.clientAuth),
  subjectAltName: subjectAltName(general.uri(spiffeId)),
} as const;

/** The usual extensions, some of them changed or (`undefined`) left out, and more. */
export function leafExtensionsBut(
  change: { readonly [Name in keyof typeof leafExtensions]?: Buffer | undefined },
  ...more: readonly Buffer[]
): readonly Buffer[] {
  return [...Object.values({ ...leafExtensions, ...change }).filter((one) => one !== undefined), ...more];
}

export function leaf(change: Change = {}): Buffer {
  return writeCertificate({
    ...life,
    subject: name([['2.5.4.10', 'Example']]),
    issuer: name('Intermediate'),
    key: keyOf('machine'),
    signer: keyOf('intermediate'),
    extensions: Object.values(leafExtensions),
    ...change,
  });
}

export const certificates = { root: root(), intermediate: intermediate(), leaf: leaf() } as const;
export const pem = (der: Uint8Array): string => toPem('CERTIFICATE', der);

/** Another PKI, with the same names. */
export const otherRoot = root({ key: keyOf('other root'), signer: keyOf('other root') });

// ── The policy ──────────────────────────────────────────────────────────────────────────────────────────────────────

export const rule: X509Rule = {
  root: 'prod',
  kind: 'uri',
  pattern: 'spiffe://prod.example/node/{node}',
  nodeName: [{ kind: 'template', template: '{node}' }],
  addresses: false,
  dnsNames: false,
  extKeyUsage: purposes.clientAuth,
};

export const policy: X509Attestation = {
  roots: [{ name: 'prod', certificates: [pem(certificates.root)] }],
  intermediates: [],
  rules: [rule],
};

// ── The evidence ────────────────────────────────────────────────────────────────────────────────────────────────────

/** By the documentation, and not by the product's own code. */
const algorithms: Readonly<Record<string, { readonly label: string; readonly digest: string | undefined }>> = {
  rsa: { label: 'RSASSA_PSS_SHA_256', digest: 'sha256' },
  prime256v1: { label: 'ECDSA_SHA_256', digest: 'sha256' },
  secp384r1: { label: 'ECDSA_SHA_384', digest: 'sha384' },
  secp521r1: { label: 'ECDSA_SHA_512', digest: 'sha512' },
  ed25519: { label: 'ED25519', digest: undefined },
};

export function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject) {
  // A key of another curve has no algorithm: its signature is made as for P-256.
  const kind = asymmetricKeyDetails?.namedCurve ?? asymmetricKeyType ?? '';
  return algorithms[kind] ?? { label: 'ECDSA_SHA_256', digest: 'sha256' };
}

export function signatureOver(content: Uint8Array, key: KeyObject): Buffer {
  const pss = key.asymmetricKeyType === 'rsa' ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 } : {};
  return sign(algorithmOf(key).digest, content, { key, ...pss });
}

export function contentFor(nonce: string, change: { readonly nodeName?: string } = {}): Buffer {
  return Buffer.concat([Buffer.from('csr-attest/x509/v1\0'), Buffer.from(binding(nonce, change), 'hex')]);
}
