import { createHash, timingSafeEqual } from 'node:crypto';
import type { X509Certificate } from 'node:crypto';
import { readToken } from '../../../adapters/signing-api/token-file.ts';
import type { WebhookSettings } from '../settings/webhook-settings.ts';

export interface WebhookCaller {
  readonly authorization: string | undefined;
  /** The client certificate; set only if this TLS handshake verified it with the configured CA. */
  readonly certificate: X509Certificate | undefined;
}

/** A shorter token could be guessed; `openssl rand -hex 32` gives 64 characters. */
const leastTokenLength = 32;

/**
 * Undefined if the caller meets each configured condition (certificate, token); otherwise the reason, for the log. The
 * caller gets only a 401. The token is read for each call, since the operator may replace the file.
 */
export async function authenticateCaller(
  { tokenFile, client }: Pick<WebhookSettings, 'tokenFile' | 'client'>,
  { authorization, certificate }: WebhookCaller,
): Promise<string | undefined> {
  if (client !== undefined) {
    if (certificate === undefined) return 'no client certificate of the configured CA';
    if (subjectOf(certificate) !== client.subject) return 'client certificate of another subject';
  }
  if (tokenFile !== undefined) {
    const expected = await readToken(tokenFile);
    if (!expected.ok) return expected.problem;
    if (expected.value.length < leastTokenLength)
      return `token file ${tokenFile}: shorter than ${leastTokenLength} characters`;
    const presented = /^Bearer ([\w.~+/-]+=*)$/i.exec(authorization ?? '')?.[1];
    if (presented === undefined) return 'no bearer token';
    if (!sameText(presented, expected.value)) return 'wrong bearer token';
  }
  return tokenFile === undefined && client === undefined ? 'neither a token nor a client CA is configured' : undefined;
}

/** Attributes in the order of the certificate. Node writes one on each line and escapes separators (RFC 2253 §2.4). */
function subjectOf({ subject }: X509Certificate): string {
  return subject.split('\n').join(',');
}

/** In constant time. */
function sameText(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
