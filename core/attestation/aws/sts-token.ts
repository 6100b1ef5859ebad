/**
 * The proof that the machine asks now: a GetCallerIdentity request that it signed beforehand for us to send (Signature
 * Version 4 in the query), in the wire form of `aws eks get-token`. Only STS can check such a signature, so we send it.
 *
 * Sending a request that others wrote is dangerous: with another action, host or header, or a repeated parameter, the answer
 * is about another question, or not from STS (CVE-2020-16250, CVE-2022-2385). So nothing of the token is forwarded: six
 * values are taken out, each by one anchored pattern, and put into a request of our own. If the machine signed anything
 * else, the signature does not fit our request, and STS refuses it.
 */
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';
import type { StsRequest } from './endpoints.ts';
import type { Partition } from './partition.ts';

export interface StsProof {
  /** Built by us; holds only matched values of the token. */
  readonly request: StsRequest;
  /** X-Amz-Signature. The token can be written in several ways, the signature in one, so the signature may be used once. */
  readonly signature: string;
  readonly signedAt: Instant;
}

export interface StsExpectation {
  readonly partition: Partition;
  /** Of the machine: only the STS of its own region is asked. */
  readonly region: string;
  /** What the machine must have signed as `x-k8s-aws-id`. Computed by us, never read out of evidence. */
  readonly header: string;
}

/** Of a token; STS accepts 15 minutes. X-Amz-Expires, which the sender chooses, is ignored here and by STS. */
const maxAge = 5 * 60_000;
const clockSkew = 60_000;
/** How long STS accepts a signature, and so how long a used one must be remembered. */
export const stsSignatureLife = 15 * 60_000;

const prefix = 'k8s-aws-v1.';
/** AWS has made session tokens longer before; those of instances have some 1 300 characters. */
const maxTokenLength = 8192;

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
  // Without our header the token is bound to nothing; with more headers we could not rebuild what was signed.
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
  // By text, not by a URL parser: parsers disagree about userinfo, backslashes, ports, dots and tabs.
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
  if (signedAt < now - maxAge) return failure('was signed more than 5 minutes ago');
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

/** ASCII only; one text for the same bytes (RFC 4648 §3.5, §5). */
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
    // The message does not repeat the name: the sender wrote it.
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

/** Our constants and the matched values, decoded and encoded again; in the order of their names. */
function buildQuery(value: (name: string) => string): string {
  const again = (name: string): string => encodeURIComponent(decodeURIComponent(value(name)));
  return [
    'Action=GetCallerIdentity',
    'Version=2011-06-15',
    'X-Amz-Algorithm=AWS4-HMAC-SHA256',
    `X-Amz-Credential=${again('X-Amz-Credential')}`,
    `X-Amz-Date=${again('X-Amz-Date')}`,
    `X-Amz-Expires=${again('X-Amz-Expires')}`,
    `X-Amz-Security-Token=${again('X-Amz-Security-Token')}`,
    'X-Amz-SignedHeaders=host%3Bx-k8s-aws-id',
    `X-Amz-Signature=${again('X-Amz-Signature')}`,
  ].join('&');
}
