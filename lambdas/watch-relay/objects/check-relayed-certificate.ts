import { createPublicKey, X509Certificate } from 'node:crypto';
import { childrenOf, derTag, encodingOf, readDer } from '../../../core/encoding/der-reader.ts';
import type { DerElement } from '../../../core/encoding/der-reader.ts';

/** A leaf and a few intermediates are a few KiB. */
const maxChainCharacters = 262_144;
const certificateBlock = /-----BEGIN CERTIFICATE-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END CERTIFICATE-----(?:\r?\n|$)/y;
const requestBlock =
  /^\s*-----BEGIN CERTIFICATE REQUEST-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END CERTIFICATE REQUEST-----/;

/**
 * Why this must not be written as the answer to that request; `undefined` if it may. The API server stores any
 * certificate on any request (measured), so this is the last look before a requester trusts it: a mixed
 * up answer, a proxy's page or half a chain ends here. Who may be named in it is the sign function's business.
 */
export function certificateProblem(pem: string, request: Uint8Array): string | undefined {
  if (pem.length > maxChainCharacters) return 'the chain is too long';
  let leaf: X509Certificate | undefined;
  let last: X509Certificate | undefined;
  certificateBlock.lastIndex = 0;
  while (certificateBlock.lastIndex < pem.length) {
    // Blocks and nothing between them: text or headers would be stored too, and read by clients in different ways.
    const found = certificateBlock.exec(pem);
    if (found?.[1] === undefined) return 'it is not a run of PEM CERTIFICATE blocks';
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
 * Whether the second may follow the first in the answer: a CA that issued it, and no root. TLS peers are shown the whole
 * chain, and some take every certificate in the field for one to trust.
 */
function linkProblem(certificate: X509Certificate, issuer: X509Certificate): string | undefined {
  if (!issuer.ca) return 'a certificate behind the first one is no CA';
  if (!isIssuedBy(certificate, issuer)) return 'a certificate of the chain did not issue the one before it';
  return isIssuedBy(issuer, issuer) ? 'the chain holds a self-signed root' : undefined;
}

/** Names, key identifiers and key usage (checkIssued), and the signature. Throws for keys that OpenSSL does not verify. */
function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/**
 * The key is all we look for in the request: whether it is well formed and proves possession the sign function has
 * judged. Should it have read another key than we do here, nothing is written.
 */
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
  // The same key may be written in more than one way, which costs more to see.
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
