/**
 * Proves that the machine requests the certificate now: the STS token is a presigned GetCallerIdentity request (Signature
 * Version 4 in the query), in the wire form of `aws eks get-token`. Only STS can verify the signature, so we send the request.
 *
 * To send a request that a requester wrote is dangerous: with another action, host or header, or a repeated parameter, the answer
 * may be to another request, or not from STS (CVE-2020-16250, CVE-2022-2385). So we build a request of our own, with six values
 * of the token, each matched by one anchored pattern. If the machine signed another request, the signature does not match ours,
 * and STS refuses it.
 */
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';
import type { StsRequest } from './endpoints.ts';
import type { Partition } from './partition.ts';

export interface StsProof {
  /** The request that we built with matched values of the token. */
  readonly request: StsRequest;
  /** X-Amz-Signature. It may be used once; unlike the token, it has only one spelling. */
  readonly signature: string;
  readonly signedAt: Instant;
}

export interface StsExpectation {
  readonly partition: Partition;
  /** The region of the machine; only STS in this region is asked. */
  readonly region: string;
  /** The value of `x-k8s-aws-id` that the machine must have signed. We compute it; evidence does not contain it. */
  readonly header: string;
}

/** The greatest age of a token; STS accepts 15 minutes. X-Amz-Expires, which the sender chooses, is ignored here and by STS. */
const maxAge = 5 * 60_000;
const clockSkew = 60_000;
/** How long STS accepts a signature, so a spent signature must be stored for this long. */
export const stsSignatureLife = 15 * 60_000;

const prefix = 'k8s-aws-v1.';
/** Tokens of instances have about 1 300 characters; AWS may make them longer. */
const maxTokenLength = 8192;

/** The problem of a token that waited too long. */
export const tooOld = 'was signed more than 5 minutes ago';

/**
 * The permitted parameters, each exactly once, in exactly this letter case (STS ignores case, CVE-2022-2385). The patterns
 * match the raw text: unusual percent-encoding is refused, because parsers read it differently.
 */
const parameters: ReadonlyMap<string, RegExp> = new Map([
  ['Action', /^GetCallerIdentity$/],
  ['Version', /^2011-06-15$/],
  ['X-Amz-Algorithm', /^AWS4-HMAC-SHA256$/],
  // ASIA: temporary credentials, as instances have. AKIA is a user's long-lived key.
  ['X-Amz-Credential', /^ASIA[A-Z0-9]{12,124}%2F[0-9]{8}%2F[a-z0-9-]{1,32}%2Fsts%2Faws4_request$/],
  ['X-Amz-Date', /^[0-9]{8}T[0-9]{6}Z$/],
  ['X-Amz-Expires', /^(?:0|[1-9][0-9]?|[1-8][0-9]{2}|900)$/],
  ['X-Amz-Security-Token', /^(?:[A-Za-z0-9._~-]|%2B|%2F|%3D)+$/],
  // Without x-k8s-aws-id the token is not bound to a request; with more headers we could not rebuild the signed request.
  ['X-Amz-SignedHeaders', /^host%3Bx-k8s-aws-id$/],
  ['X-Amz-Signature', /^[0-9a-f]{64}$/],
]);

export function rebuildStsRequest(token: string, expected: StsExpectation, now: Instant): Result<StsProof, string> {
  if (token.length > maxTokenLength) return failure(`is longer than ${maxTokenLength} characters`);
  if (!token.startsWith(prefix)) return failure(`does not start with ${prefix}`);
  const url = decodeBase64url(token.slice(prefix.length));
  if (url === undefined) return failure('is not base64url without padding');

  const host = `sts.${expected.region}.${expected.partition.dnsSuffix}`;
  const origin = `https://${host}/?`;
  // Compared as text, because URL parsers disagree about userinfo, backslashes, ports, dots and tabs.
  if (!url.startsWith(origin)) return failure(`is not for ${origin}`);

  const sent = readParameters(url.slice(origin.length));
  if (!sent.ok) return sent;
  const value = (name: string): string => sent.value.get(name) ?? '';

  const [, day, region] = value('X-Amz-Credential').split('%2F');
  if (region !== expected.region) return failure('is signed for another region than that of its host');
  const date = value('X-Amz-Date');
  if (day !== date.slice(0, 8)) return failure('is signed for another day than its date says');

  const signedAt = readDate(date);
  if (Number.isNaN(signedAt)) return failure('has an invalid date');
  if (signedAt < now - maxAge) return failure(tooOld);
  if (signedAt > now + clockSkew) return failure("was signed in the future: the machine's clock is wrong");

  return success({
    request: {
      host,
      path: `/?${buildQuery(value)}`,
      headers: { 'x-k8s-aws-id': expected.header, accept: 'application/json' },
    },
    signature: value('X-Amz-Signature'),
    signedAt,
  });
}

/** Only the canonical encoding is accepted (RFC 4648 §3.5, §5). */
function decodeBase64url(text: string): string | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // Buffer skips invalid characters, so the bytes must encode to the same text again.
  if (bytes.toString('base64url') !== text) return undefined;
  return bytes.toString('latin1');
}

function readParameters(query: string): Result<ReadonlyMap<string, string>, string> {
  const values = new Map<string, string>();
  for (const part of query.split('&')) {
    const [name = '', value = '', ...more] = part.split('=');
    const pattern = parameters.get(name);
    // The message does not quote the name, because the sender chose it.
    if (pattern === undefined) return failure('has a parameter of no known name');
    if (values.has(name)) return failure(`has the parameter ${name} twice`);
    if (more.length > 0 || !pattern.test(value)) return failure(`has a parameter ${name} that is not as it must be`);
    values.set(name, value);
  }
  const missing = [...parameters.keys()].find((name) => !values.has(name));
  return missing === undefined ? success(values) : failure(`lacks the parameter ${missing}`);
}

function readDate(text: string): number {
  const iso = text.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z');
  return Date.parse(iso);
}

/** Our constants and the matched values, encoded anew, sorted by name. */
function buildQuery(value: (name: string) => string): string {
  const reencoded = (name: string): string => encodeURIComponent(decodeURIComponent(value(name)));
  return [
    'Action=GetCallerIdentity',
    'Version=2011-06-15',
    'X-Amz-Algorithm=AWS4-HMAC-SHA256',
    `X-Amz-Credential=${reencoded('X-Amz-Credential')}`,
    `X-Amz-Date=${reencoded('X-Amz-Date')}`,
    `X-Amz-Expires=${reencoded('X-Amz-Expires')}`,
    `X-Amz-Security-Token=${reencoded('X-Amz-Security-Token')}`,
    'X-Amz-SignedHeaders=host%3Bx-k8s-aws-id',
    `X-Amz-Signature=${reencoded('X-Amz-Signature')}`,
  ].join('&');
}
