/**
 * The DATA block of aws-nitrotpm evidence (docs/attestation/aws-nitrotpm.md): the claims and the STS token of `aws/v2`, and what a
 * TPM adds:
 *
 *   { "v": 1, "account": text, "region": text, "instance": text, "sts": text, "ekType": "rsa-2048" or "ecc-sec-p384",
 *     "ak": …, "quote": …, "activation": …?, "nonce": text? }     (ak, quote and activation as in tpm/v1)
 *
 * The endorsement key is not in it: EC2 names it. A NitroTPM has two of them, so the node says of which kind it uses.
 */
import { readEvidence } from '../../encoding/strict-json.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { endorsementKeyTypes } from '../aws/endpoints.ts';
import type { EndorsementKeyType } from '../aws/endpoints.ts';
import { claimKeys, readClaims } from '../aws/evidence.ts';
import type { AwsEvidence } from '../aws/evidence.ts';
import { deviceKeys, readDeviceEvidence } from '../tpm/evidence.ts';
import type { DeviceEvidence } from '../tpm/evidence.ts';

/** What is known of the provider before it is loaded. */
export const awsNitroTpmFacts = {
  name: 'aws-nitrotpm',
  versions: ['aws-nitrotpm/v1'],
  secure: true,
  provesHardware: true,
  reusesDescriptions: true,
} as const;

export interface AwsNitroTpmEvidence {
  readonly aws: AwsEvidence;
  readonly device: DeviceEvidence;
  readonly endorsementKeyType: EndorsementKeyType;
}

/** The problem is a whole clause: `the attestation data has an unknown key`. */
export function readAwsNitroTpmEvidence(data: Uint8Array): Result<AwsNitroTpmEvidence, string> {
  const read = readEvidence(data, {
    required: ['v', ...claimKeys, 'sts', 'ekType', ...deviceKeys.required],
    optional: deviceKeys.optional,
  });
  if (!read.ok) return wrong(read.problem);
  const { v, sts, ekType } = read.value;
  if (v !== 1) return wrong('is not of aws-nitrotpm/v1');
  if (typeof sts !== 'string') return wrong('has a proof that is not text');
  const endorsementKeyType = endorsementKeyTypes.find((known) => known === ekType);
  if (endorsementKeyType === undefined) return wrong('names no type of endorsement key that a NitroTPM has');
  const instance = readClaims(read.value);
  if (!instance.ok) return instance;
  const device = readDeviceEvidence(read.value);
  if (!device.ok) return wrong(device.problem);
  const { nonce } = device.value;
  return success({ aws: { instance: instance.value, sts, nonce }, device: device.value, endorsementKeyType });
}

function wrong(problem: string): Result<never, string> {
  return failure(`the attestation data ${problem}`);
}
