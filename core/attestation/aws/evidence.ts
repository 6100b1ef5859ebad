/**
 * The DATA block of the aws evidence, one closed schema for each version (docs/attestation/aws.md). Both versions say which
 * instance is meant and carry the STS token; they differ in what stands behind the first of the two.
 *
 * - `aws/v2` only claims it. A request can be read by every node and bootstrap token of the cluster, so nothing in it may be
 *   of use elsewhere: it carries no signed document. STS and EC2 confirm the claims, or the request is refused.
 * - `aws/v1` carries the instance identity document, which the region signed. Other systems accept that document.
 */
import type { Problem } from '../../encoding/der-reader.ts';
import type { Instant } from '../../ports/instant.ts';
import { isAccountId, isInstanceId, readIdentityDocument } from './identity-document.ts';
import type { ClaimedInstance } from './identity-document.ts';
import { partitionOf } from './partition.ts';
import { verifySignedData } from './cms.ts';
import type { PinnedCertificate } from './cms.ts';
import { readEvidence } from '../../encoding/strict-json.ts';

export type AwsEvidenceVersion = 'aws/v1' | 'aws/v2';

export interface AwsEvidence {
  readonly instance: ClaimedInstance;
  /** As sent; nothing of it was looked at yet. */
  readonly sts: string;
  readonly nonce: string;
}

/** Besides `v`, `sts` and, if the sender wants, `nonce`. There is no field for a document beside the one that is signed. */
const schemas = {
  'aws/v1': { v: 1, keys: ['rsa2048'] },
  'aws/v2': { v: 2, keys: ['account', 'region', 'instance'] },
} as const;

/** `problem` is a whole clause: `the attestation data has an unknown key`. */
export function readAwsEvidence(
  version: AwsEvidenceVersion,
  data: Uint8Array,
  certificates: readonly PinnedCertificate[],
  now: Instant,
): AwsEvidence | Problem {
  const schema = schemas[version];
  const read = readEvidence<string, string>(data, { required: ['v', ...schema.keys, 'sts'], optional: ['nonce'] });
  if (!read.ok) return wrongData(read.problem);
  const { v, sts, nonce = '', ...which } = read.value;
  if (v !== schema.v) return wrongData(`is not of ${version}`);
  if (typeof sts !== 'string') return wrongData('has a proof that is not text');
  if (typeof nonce !== 'string' || !/^[A-Za-z0-9_-]{0,128}$/.test(nonce)) return wrongData('has a nonce that is none');
  const instance = version === 'aws/v2' ? readClaims(which) : readDocument(which, certificates, now);
  if ('problem' in instance) return instance;
  return { instance, sts, nonce };
}

type Fields = Readonly<Record<string, unknown>>;

/** `{"account":"…","region":"…","instance":"i-…"}`: to be confirmed by STS and EC2. */
function readClaims({ account: accountId, region, instance: instanceId }: Fields): ClaimedInstance | Problem {
  if (typeof accountId !== 'string' || !isAccountId(accountId)) return wrongData('names no account');
  if (typeof region !== 'string') return wrongData('names no region of a known partition');
  const partition = partitionOf(region);
  if (partition === undefined) return wrongData('names no region of a known partition');
  if (typeof instanceId !== 'string' || !isInstanceId(instanceId)) return wrongData('names no instance');
  return { partition, accountId, region, instanceId };
}

/** `{"rsa2048":"…"}`: the document, inside what the region signed. */
function readDocument(
  { rsa2048 }: Fields,
  certificates: readonly PinnedCertificate[],
  now: Instant,
): ClaimedInstance | Problem {
  if (typeof rsa2048 !== 'string') return wrongData('has a proof that is not text');
  // As the instance's metadata gives it: base64 in lines.
  const base64 = rsa2048.replace(/\r?\n/g, '');
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64) return wrongData('has an rsa2048 that is not base64');

  const signed = verifySignedData(bytes, certificates, now);
  if ('problem' in signed) return wrongDocument(signed.problem);
  const read = readIdentityDocument(signed.content, signed.signer.region, now);
  return 'problem' in read ? wrongDocument(read.problem) : read.instance;
}

function wrongData(problem: string): Problem {
  return { problem: `the attestation data ${problem}` };
}

function wrongDocument(problem: string): Problem {
  return { problem: `the instance identity document ${problem}` };
}
