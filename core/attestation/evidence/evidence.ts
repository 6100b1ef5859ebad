/** The evidence blocks of a request (docs/attestation.md): which provider decodes them. */
import type { PemBlock } from '../../encoding/pem.ts';
import { violation } from '../../outcome/outcome.ts';
import type { Violation } from '../../outcome/outcome.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';

export const evidenceLabels = {
  provider: 'KUBELET AUTHENTICATOR ATTESTATION PROVIDER',
  data: 'KUBELET AUTHENTICATOR ATTESTATION DATA',
} as const;

/**
 * The refusal of evidence that waited for more than its five minutes. A provider returns this very object: attest recognizes it, and
 * does not count the refusal of its requester. A pool of thousands of nodes has one bootstrap token and waits longer than that for EC2.
 */
export const evidenceTooOld = violation('AttestationInvalid', 'the STS token was signed more than 5 minutes ago');

export interface SentEvidence {
  /** `aws/v1`: provider and version of the data's schema. */
  readonly version: string;
  readonly data: Uint8Array;
}

/** `undefined` if the request has no evidence. decodePem has checked the order and number of the blocks. */
export function decodeEvidence(blocks: readonly PemBlock[]): Result<SentEvidence | undefined, Violation> {
  const [first] = blocks;
  if (first === undefined) return success(undefined);
  // Blocks of gke-exec-auth-plugin have no version. Only a profile that accepts its evidence permits their labels.
  if (!first.label.startsWith('KUBELET AUTHENTICATOR')) return success({ version: 'gce-vtpm/v1', data: first.content });
  const provider = blocks.find(({ label }) => label === evidenceLabels.provider);
  const data = blocks.find(({ label }) => label === evidenceLabels.data);
  if (provider === undefined || data === undefined)
    return invalid('the request has only one of the two evidence blocks, PROVIDER and DATA');
  const version = Buffer.from(provider.content).toString('latin1');
  if (!/^[a-z][a-z0-9-]{0,31}\/v[1-9][0-9]{0,3}$/.test(version))
    return invalid('the PROVIDER block does not hold a provider and version such as aws/v1');
  return success({ version, data: data.content });
}

function invalid(message: string): Result<never, Violation> {
  return failure(violation('AttestationInvalid', message));
}
