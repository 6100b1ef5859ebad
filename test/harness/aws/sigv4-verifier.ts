import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/*
 * The far side of Signature Version 4, written from AWS's description of it and of nothing we sign with:
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 * Both ways to carry a signature: the Authorization header, and the query of a presigned URL.
 *
 * Where AWS leaves open what it makes of a request that can be read in two ways, this refuses it.
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
  /** In milliseconds. */
  readonly signedAt: number;
  readonly presigned: boolean;
}

export type SigV4Refusal =
  | 'no signature'
  | 'two signatures'
  | 'malformed signature'
  | 'unknown access key'
  | 'no date'
  | 'expired'
  | 'not yet valid'
  | 'host or date not signed'
  | 'an x-amz- header is not signed'
  | 'headers not in order'
  | 'another body'
  | 'ambiguous query'
  | 'signature does not match';

/** What both ways to carry a signature say. */
interface Claimed {
  readonly credential: string;
  readonly time: string;
  /** Separated by semicolons. */
  readonly headerList: string;
  readonly signature: string;
  readonly sessionToken: string | undefined;
  readonly presigned: boolean;
}

type Parameter = readonly [name: string, value: string];

const clockSkewMs = 300_000;
/** STS goes by X-Amz-Date alone: X-Amz-Expires is signed, and ignored (aws-iam-authenticator, token.go). */
const presignedMs = 900_000;

const authorizationPattern =
  /^AWS4-HMAC-SHA256 Credential=([^, ]+), SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/;
const credentialPattern = /^([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request$/;

/**
 * Who signed it, or why that cannot be said. `now` in milliseconds: a header's signature holds five minutes either way, a
 * presigned URL's from five minutes before its date to fifteen after.
 */
export function verifySigV4(
  { method, target, headers, body }: ReceivedRequest,
  secretOf: (accessKeyId: string) => string | undefined,
  now: number,
): Verified | SigV4Refusal {
  const questionMark = target.indexOf('?');
  const path = questionMark === -1 ? target : target.slice(0, questionMark);
  const query = questionMark === -1 ? [] : readQuery(target.slice(questionMark + 1));
  if (query === undefined) return 'ambiguous query';

  const claimed = readClaim(headers, query);
  if (typeof claimed === 'string') return claimed;
  const { time, headerList, presigned } = claimed;
  const scoped = credentialPattern.exec(claimed.credential);
  if (scoped === null) return 'malformed signature';
  const [, accessKeyId = '', day = '', region = '', service = ''] = scoped;
  const secret = secretOf(accessKeyId);
  if (secret === undefined) return 'unknown access key';

  const signedAt = readTime(time);
  if (signedAt === undefined || !time.startsWith(day)) return 'no date';
  if (now - signedAt > (presigned ? presignedMs : clockSkewMs)) return 'expired';
  if (signedAt - now > clockSkewMs) return 'not yet valid';

  const signedHeaders = headerList.split(';');
  if (!signedHeaders.includes('host') || !(presigned || signedHeaders.includes('x-amz-date')))
    return 'host or date not signed';
  const amz = Object.keys(headers).filter((name) => name.startsWith('x-amz-'));
  if (!amz.every((name) => signedHeaders.includes(name))) return 'an x-amz- header is not signed';
  if ([...new Set(signedHeaders)].sort().join(';') !== headerList) return 'headers not in order';

  const hash = createHash('sha256').update(body).digest('hex');
  const said = headers['x-amz-content-sha256'];
  if (said !== undefined && said !== hash) return 'another body';

  const canonical = [
    method,
    canonicalPath(path),
    canonicalQuery(query.filter(([name]) => !presigned || name !== 'X-Amz-Signature')),
    ...signedHeaders.map((name) => `${name}:${(headers[name] ?? '').trim().replace(/ +/g, ' ')}`),
    '',
    headerList,
    hash,
  ].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', time, scope, createHash('sha256').update(canonical).digest('hex')].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secret}`);
  if (!timingSafeEqual(hmac(key, text), Buffer.from(claimed.signature, 'hex'))) return 'signature does not match';
  return { accessKeyId, region, service, signedHeaders, sessionToken: claimed.sessionToken, signedAt, presigned };
}

function readClaim(
  headers: Readonly<Record<string, string | undefined>>,
  query: readonly Parameter[],
): Claimed | SigV4Refusal {
  const authorization = headers['authorization'];
  const amz = query.filter(([name]) => name.toLowerCase().startsWith('x-amz-'));
  if (amz.length === 0) {
    if (authorization === undefined) return 'no signature';
    const [, credential = '', headerList = '', signature = ''] = authorizationPattern.exec(authorization) ?? [];
    if (signature === '') return authorization.startsWith('AWS4-') ? 'malformed signature' : 'no signature';
    const time = headers['x-amz-date'] ?? '';
    const sessionToken = headers['x-amz-security-token'];
    return { credential, time, headerList, signature, sessionToken, presigned: false };
  }
  if (authorization !== undefined) return 'two signatures';
  const value = (name: string) => amz.find(([known]) => known === name)?.[1];
  const signature = value('X-Amz-Signature') ?? '';
  if (value('X-Amz-Algorithm') !== 'AWS4-HMAC-SHA256' || !/^[0-9a-f]{64}$/.test(signature))
    return 'malformed signature';
  if (!/^\d{1,6}$/.test(value('X-Amz-Expires') ?? '0')) return 'malformed signature';
  return {
    credential: value('X-Amz-Credential') ?? '',
    time: value('X-Amz-Date') ?? '',
    headerList: value('X-Amz-SignedHeaders') ?? '',
    signature,
    sessionToken: value('X-Amz-Security-Token'),
    presigned: true,
  };
}

function readTime(time: string): number | undefined {
  const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(time) ?? [];
  const at = Date.parse(`${y}-${mo}-${d}T${h}:${mi}:${s}Z`);
  return Number.isNaN(at) ? undefined : at;
}

/**
 * Nothing when it could be understood in two ways: a name twice, in whatever case (CVE-2022-2385: STS goes by either), a
 * plus that may be a space, a broken escape.
 */
function readQuery(query: string): readonly Parameter[] | undefined {
  if (query === '') return [];
  if (query.includes('+') || query.includes('?')) return undefined;
  try {
    const parameters = query.split('&').map((pair): Parameter => {
      const equals = pair.indexOf('=');
      const [name, value] = equals === -1 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
      return [decodeURIComponent(name), decodeURIComponent(value)];
    });
    const names = new Set(parameters.map(([name]) => name.toLowerCase()));
    return names.size === parameters.length ? parameters : undefined;
  } catch {
    return undefined;
  }
}

/** In the order of the encoded names, and not of `name=value`: `-` sorts before `=`. */
function canonicalQuery(parameters: readonly Parameter[]): string {
  return parameters
    .map(([name, value]): Parameter => [encode(name), encode(value)])
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

/** Each segment of what is on the wire is encoded once more, and the path normalised, for every service but S3. */
function canonicalPath(path: string): string {
  const segments: string[] = [];
  const sent = path.split('/').filter((segment) => segment !== '' && segment !== '.');
  for (const segment of sent) {
    if (segment === '..') segments.pop();
    else segments.push(encode(segment));
  }
  return segments.length === 0 ? '/' : `/${segments.join('/')}${/\/\.{0,2}$/.test(path) ? '/' : ''}`;
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}
