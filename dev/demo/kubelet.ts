/** The part of a kubelet that asks for a certificate: a key that stays here, and a request (RFC 2986) for it. */
import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { assembleCertificate } from '../../core/x509/leaf-certificate.ts';
import { toPem } from '../../core/encoding/pem.ts';
import { providerIdType } from '../../core/x509/certificate-request.ts';
import {
  explicit,
  integer,
  objectIdentifier,
  octetString,
  sequence,
  setOf,
  utf8String,
} from '../../core/encoding/der-writer.ts';
import { evidenceLabels } from '../../core/attestation/evidence/evidence.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { encodeSubject } from '../../core/x509/distinguished-name.ts';

export interface CertificateQuestion {
  readonly signerName: string;
  readonly commonName: string;
  readonly organization: string;
  readonly usages: readonly string[];
}

/** What a node that proves itself sends besides (docs/attestation.md). */
export interface NodeProof {
  /** Of the machine, as the node object has it. */
  readonly providerId: string;
  /** `aws/v2`. */
  readonly version: string;
  /** The evidence, for the key that is asked for: DER SubjectPublicKeyInfo. */
  readonly evidence: (spki: Uint8Array) => string;
}

export interface AskedCertificate {
  readonly privateKey: KeyObject;
  /** As a kubelet posts it: the API server makes the name. */
  readonly object: JsonObject;
}

export function askForCertificate(question: CertificateQuestion, proof?: NodeProof): AskedCertificate {
  const { signerName, usages } = question;
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = new Uint8Array(createPublicKey(privateKey).export({ type: 'spki', format: 'der' }));
  const request = toPem('CERTIFICATE REQUEST', encodeRequest(privateKey, spki, question, proof?.providerId));
  const blocks =
    proof === undefined
      ? ''
      : toPem(evidenceLabels.provider, Buffer.from(proof.version)) +
        toPem(evidenceLabels.data, Buffer.from(proof.evidence(spki)));
  return {
    privateKey,
    object: {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: 'countersign-demo-' },
      spec: { signerName, usages, request: Buffer.from(request + blocks).toString('base64') },
    },
  };
}

function encodeRequest(
  privateKey: KeyObject,
  spki: Uint8Array,
  { commonName, organization }: CertificateQuestion,
  providerId: string | undefined,
): Uint8Array {
  const info = sequence(
    integer(0),
    encodeSubject({
      attributes: [
        { type: '2.5.4.10', value: organization },
        { type: '2.5.4.3', value: commonName },
      ],
    }),
    spki,
    explicit(0, providerId === undefined ? new Uint8Array() : extensionRequest(providerId)),
  );
  // A CertificationRequest is signed and put together as a Certificate is: content, algorithm, signature.
  return assembleCertificate(info, new Uint8Array(sign('sha256', info, privateKey)), 'ECDSA_SHA_256');
}

/** RFC 2985 §5.4.2, with the one extension. */
function extensionRequest(providerId: string): Uint8Array {
  const extension = sequence(objectIdentifier(providerIdType), octetString(utf8String(providerId)));
  return sequence(objectIdentifier('1.2.840.113549.1.9.14'), setOf(sequence(extension)));
}
