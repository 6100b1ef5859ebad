/**
 * Verifies a service account token: a JWT (RFC 7519) as kube-apiserver's TokenRequest issues it. jose checks signature,
 * issuer and times. This file checks the rest, by exact comparison.
 */
import { errors, jwtVerify } from 'jose';
import type { JWTPayload } from 'jose';
import { hasDuplicateKeys } from '../../core/encoding/strict-json.ts';
import type { KeyProblem, KeySource } from '../../core/jwt/key-source.ts';
import { readTokenHeader, tokenPart } from '../../core/jwt/token-header.ts';
import type { HeaderProblem } from '../../core/jwt/token-header.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import type { JwtAccess } from '../../core/configuration/model/deployment.ts';
import type { Instant } from '../../core/ports/instant.ts';

export type TokenRefusal =
  | KeyProblem['reason']
  | HeaderProblem
  | 'TokenMissing'
  | 'TokenTooLarge'
  | 'SignatureInvalid'
  | 'ClaimMalformed'
  | 'IssuerWrong'
  | 'AudienceWrong'
  | 'SubjectNotAllowed'
  | 'Expired'
  | 'NotYetValid'
  | 'LifetimeTooLong';

interface TokenProblem {
  readonly reason: TokenRefusal;
  /** Present if the token's signature is verified. */
  readonly subject?: string;
  readonly detail?: string;
}

/** Real tokens have about 1 KiB. Checked before anything is decoded. */
const maxTokenLength = 8_192;
/** Both prove possession of a private key. Any caller can make a token with `none`, or with HMAC keyed with the public key. */
const algorithms = ['RS256', 'ES256'];
/** A leaked token is usable for this long at most. */
const maxLifetimeSeconds = 3_600;
/** Permitted difference between this clock and the issuer's. */
const leewaySeconds = 30;

/** RFC 6750 §2.1. Exactly one token: API Gateway joins repeated headers with a comma, which does not match. */
export function bearerToken(header: unknown): Result<string, TokenRefusal> {
  if (typeof header !== 'string' || header === '') return failure('TokenMissing');
  if (header.length > maxTokenLength + 'Bearer '.length) return failure('TokenTooLarge');
  const text = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(header)?.[1];
  return text === undefined ? failure('TokenMalformed') : success(text);
}

/** The token's subject, a service account that the configuration lists. */
export async function verifyToken(
  token: string,
  access: JwtAccess,
  keys: KeySource,
  now: Instant,
): Promise<Result<string, TokenProblem>> {
  const header = readTokenHeader(token, algorithms);
  if (!header.ok) return failure({ reason: header.problem });
  const found = await keys(header.value, now);
  if (!found.ok) return found;
  let claims: JWTPayload;
  try {
    const verified = await jwtVerify(token, found.value, {
      algorithms,
      issuer: access.issuer,
      maxTokenAge: maxLifetimeSeconds,
      clockTolerance: leewaySeconds,
      currentDate: new Date(now),
    });
    claims = verified.payload;
  } catch (error) {
    return failure({ reason: reasonOf(error) });
  }
  return checkClaims(token, claims, access);
}

/** The claims of a token whose signature, issuer and times are verified. */
function checkClaims(
  token: string,
  claims: JWTPayload,
  { audience, subjects }: JwtAccess,
): Result<string, TokenProblem> {
  const { aud, sub, exp, nbf, iat } = claims;
  if (hasDuplicateKeys(tokenPart(token, 1))) return failure({ reason: 'ClaimMalformed' });
  // All three are required, as integers: jose checks only claims that are present, and JSON permits 1e999.
  if (!Number.isSafeInteger(exp) || !Number.isSafeInteger(nbf) || !Number.isSafeInteger(iat))
    return failure({ reason: 'ClaimMalformed' });
  if (typeof sub !== 'string') return failure({ reason: 'ClaimMalformed' });
  // This audience only: another recipient of a token for several audiences could present it here.
  const only: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  if (only !== audience) return failure({ reason: 'AudienceWrong', subject: sub });
  if (!subjects.includes(sub)) return failure({ reason: 'SubjectNotAllowed', subject: sub });
  if ((exp ?? 0) - (iat ?? 0) > maxLifetimeSeconds) return failure({ reason: 'LifetimeTooLong', subject: sub });
  return success(sub);
}

function reasonOf(error: unknown): TokenRefusal {
  if (error instanceof errors.JWTExpired) return 'Expired';
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'iss') return 'IssuerWrong';
    return error.reason === 'check_failed' ? 'NotYetValid' : 'ClaimMalformed';
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'SignatureInvalid';
  if (error instanceof errors.JOSEError) return 'TokenMalformed';
  // jose rejects an RSA key of less than 2048 bits, which can be factored, with a TypeError.
  if (error instanceof TypeError) return 'KeysUnusable';
  throw error;
}
