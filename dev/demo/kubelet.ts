/**
 * The part of a kubelet that requests a certificate: a key that stays here, and a request (RFC 2986) for it. The request is
 * made with @peculiar/x509, so that the demo does not test our reader with our own writer.
 */
import 'reflect-metadata';
import { KeyObject, webcrypto } from 'node:crypto';
import { Extension, Pkcs10CertificateRequestGenerator } from '@peculiar/x509';
import { evidenceLabels } from '../../core/attestation/evidence/evidence.ts';
import { utf8String } from '../../core/encoding/der-writer.ts';
import { toPem } from '../../core/encoding/pem.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { providerIdType } from '../../core/x509/certificate-request.ts';

export interface CertificateQuestion {
  readonly signerName: string;
  readonly commonName: string;
  readonly organization: string;
  readonly usages: readonly string[];
}

/** What an attested node sends in addition (docs/attestation.md). */
export interface NodeProof {
  /** The machine's providerID, as in the Node object. */
  readonly providerId: string;
  /** `aws/v2`. */
  readonly version: string;
  /** The evidence for the requested key, which is given as DER SubjectPublicKeyInfo. */
  readonly evidence: (spki: Uint8Array) => string;
}

export interface AskedCertificate {
  readonly privateKey: KeyObject;
  /** As a kubelet posts it: the API server generates the name. */
  readonly object: JsonObject;
}

export async function askForCertificate(question: CertificateQuestion, proof?: NodeProof): Promise<AskedCertificate> {
  const { signerName, usages, commonName, organization } = question;
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: [{ O: [organization] }, { CN: [commonName] }],
    keys,
    signingAlgorithm: algorithm,
    extensions:
      proof === undefined ? [] : [new Extension(providerIdType, false, new Uint8Array(utf8String(proof.providerId)))],
  });
  const spki = new Uint8Array(await webcrypto.subtle.exportKey('spki', keys.publicKey));
  const blocks = [
    toPem('CERTIFICATE REQUEST', new Uint8Array(request.rawData)),
    ...(proof === undefined
      ? []
      : [
          toPem(evidenceLabels.provider, Buffer.from(proof.version)),
          toPem(evidenceLabels.data, Buffer.from(proof.evidence(spki))),
        ]),
  ];
  return {
    privateKey: KeyObject.from(keys.privateKey),
    object: {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: 'countersign-demo-' },
      spec: { signerName, usages, request: Buffer.from(blocks.join('')).toString('base64') },
    },
  };
}
