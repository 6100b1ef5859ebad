/**
 * What the ledger keeps of a request object beside the certificate: for the inventory (who asked, of which signer), and for
 * `countersign config diff`, which decides the request again.
 */
import type { RequestFacts } from '../ports/certificate-ledger.ts';
import type { RequestObject } from './certificate-signing-request.ts';

/**
 * Bytes (UTF-8) of the requester, of all groups together, and of all usages together. All facts stay below 2.5 KiB, so a requester with
 * many groups costs at most three more write units a write and index.
 */
export const maxFactBytes = 512;

export function requestFacts(
  {
    username,
    groups,
    usages,
    expirationSeconds,
  }: Pick<RequestObject, 'username' | 'groups' | 'usages' | 'expirationSeconds'>,
  signerName: string,
): RequestFacts {
  return {
    signerName,
    ...(fits([username]) ? { requester: username } : {}),
    ...(fits(groups) ? { groups } : {}),
    ...(fits(usages) ? { usages } : {}),
    ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
  };
}

/** Each value also costs a byte, so that a list of empty texts has a limit too. */
function fits(values: readonly string[]): boolean {
  return values.reduce((sum, value) => sum + 1 + Buffer.byteLength(value), 0) <= maxFactBytes;
}
