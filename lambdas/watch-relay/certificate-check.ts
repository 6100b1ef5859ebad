import { createPublicKey, X509Certificate } from 'node:crypto';
import { decodeRequest } from '../../core/csr.ts';

/** A leaf and a few intermediates are a few KiB. */
const maxChainCharacters = 262_144;
const block = /-----BEGIN CERTIFICATE-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END CERTIFICATE-----(?:\r?\n|$)/y;

/**
 * Why this must not be written as the answer to that request; `undefined` if it may be. The API server stores any
 * certificate on any request (measured, http-api.md), so this is the last look before a requester trusts it: a mixed
 * up answer, a proxy's page or half a chain ends here. Who may be named in it is the sign function's business.
 */
export function certificateProblem(pem: string, request: Uint8Array): string | undefined {
  if (pem.length > maxChainCharacters) return 'the chain is too long';
  let leaf: X509Certificate | undefined;
  block.lastIndex = 0;
  while (block.lastIndex < pem.length) {
    // Blocks and nothing between them: text or headers would be stored too, and read by clients in different ways.
    const found = block.exec(pem);
    if (found?.[1] === undefined) return 'it is not a run of PEM CERTIFICATE blocks';
    try {
      const certificate = new X509Certificate(Buffer.from(found[1], 'base64'));
      leaf ??= certificate;
    } catch {
      return 'a certificate of the chain cannot be parsed';
    }
  }
  if (leaf === undefined) return 'it is empty';
  if (leaf.ca) return 'the first certificate is a CA';

  const decoded = decodeRequest(request);
  if (!decoded.ok) return 'the request itself cannot be read';
  try {
    const requested = createPublicKey({
      key: Buffer.from(decoded.request.publicKey.spki),
      format: 'der',
      type: 'spki',
    });
    // As keys, not as bytes: the same key may be written in more than one way.
    if (!leaf.publicKey.equals(requested)) return 'it certifies another key';
  } catch {
    return 'a public key cannot be parsed';
  }
  return undefined;
}
