/**
 * A service-account token (RFC 7519 in the form kube-apiserver's TokenRequest gives it): signature and time by jose,
 * and what jose leaves open. Everything named here is compared exactly.
 */
import { decodeProtectedHeader, errors, jwtVerify } from 'jose';
import type { JWTPayload } from 'jose';
import type { JwtAccess } from '../../core/configuration/model/deployment.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { repeatsKey } from './json-keys.ts';
import type { KeyAnswer, KeySource } from './key-source.ts';

export type TokenRefusal =
  | (KeyAnswer & { readonly ok: false })['reason']
  | 'TokenMissing'
  | 'TokenTooLarge'
  | 'TokenMalformed'
  | 'AlgorithmNotPermitted'
  | 'HeaderNotPermitted'
  | 'SignatureInvalid'
  | 'ClaimMalformed'
  | 'IssuerWrong'
  | 'AudienceWrong'
  | 'SubjectNotAllowed'
  | 'Expired'
  | 'NotYetValid'
  | 'LifetimeTooLong';

type TokenDecision =
  { readonly subject: string } | { readonly reason: TokenRefusal; readonly subject?: string; readonly detail?: string };

/** Real ones are about 1 KiB. Checked before anything is decoded. */
const maxTokenLength = 8_192;
/** Both prove possession of a private key; `none` and HMAC with what is published as a public key prove nothing. */
const algorithms = ['RS256', 'ES256'];
/** What a token that leaked is good for, at most. */
const maxLifetimeSeconds = 3_600;
/** Between our clock and the issuer's. */
const leewaySeconds = 30;
/** kube-apiserver sends alg and kid. `crit`, `jku`, `jwk`, `x5c` and the like could only ask us to do something else. */
const headerMembers = new Set(['alg', 'kid', 'typ']);

/** RFC 6750 §2.1, once: joined by a comma, two of them are none. */
export function bearerToken(
  header: unknown,
): { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: TokenRefusal } {
  if (typeof header !== 'string' || header === '') return { ok: false, reason: 'TokenMissing' };
  if (header.length > maxTokenLength + 'Bearer '.length) return { ok: false, reason: 'TokenTooLarge' };
  const text = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(header)?.[1];
  return text === undefined ? { ok: false, reason: 'TokenMalformed' } : { ok: true, text };
}

export async function verifyToken(
  token: string,
  access: JwtAccess,
  keys: KeySource,
  now: Instant,
): Promise<TokenDecision> {
  const header = readHeader(token);
  if ('reason' in header) return header;
  const found = await keys(header);
  if (!found.ok) return { reason: found.reason, ...(found.detail === undefined ? {} : { detail: found.detail }) };
  let claims: JWTPayload;
  try {
    const verified = await jwtVerify(token, found.key, {
      algorithms,
      issuer: access.issuer,
      maxTokenAge: maxLifetimeSeconds,
      clockTolerance: leewaySeconds,
      currentDate: new Date(now),
    });
    claims = verified.payload;
  } catch (error) {
    return { reason: reasonOf(error) };
  }
  return checkClaims(token, claims, access);
}

/** What must be known before a key can be chosen; none of it is believed before the signature is. */
function readHeader(token: string): { readonly alg: string; readonly kid: string } | { readonly reason: TokenRefusal } {
  let header: Readonly<Record<string, unknown>>;
  try {
    header = { ...decodeProtectedHeader(token) };
  } catch {
    return { reason: 'TokenMalformed' };
  }
  const { alg, kid } = header;
  if (typeof alg !== 'string' || !algorithms.includes(alg)) return { reason: 'AlgorithmNotPermitted' };
  if (repeatsKey(segment(token, 0)) || !Object.keys(header).every((name) => headerMembers.has(name)))
    return { reason: 'HeaderNotPermitted' };
  // Without one jose would try whichever key there is.
  if (typeof kid !== 'string' || kid === '') return { reason: 'KeyUnknown' };
  return { alg, kid };
}

/** Of a token that the issuer did sign, and that is of now. */
function checkClaims(token: string, claims: JWTPayload, { audience, subjects }: JwtAccess): TokenDecision {
  const { aud, sub, exp, nbf, iat } = claims;
  if (repeatsKey(segment(token, 1))) return { reason: 'ClaimMalformed' };
  // All three, and whole numbers: jose compares only those that are there, and JSON can say 1e999.
  if (!Number.isSafeInteger(exp) || !Number.isSafeInteger(nbf) || !Number.isSafeInteger(iat))
    return { reason: 'ClaimMalformed' };
  if (typeof sub !== 'string') return { reason: 'ClaimMalformed' };
  // One audience, ours: whoever else a token is made for could use it here.
  const only: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  if (only !== audience) return { reason: 'AudienceWrong', subject: sub };
  if (!subjects.includes(sub)) return { reason: 'SubjectNotAllowed', subject: sub };
  if ((exp ?? 0) - (iat ?? 0) > maxLifetimeSeconds) return { reason: 'LifetimeTooLong', subject: sub };
  return { subject: sub };
}

function segment(token: string, index: number): string {
  return Buffer.from(token.split('.')[index] ?? '', 'base64url').toString('utf8');
}

function reasonOf(error: unknown): TokenRefusal {
  if (error instanceof errors.JWTExpired) return 'Expired';
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'iss') return 'IssuerWrong';
    return error.reason === 'check_failed' ? 'NotYetValid' : 'ClaimMalformed';
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'SignatureInvalid';
  if (error instanceof errors.JOSEError) return 'TokenMalformed';
  // jose's word for a key it will not work with: RSA of less than 2048 bits, which can be factored.
  if (error instanceof TypeError) return 'KeysUnusable';
  throw error;
}
