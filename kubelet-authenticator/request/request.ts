/** Builds `spec.request` of a node: the certificate request (RFC 2986), followed by the evidence (docs/attestation.md). */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { bindingDigest } from '../../core/attestation/evidence/binding-digest.ts';
import { extensionRequestType, providerIdType } from '../../core/x509/certificate-request.ts';
import {
  bitString,
  explicit,
  integer,
  objectIdentifier,
  sequence,
  setOf,
  utf8String,
} from '../../core/encoding/der-writer.ts';
import { evidenceLabels } from '../../core/attestation/evidence/evidence.ts';
import { toPem } from '../../core/encoding/pem.ts';
import { encodeSubject } from '../../core/x509/distinguished-name.ts';
import { encodeSubjectAltNames } from '../../core/x509/subject-alt-names.ts';
import { algorithmIdentifiers, extensionType } from '../../core/x509/model.ts';
import { encodeExtension } from '../../core/x509/tbs-certificate.ts';
import type { Names } from '../files/check-credential.ts';
import type { EvidenceQuestion, NodeProviderPort } from '../providers/provider.ts';
import type { NodeKeyKind, Settings } from '../settings/settings.ts';

export interface Wanted {
  readonly signerName: string;
  readonly usages: readonly string[];
  /** Empty for a client certificate. */
  readonly names: Names;
}

export interface MadeRequest {
  /** Name of the object: a hash of the request, so that a repeated create conflicts with the object that exists. */
  readonly name: string;
  readonly text: string;
  readonly staleAt: number;
}

export async function makeRequest(
  settings: Pick<Settings, 'nodeName' | 'clusterName' | 'audience'>,
  wanted: Wanted,
  keyPem: string,
  provider: NodeProviderPort,
  { version, challenge, refused = false, now }: Pick<EvidenceQuestion, 'version' | 'challenge' | 'refused' | 'now'>,
): Promise<MadeRequest> {
  const { nodeName, clusterName, audience } = settings;
  const key = createPrivateKey(keyPem);
  const spki = publicKeyInfo(key);
  const { providerId } = await provider.describe();
  const { data, staleAt } = await provider.makeEvidence({
    version,
    clusterName,
    binding: (nonce) => bindingDigest({ audience, signerName: wanted.signerName, nodeName, nonce, spki }),
    nonce: randomBytes(16).toString('base64url'),
    challenge,
    refused,
    now,
  });
  const text = [
    toPem('CERTIFICATE REQUEST', certificateRequest(nodeName, wanted, key, providerId)),
    toPem(evidenceLabels.provider, Buffer.from(version, 'latin1')),
    toPem(evidenceLabels.data, Buffer.from(data, 'utf8')),
  ].join('');
  const name = `node-csr-${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
  return { name, text, staleAt };
}

export function requestObject({ name, text }: Pick<MadeRequest, 'name' | 'text'>, wanted: Wanted): object {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      signerName: wanted.signerName,
      request: Buffer.from(text, 'utf8').toString('base64'),
      usages: wanted.usages,
    },
  };
}

/** A new key, PKCS #8. The caller writes it to disk. */
export function newKey(kind: NodeKeyKind): string {
  return generate(kind).export({ type: 'pkcs8', format: 'pem' }).toString();
}

function generate(kind: NodeKeyKind): KeyObject {
  switch (kind) {
    case 'P-256':
    case 'P-384':
    case 'P-521':
      return generateKeyPairSync('ec', { namedCurve: kind }).privateKey;
    case 'RSA-2048':
    case 'RSA-3072':
    case 'RSA-4096':
      return generateKeyPairSync('rsa', { modulusLength: Number(kind.slice(4)) }).privateKey;
    case 'Ed25519':
      return generateKeyPairSync('ed25519').privateKey;
  }
}

/** The kubelet also requests `key encipherment` for RSA keys. Only RSA key exchange uses it, and TLS 1.3 has no RSA key exchange. */
export const clientUsages: readonly string[] = ['digital signature', 'client auth'];
export const servingUsages: readonly string[] = ['digital signature', 'server auth'];

function publicKeyInfo(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}

/** CertificationRequest ::= SEQUENCE { info, algorithm, signature } (RFC 2986 §4.2). */
function certificateRequest(
  nodeName: string,
  { names }: Wanted,
  key: KeyObject,
  providerId: string | undefined,
): Uint8Array {
  const sans = encodeSubjectAltNames({ ...names, email: [], uri: [] });
  const extensions = [
    ...(sans === undefined ? [] : [encodeExtension(extensionType.subjectAltName, false, sans)]),
    ...(providerId === undefined ? [] : [encodeExtension(providerIdType, false, utf8String(providerId))]),
  ];
  const requested = sequence(objectIdentifier(extensionRequestType), setOf(sequence(...extensions)));
  const subject = [
    { type: '2.5.4.10', value: 'system:nodes' },
    { type: '2.5.4.3', value: `system:node:${nodeName}` },
  ];
  const info = sequence(
    integer(0),
    encodeSubject({ attributes: subject }),
    publicKeyInfo(key),
    // attributes [0] IMPLICIT SET OF, present even if empty (RFC 2986 §4.1).
    explicit(0, extensions.length === 0 ? new Uint8Array() : requested),
  );
  const [hash, algorithm] = signatureOf(key);
  return sequence(info, algorithm, bitString(sign(hash, info, key)));
}

/** RFC 5758 §3.2, RFC 8017 §A.2.4, RFC 8410 §3. */
function signatureOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): [hash: string | null, Uint8Array] {
  switch (asymmetricKeyDetails?.namedCurve ?? asymmetricKeyType) {
    case 'prime256v1':
      return ['sha256', algorithmIdentifiers.ECDSA_SHA_256];
    case 'secp384r1':
      return ['sha384', algorithmIdentifiers.ECDSA_SHA_384];
    case 'secp521r1':
      return ['sha512', algorithmIdentifiers.ECDSA_SHA_512];
    case 'rsa':
      return ['sha256', algorithmIdentifiers.RSASSA_PKCS1_V1_5_SHA_256];
    case 'ed25519':
      return [null, sequence(objectIdentifier('1.3.101.112'))];
    case undefined:
    default:
      throw new Error('the key in the cache has an unsupported kind');
  }
}
