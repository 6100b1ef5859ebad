/**
 * The header of a JWT (RFC 7515 §4), and its text. Nothing in it is trusted until the signature is verified: it only selects the key.
 */
import { decodeProtectedHeader } from 'jose/decode/protected_header';
import { hasDuplicateKeys } from '../encoding/strict-json.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';

/** The members that select the key. */
export interface KeyHeader {
  readonly alg: string;
  readonly kid: string;
}

export type HeaderProblem = 'TokenMalformed' | 'AlgorithmNotPermitted' | 'HeaderNotPermitted' | 'KeyUnknown';

/** Issuers send alg, kid and typ. `crit`, `jku`, `jwk`, `x5c` and others would change how the token is verified. */
const headerMembers = new Set(['alg', 'kid', 'typ']);

export function readTokenHeader(token: string, algorithms: readonly string[]): Result<KeyHeader, HeaderProblem> {
  let header: Readonly<Record<string, unknown>>;
  try {
    header = { ...decodeProtectedHeader(token) };
  } catch {
    return failure('TokenMalformed');
  }
  const { kid } = header;
  const alg = algorithms.find((permitted) => permitted === header['alg']);
  if (alg === undefined) return failure('AlgorithmNotPermitted');
  if (hasDuplicateKeys(tokenPart(token, 0)) || !Object.keys(header).every((name) => headerMembers.has(name)))
    return failure('HeaderNotPermitted');
  // Without a kid jose would try any key of the set.
  if (typeof kid !== 'string' || kid === '') return failure('KeyUnknown');
  return success({ alg, kid });
}

/** The JSON text of the header (0) or of the claims (1). */
export function tokenPart(token: string, index: 0 | 1): string {
  return Buffer.from(token.split('.')[index] ?? '', 'base64url').toString('utf8');
}
