import { createPublicKey, X509Certificate } from 'node:crypto';
import { childrenOf, derTag, encodingOf, readDer } from '../../../core/encoding/der-reader.ts';
import type { DerElement } from '../../../core/encoding/der-reader.ts';

/** A leaf and a few intermediates are a few KiB. */
const maxChainCharacters = 262_144;
const certificateBlock = /-----BEGIN CERTIFICATE-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END CERTIFICATE-----(?:\r?\n|$)/y;
const requestBlock =
  /^\s*-----BEGIN CERTIFICATE REQUEST-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END CERTIFICATE REQUEST-----/;

/**
 * Why the certificate must not be written to the request; `undefined` if it may be. The API server stores any certificate
 * in any request (measured), so this is the last check before a requester trusts it: it stops an answer to another request,
 * an error page of a proxy or half a chain. The sign function checks the names in it.
 */
export function certificateProblem(pem: string, request: Uint8Array): string | undefined {
  if (pem.length > maxChainCharacters) return 'the chain is too long';
  let leaf: X509Certificate | undefined;
  let last: X509Certificate | undefined;
  certificateBlock.lastIndex = 0;
  while (certificateBlock.lastIndex < pem.length) {
    // Blocks only: text or headers between them would be stored too, and clients read them differently.
    const found = certificateBlock.exec(pem);
    if (found?.[1] === undefined) return 'it contains more than PEM CERTIFICATE blocks';
    try {
      const certificate = new X509Certificate(Buffer.from(found[1], 'base64'));
      const problem = last === undefined ? undefined : linkProblem(last, certificate);
      if (problem !== undefined) return problem;
      leaf ??= certificate;
      last = certificate;
    } catch {
      return 'a certificate of the chain cannot be parsed';
    }
  }
  if (leaf === undefined) return 'it is empty';
  if (leaf.ca) return 'the first certificate is a CA';

  const requested = requestedKey(request);
  if (requested === undefined) return 'the request itself cannot be read';
  return certifies(leaf, requested) ? undefined : 'it certifies another key';
}

/**
 * Why `issuer` may not follow in the chain: it must be a CA that issued the certificate, and not a root. TLS peers get the
 * whole chain, and some clients trust every certificate in the field.
 */
function linkProblem(certificate: X509Certificate, issuer: X509Certificate): string | undefined {
  if (!issuer.ca) return 'a certificate after the first one is not a CA';
  if (!isIssuedBy(certificate, issuer)) return 'a certificate of the chain did not issue the one before it';
  return isIssuedBy(issuer, issuer) ? 'the chain contains a self-signed root' : undefined;
}

/** `checkIssued` compares names, key identifiers and key usage. Throws for keys that OpenSSL does not verify. */
function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** Reads only the key, since sign checked the rest. If sign read another key, the certificate is not written. */
function requestedKey(request: Uint8Array): Uint8Array | undefined {
  const [, base64] = requestBlock.exec(Buffer.from(request).toString('latin1')) ?? [];
  if (base64 === undefined) return undefined;
  const root = readDer(Buffer.from(base64, 'base64'));
  if (!root.ok) return undefined;
  // RFC 2986 §4.1: version, subject, subjectPKInfo, attributes.
  return fieldOf(root.value, 2);
}

function certifies(leaf: X509Certificate, requested: Uint8Array): boolean {
  const root = readDer(leaf.raw);
  // RFC 5280 §4.1: version, serialNumber, signature, issuer, validity, subject, subjectPublicKeyInfo …
  const certified = root.ok ? fieldOf(root.value, 6) : undefined;
  if (certified !== undefined && Buffer.compare(certified, requested) === 0) return true;
  // One key can have several encodings. This comparison is slower.
  try {
    return leaf.publicKey.equals(createPublicKey({ key: Buffer.from(requested), format: 'der', type: 'spki' }));
  } catch {
    return false;
  }
}

/** A field of the structure that is signed. */
function fieldOf(signed: DerElement, position: number): Uint8Array | undefined {
  const [inner] = childrenOf(signed, derTag.sequence) ?? [];
  const field = childrenOf(inner, derTag.sequence)?.[position];
  return field === undefined ? undefined : encodingOf(field);
}
