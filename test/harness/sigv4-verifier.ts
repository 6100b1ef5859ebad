import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/*
 * The far side of Signature Version 4, written from AWS's description of it and of nothing we sign with:
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */

export interface ReceivedRequest {
  readonly method: string;
  /** As on the wire, with the query. */
  readonly target: string;
  /** In lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Uint8Array;
}

export interface Verified {
  readonly accessKeyId: string;
  readonly region: string;
  readonly service: string;
  readonly signedHeaders: readonly string[];
  readonly sessionToken: string | undefined;
}

const authorizationPattern =
  /^AWS4-HMAC-SHA256 Credential=([^/,]+)\/(\d{8})\/([^/,]+)\/([^/,]+)\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/;

/** Who signed it, or why that cannot be said. `now` in milliseconds: five minutes either way are taken. */
export function verifySigV4(
  { method, target, headers, body }: ReceivedRequest,
  secretOf: (accessKeyId: string) => string | undefined,
  now: number,
): Verified | string {
  const match = authorizationPattern.exec(headers['authorization'] ?? '');
  if (match === null) return 'no signature';
  const [, accessKeyId = '', day = '', region = '', service = '', list = '', signature = ''] = match;
  const secret = secretOf(accessKeyId);
  if (secret === undefined) return 'unknown access key';

  const time = headers['x-amz-date'] ?? '';
  const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(time) ?? [];
  const at = Date.parse(`${y}-${mo}-${d}T${h}:${mi}:${s}Z`);
  if (Number.isNaN(at) || !time.startsWith(day)) return 'no date';
  if (Math.abs(now - at) > 300_000) return 'expired';

  const signedHeaders = list.split(';');
  if (!signedHeaders.includes('host') || !signedHeaders.includes('x-amz-date')) return 'host or date not signed';
  const amz = Object.keys(headers).filter((name) => name.startsWith('x-amz-'));
  if (!amz.every((name) => signedHeaders.includes(name))) return 'an x-amz- header is not signed';
  if ([...signedHeaders].sort().join(';') !== list) return 'headers not in order';

  const hash = createHash('sha256').update(body).digest('hex');
  const said = headers['x-amz-content-sha256'];
  if (said !== undefined && said !== hash) return 'another body';

  const [path = '/', query = ''] = target.split('?', 2);
  const canonical = [
    method,
    // Each segment of what is on the wire is encoded once more, for every service but S3.
    path.split('/').map(encode).join('/'),
    canonicalQuery(query),
    ...signedHeaders.map((name) => `${name}:${(headers[name] ?? '').trim().replace(/ +/g, ' ')}`),
    '',
    list,
    hash,
  ].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', time, scope, createHash('sha256').update(canonical).digest('hex')].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secret}`);
  if (!timingSafeEqual(hmac(key, text), Buffer.from(signature, 'hex'))) return 'signature does not match';
  return { accessKeyId, region, service, signedHeaders, sessionToken: headers['x-amz-security-token'] };
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

function canonicalQuery(query: string): string {
  return [...new URLSearchParams(query)]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&');
}
