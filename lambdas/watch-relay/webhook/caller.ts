import { createHash, timingSafeEqual } from 'node:crypto';
import type { X509Certificate } from 'node:crypto';
import { readToken } from '../../../adapters/signing-api/token-file.ts';
import type { WebhookSettings } from '../settings/webhook-settings.ts';

/** What a connection and its request say about who is calling. */
export interface WebhookCaller {
  readonly authorization: string | undefined;
  /** Of the TLS client, only if it was verified against the configured CA in this very handshake. */
  readonly certificate: X509Certificate | undefined;
}

/** Fewer could be guessed; `openssl rand -hex 32` gives 64. */
const leastTokenLength = 32;

/**
 * Nobody, or the one caller we know: every way that is configured must hold. Gives why not, for the log; the caller
 * only hears 401. The token is read for each call, since somebody may replace it.
 */
export async function strangeness(
  { tokenFile, client }: Pick<WebhookSettings, 'tokenFile' | 'client'>,
  { authorization, certificate }: WebhookCaller,
): Promise<string | undefined> {
  if (client !== undefined) {
    if (certificate === undefined) return 'no client certificate of the configured CA';
    if (subjectOf(certificate) !== client.subject) return 'client certificate of another subject';
  }
  if (tokenFile !== undefined) {
    const expected = await readToken(tokenFile);
    if (typeof expected !== 'string') return expected.problem;
    if (expected.length < leastTokenLength)
      return `token file ${tokenFile}: shorter than ${leastTokenLength} characters`;
    const shown = /^Bearer ([\w.~+/-]+=*)$/i.exec(authorization ?? '')?.[1];
    if (shown === undefined) return 'no bearer token';
    if (!sameText(shown, expected)) return 'another bearer token';
  }
  return tokenFile === undefined && client === undefined ? 'no way in is configured' : undefined;
}

/** In the order of the certificate. Node gives one line each and escapes what could be taken for two (RFC 2253 §2.4). */
export function subjectOf({ subject }: X509Certificate): string {
  return subject.split('\n').join(',');
}

/** Takes the same time wherever they differ, and however long they are. */
function sameText(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
