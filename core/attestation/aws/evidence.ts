/**
 * The DATA block of aws evidence, with one schema for each version (docs/attestation/aws.md). Both versions name the instance and
 * hold the STS token:
 *
 * - `aws/v2` only claims the instance; STS and EC2 confirm the claim. Every node and bootstrap token of the cluster can read
 *   the request, so it carries no signed document, which could be used elsewhere.
 * - `aws/v1` carries the instance identity document, which the region signed. Other systems accept that document.
 */
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';
import { readIdentityDocument } from './identity-document.ts';
import type { ClaimedInstance } from './identity-document.ts';
import { identityOf, isAccountId, isInstanceId } from './instance-identity.ts';
import { partitionOf } from './partition.ts';
import { verifySignedData } from './cms.ts';
import type { PinnedCertificate } from './cms.ts';
import { readEvidence } from '../../encoding/strict-json.ts';

export type AwsEvidenceVersion = 'aws/v1' | 'aws/v2';

export interface AwsEvidence {
  readonly instance: ClaimedInstance;
  /** The STS token, not decoded yet. */
  readonly sts: string;
  readonly nonce: string;
}

/** The keys that `readClaims` reads. */
export const claimKeys = ['account', 'region', 'instance'] as const;

/** `keys`: the fields besides `v`, `sts` and the optional `nonce`. */
const schemas = {
  'aws/v1': { v: 1, keys: ['rsa2048'] },
  'aws/v2': { v: 2, keys: claimKeys },
} as const;

/** The problem is a whole clause: `the attestation data has an unknown key`. */
export function readAwsEvidence(
  version: AwsEvidenceVersion,
  data: Uint8Array,
  certificates: readonly PinnedCertificate[],
  now: Instant,
): Result<AwsEvidence, string> {
  const schema = schemas[version];
  const read = readEvidence<string, string>(data, { required: ['v', ...schema.keys, 'sts'], optional: ['nonce'] });
  if (!read.ok) return wrongData(read.problem);
  const { v, sts, nonce = '', ...fields } = read.value;
  if (v !== schema.v) return wrongData(`is not of ${version}`);
  if (typeof sts !== 'string') return wrongData('has a proof that is not text');
  if (typeof nonce !== 'string' || !/^[A-Za-z0-9_-]{0,128}$/.test(nonce)) return wrongData('has an invalid nonce');
  const instance = version === 'aws/v2' ? readClaims(fields) : readDocument(fields, certificates, now);
  return instance.ok ? success({ instance: instance.value, sts, nonce }) : instance;
}

type Fields = Readonly<Record<string, unknown>>;

/** `{"account":"…","region":"…","instance":"i-…"}`, which STS and EC2 must confirm. */
export function readClaims({ account, region, instance: instanceId }: Fields): Result<ClaimedInstance, string> {
  if (typeof account !== 'string' || !isAccountId(account)) return wrongData('names no account');
  if (typeof region !== 'string') return wrongData('names no region of a known partition');
  const partition = partitionOf(region);
  if (partition === undefined) return wrongData('names no region of a known partition');
  if (typeof instanceId !== 'string' || !isInstanceId(instanceId)) return wrongData('names no instance');
  const named = { account, region, instanceId };
  return success({ ...named, identity: identityOf(named), partition });
}

/** `{"rsa2048":"…"}`: the CMS message that holds the document and the region's signature. */
function readDocument(
  { rsa2048 }: Fields,
  certificates: readonly PinnedCertificate[],
  now: Instant,
): Result<ClaimedInstance, string> {
  if (typeof rsa2048 !== 'string') return wrongData('has a proof that is not text');
  // The metadata service returns base64 with line breaks.
  const base64 = rsa2048.replace(/\r?\n/g, '');
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64) return wrongData('has an rsa2048 that is not base64');

  const signed = verifySignedData(bytes, certificates, now);
  if (!signed.ok) return wrongDocument(signed.problem);
  const read = readIdentityDocument(signed.value.content, signed.value.signer.region, now);
  return read.ok ? read : wrongDocument(read.problem);
}

function wrongData(problem: string): Result<never, string> {
  return failure(`the attestation data ${problem}`);
}

function wrongDocument(problem: string): Result<never, string> {
  return failure(`the instance identity document ${problem}`);
}
