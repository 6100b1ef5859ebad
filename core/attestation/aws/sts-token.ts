/**
 * The second proof, limited in time: a GetCallerIdentity request that the machine signed beforehand for us to send
 * (Signature Version 4 in the query), in the wire form of `aws eks get-token`. STS alone can check such a signature, so
 * sending it is how we learn who made it.
 *
 * Sending what others wrote is dangerous: with another action, host, header or second parameter of the same name, STS's
 * answer is about something else, or is not STS's (CVE-2020-16250, CVE-2022-2385). So nothing of the token is forwarded.
 * Six values are taken out, each by one anchored pattern, and a request of our own is built around them; if the machine
 * signed anything else, our request has a wrong signature, and STS says so.
 */
import type { Problem } from '../../encoding/der-reader.ts';
import type { Instant } from '../../ports/instant.ts';
import type { StsRequest } from './endpoints.ts';
import type { Partition } from './partition.ts';

export interface StsProof {
  /** Ours, every byte of it. */
  readonly request: StsRequest;
  /** X-Amz-Signature. Unlike the token it has one form only, so this is what may be used once. */
  readonly signature: string;
  readonly signedAt: Instant;
}

export interface StsExpectation {
  readonly partition: Partition;
  /** Of the machine: its own region's STS and no other. */
  readonly region: string;
  /** What the machine must have signed as `x-k8s-aws-id`. Computed by us, never read out of evidence. */
  readonly header: string;
}

/** Of a token; STS takes 15 minutes. X-Amz-Expires, which the sender chooses, counts for nothing, at STS as here. */
const maxAge = 5 * 60_000;
const clockSkew = 60_000;
/** How long STS takes a signature, whatever we think of its age: as long it must be remembered. */
export const stsSignatureLife = 15 * 60_000;

const prefix = 'k8s-aws-v1.';
/** Session tokens have grown before; those of instances are some 1 300 characters. */
const maxTokenLength = 8192;

/**
 * Every parameter there may be, exactly once, in exactly this letter case (STS folds case, CVE-2022-2385), by its raw
 * text: what is percent-encoded although it need not be, or differently, was written to confuse.
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
  // Without ours among them the token is bound to nothing; with more, we could not rebuild what was signed.
  ['X-Amz-SignedHeaders', /^host%3Bx-k8s-aws-id$/],
  ['X-Amz-Signature', /^[0-9a-f]{64}$/],
]);

export function rebuildStsRequest(token: string, expected: StsExpectation, now: Instant): StsProof | Problem {
  if (token.length > maxTokenLength) return { problem: `is longer than ${maxTokenLength} characters` };
  if (!token.startsWith(prefix)) return { problem: `does not start with ${prefix}` };
  const url = decodeBase64url(token.slice(prefix.length));
  if (url === undefined) return { problem: 'is not base64url without padding' };

  const host = `sts.${expected.region}.${expected.partition.dnsSuffix}`;
  const origin = `https://${host}/?`;
  // By text, not by a URL parser: no two of them agree about userinfo, backslashes, ports, dots and tabs.
  if (!url.startsWith(origin)) return { problem: `is not for ${origin}` };

  const sent = readParameters(url.slice(origin.length));
  if ('problem' in sent) return sent;
  const value = (name: string): string => sent.values.get(name) ?? '';

  const [, day, region] = value('X-Amz-Credential').split('%2F');
  if (region !== expected.region) return { problem: 'is signed for another region than that of its host' };
  const date = value('X-Amz-Date');
  if (day !== date.slice(0, 8)) return { problem: 'is signed for another day than its date says' };

  const signedAt = readDate(date);
  if (Number.isNaN(signedAt)) return { problem: 'has a date that is none' };
  if (signedAt < now - maxAge) return { problem: 'was signed more than 5 minutes ago' };
  if (signedAt > now + clockSkew) return { problem: "was signed in the future: the machine's clock is wrong" };

  return {
    request: {
      host,
      path: `/?${buildQuery(value)}`,
      headers: { 'x-k8s-aws-id': expected.header, accept: 'application/json' },
    },
    signature: value('X-Amz-Signature'),
    signedAt,
  };
}

/** ASCII only; one text for the same bytes (RFC 4648 §3.5, §5). */
function decodeBase64url(text: string): string | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // Buffer passes over what it does not know, so what it read must be what was written.
  if (bytes.toString('base64url') !== text) return undefined;
  return bytes.toString('latin1');
}

function readParameters(query: string): { readonly values: ReadonlyMap<string, string> } | Problem {
  const values = new Map<string, string>();
  for (const part of query.split('&')) {
    const [name = '', value = '', ...more] = part.split('=');
    const pattern = parameters.get(name);
    // Not repeated here: the sender wrote it.
    if (pattern === undefined) return { problem: 'has a parameter of no known name' };
    if (values.has(name)) return { problem: `has the parameter ${name} twice` };
    if (more.length > 0 || !pattern.test(value))
      return { problem: `has a parameter ${name} that is not as it must be` };
    values.set(name, value);
  }
  const missing = [...parameters.keys()].find((name) => !values.has(name));
  return missing === undefined ? { values } : { problem: `lacks the parameter ${missing}` };
}

function readDate(text: string): number {
  const iso = text.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z');
  return Date.parse(iso);
}

/** Constants of ours around the matched values, decoded and encoded anew; in the order of their names. */
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
