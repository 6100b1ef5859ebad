/**
 * Evidence of an EC2 instance with a NitroTPM (docs/attestation/aws-nitrotpm.md): what provider aws sends, and a quote by the TPM. EC2
 * tells the approver the endorsement key of the instance.
 */
import { evidenceVersions } from '../settings/settings.ts';
import type { NitroTpmKeyKind } from '../settings/settings.ts';
import type { NodeProviderPort } from './provider.ts';
import { makeDeviceEvidence } from './tpm.ts';
import type { UseTpm } from './tpm.ts';
import { readEndorsementKey } from './tpm-keys.ts';

/** The names of the kinds in the evidence, which are those of EC2. */
const types: Readonly<Record<NitroTpmKeyKind, string>> = { 'rsa-2048': 'rsa-2048', 'p-384': 'ecc-sec-p384' };

/** `aws`: the provider of that name. */
export function awsNitroTpmProvider(aws: NodeProviderPort, useTpm: UseTpm, kind: NitroTpmKeyKind): NodeProviderPort {
  return {
    ...aws,
    versions: evidenceVersions['aws-nitrotpm'],
    answersChallenges: true,

    async makeEvidence(question) {
      // First the TPM, which may take seconds: the proof of the instance expires sooner.
      const tpm = await useTpm((used) => makeDeviceEvidence(used, () => readEndorsementKey(used, kind), question));
      const instance = await aws.makeEvidence({ ...question, version: 'aws/v2' });
      const claims = JSON.parse(instance.data) as object;
      return {
        data: JSON.stringify({ ...claims, v: 1, ekType: types[kind], ...tpm.device }),
        staleAt: Math.min(instance.staleAt, tpm.staleAt),
      };
    },
  };
}
