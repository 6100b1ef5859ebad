/** The evidence blocks of a request (docs/attestation.md): which provider's, which version, and its undecoded data. */
import type { EvidenceBlock } from '../../x509/model.ts';
import { violation } from '../../outcome/outcome.ts';
import type { Violation } from '../../outcome/outcome.ts';

export const evidenceLabels = {
  provider: 'KUBELET AUTHENTICATOR ATTESTATION PROVIDER',
  data: 'KUBELET AUTHENTICATOR ATTESTATION DATA',
} as const;

export interface SentEvidence {
  /** `aws/v1`: provider and version of the data's schema. */
  readonly version: string;
  readonly data: Uint8Array;
}

/** Nothing when the request brings no evidence at all. The blocks' order and number were checked with the PEM. */
export function decodeEvidence(blocks: readonly EvidenceBlock[]): SentEvidence | Violation | undefined {
  if (blocks.length === 0) return undefined;
  const provider = blocks.find(({ label }) => label === evidenceLabels.provider);
  const data = blocks.find(({ label }) => label === evidenceLabels.data);
  if (provider === undefined || data === undefined)
    return violation('AttestationInvalid', 'the request has only one of the two evidence blocks, PROVIDER and DATA');
  const version = Buffer.from(provider.content).toString('latin1');
  if (!/^[a-z][a-z0-9-]{0,31}\/v[1-9][0-9]{0,3}$/.test(version))
    return violation('AttestationInvalid', 'the PROVIDER block does not hold a provider and version such as aws/v1');
  return { version, data: data.content };
}
