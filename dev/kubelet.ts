/** The part of a kubelet that asks for a certificate: a key that stays here, and a request (RFC 2986) for it. */
import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { assembleCertificate, toPem } from '../core/certificate.ts';
import { explicit, sequence } from '../core/der-encoder.ts';
import type { JsonObject } from '../core/ports.ts';
import { encodeSubject } from '../core/subject.ts';

export interface CertificateQuestion {
  readonly signerName: string;
  readonly commonName: string;
  readonly organization: string;
  readonly usages: readonly string[];
}

export interface AskedCertificate {
  readonly privateKey: KeyObject;
  /** As a kubelet posts it: the API server makes the name. */
  readonly object: JsonObject;
}

export function askForCertificate({
  signerName,
  commonName,
  organization,
  usages,
}: CertificateQuestion): AskedCertificate {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = toPem('CERTIFICATE REQUEST', encodeRequest(privateKey, commonName, organization));
  return {
    privateKey,
    object: {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: 'countersign-demo-' },
      spec: { signerName, usages, request: Buffer.from(pem).toString('base64') },
    },
  };
}

function encodeRequest(privateKey: KeyObject, commonName: string, organization: string): Uint8Array {
  const info = sequence(
    version0,
    encodeSubject({
      attributes: [
        { type: '2.5.4.10', value: organization },
        { type: '2.5.4.3', value: commonName },
      ],
    }),
    new Uint8Array(createPublicKey(privateKey).export({ type: 'spki', format: 'der' })),
    explicit(0, new Uint8Array()), // no attributes
  );
  // A CertificationRequest is signed and put together as a Certificate is: content, algorithm, signature.
  return assembleCertificate(info, new Uint8Array(sign('sha256', info, privateKey)), 'ECDSA_SHA_256');
}

/** INTEGER 0. */
const version0 = Uint8Array.of(2, 1, 0);
