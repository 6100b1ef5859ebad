/** The keys of `attestation.tpm` in countersign.yaml, and what they mean (docs/attestation/tpm.md). */
import { z } from 'zod';
import type { Place } from '../fields/place.ts';
import { matching } from '../fields/values.ts';
import { checkAnchors, nodeNamePattern } from './anchors.ts';

const certificates = z.array(z.string().max(16_384)).max(256).default([]);

export const tpmKeys = z.strictObject({
  roots: certificates.describe(
    'Root certificates (PEM) of endorsement keys: of TPM manufacturers, or your own. An endorsement key without a certificate under one of them is refused, unless `endorsementKeys` names it.',
  ),
  intermediates: certificates.describe(
    'Intermediate CA certificates (PEM) between endorsement key certificates and `roots`. Certificates in evidence are not used as such.',
  ),
  endorsementKeys: z
    .array(matching(/^[0-9a-f]{64}$/, 'must be a SHA-256 digest in lower-case hex'))
    .max(4_096)
    .default([])
    .describe(
      'Endorsement keys that need no certificate: SHA-256 digests of their SubjectPublicKeyInfo (`countersign machines ek` prints them).',
    ),
  machines: z
    .enum(['listed', 'any'])
    .default('listed')
    .describe(
      '`listed`: only machines that `countersign machines allow` names; without `roots` the list is also the trust in their endorsement keys. `any`: every machine whose endorsement key is trusted.',
    ),
  nodeName: z
    .array(matching(/^pattern:.{1,253}$/, 'must be pattern:<name with *>'))
    .default([])
    .describe(
      'What a machine may be called that the list does not name: `pattern:<name with *>`, first come, first served. Required with `machines: any`.',
    ),
});

export type TpmAttestationInput = z.infer<typeof tpmKeys>;

export interface TpmAttestation extends Readonly<Omit<TpmAttestationInput, 'nodeName'>> {
  /** Patterns of core/policy/patterns.ts, for machines without a node name on the operator's list. */
  readonly nodeNames: readonly string[];
}

/** `at`: the key `tpm` under `attestation`. */
export function resolveTpm(input: TpmAttestationInput, at: Place): TpmAttestation {
  const { roots, intermediates, endorsementKeys, nodeName, machines } = input;
  if (machines === 'any') {
    if (roots.length + endorsementKeys.length === 0)
      at.error('trusts no endorsement key: name roots or endorsementKeys, or leave machines: listed');
    if (nodeName.length === 0) at('nodeName').error('is required with machines: any. For example [pattern:edge-*]');
    if (roots.length > 0)
      at('machines').warning(
        'any TPM with a certificate under these roots may join, also one that its manufacturer sold to another customer',
      );
  }
  checkAnchors(input, at);
  const nodeNames = nodeName.map((rule, index) =>
    nodeNamePattern(rule.slice('pattern:'.length), at('nodeName', index)),
  );
  return { machines, roots, intermediates, endorsementKeys, nodeNames };
}
