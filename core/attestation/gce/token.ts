/**
 * Identity tokens that Google signs for a VM (https://cloud.google.com/compute/docs/instances/verifying-instance-identity): a JWT whose
 * audience the VM chose. What it states is read first, and counts only after the signature is verified with a key of Google's.
 */
import { JOSEError } from 'jose/errors';
import { compactVerify } from 'jose/jws/compact/verify';
import { sha256 } from '../../encoding/digest.ts';
import { isObject } from '../../encoding/json-object.ts';
import type { JsonObject } from '../../encoding/json-object.ts';
import { readJsonObject } from '../../encoding/strict-json.ts';
import type { KeySource } from '../../jwt/key-source.ts';
import { readTokenHeader, tokenPart } from '../../jwt/token-header.ts';
import type { HeaderProblem, KeyHeader } from '../../jwt/token-header.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';
import { label, number, projectId as project } from '../google/place.ts';
import type { VmPlace } from '../google/place.ts';

export interface VmToken {
  readonly vm: TokenVm;
  readonly header: KeyHeader;
  readonly issuedAt: Instant;
  /**
   * Identifies the proof: the hash of what is signed. The bytes of the signature do not, because their text can be changed into
   * another one with the same bytes.
   */
  readonly id: string;
}

export interface TokenVm extends VmPlace {
  readonly name: string;
  readonly projectId: string;
}

const algorithms = ['RS256'];
const issuer = 'https://accounts.google.com';

/** The token itself lives an hour. The metadata server makes one for each audience, so the one of a new request is new. */
export const tokenLife = 5 * 60_000;
/** How far Google's clock may be ahead. */
const aheadMilliseconds = 60_000;

const headerProblems: Readonly<Record<HeaderProblem, string>> = {
  TokenMalformed: 'the token is not a JWT',
  AlgorithmNotPermitted: 'the token is not signed with RS256',
  HeaderNotPermitted: 'the header of the token has more than alg, kid and typ',
  KeyUnknown: 'the token names no key',
};

/** Not verified yet. `audience`: the one that the token must have. A problem is a whole clause. */
export function readToken(token: string, audience: string, now: Instant): Result<VmToken, string> {
  const header = readTokenHeader(token, algorithms);
  if (!header.ok) return failure(headerProblems[header.problem]);
  const claims = readJsonObject(Buffer.from(tokenPart(token, 1)));
  if (!claims.ok) return failure(`the token ${claims.problem}`);
  const { iss, aud, iat, exp, google } = claims.value;
  if (iss !== issuer) return failure('the token is not by Google');
  if (aud !== audience) return failure('the token was not made for this request');
  if (!isSeconds(iat) || !isSeconds(exp)) return failure('the token has no iat or no exp');
  const issuedAt = iat * 1_000;
  if (now - issuedAt >= tokenLife) return failure('the token is older than 5 minutes');
  if (issuedAt - now > aheadMilliseconds) return failure('the token is more than a minute ahead of our clock');
  if (now >= exp * 1_000) return failure('the token has expired');
  const vm = isObject(google) && isObject(google['compute_engine']) ? readVm(google['compute_engine']) : undefined;
  if (vm === undefined) return failure('the token does not describe a VM: it must be requested with format=full');
  const signed = token.slice(0, token.lastIndexOf('.'));
  return success({ vm, header: header.value, issuedAt, id: sha256(Buffer.from(signed)).toString('hex') });
}

function isSeconds(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

const patterns = {
  project_id: new RegExp(`^${project}$`),
  zone: new RegExp(`^${label}$`),
  instance_id: new RegExp(`^${number}$`),
  instance_name: new RegExp(`^${label}$`),
} as const;

/** https://cloud.google.com/compute/docs/instances/verifying-instance-identity#payload. Google may add others. */
function readVm(claims: JsonObject): TokenVm | undefined {
  const text = (name: keyof typeof patterns): string | undefined => {
    const value = claims[name];
    return typeof value === 'string' && patterns[name].test(value) ? value : undefined;
  };
  const [projectId, zone] = [text('project_id'), text('zone')];
  const [instanceId, name] = [text('instance_id'), text('instance_name')];
  const { project_number: projectNumber, instance_creation_timestamp: created } = claims;
  if (projectId === undefined || zone === undefined || instanceId === undefined || name === undefined) return undefined;
  // A larger number would have lost digits when it was read.
  if (!isSeconds(created) || !Number.isSafeInteger(projectNumber)) return undefined;
  return { projectId, projectNumber: String(projectNumber), zone, instanceId, name };
}

/** Whether a key of Google's signed the token. A problem is a whole clause. Throws if Google's keys cannot be read now. */
export async function verifySignature(
  token: string,
  header: KeyHeader,
  keys: KeySource,
  now: Instant,
): Promise<Result<undefined, string>> {
  const key = await keys(header, now);
  if (!key.ok) {
    // Google publishes a key long before it signs with it.
    if (key.problem.reason === 'KeyUnknown') return failure('the token names a key that Google does not publish');
    throw new Error(`Google's keys cannot be read (${key.problem.reason}): ${key.problem.detail ?? ''}`);
  }
  try {
    await compactVerify(token, key.value, { algorithms });
    return success(undefined);
  } catch (error) {
    if (error instanceof JOSEError) return failure('the token is not signed by Google');
    throw new Error("a key of Google's cannot be used", { cause: error });
  }
}
