/**
 * The node's half of the STS proof: a presigned GetCallerIdentity as `aws eks get-token` makes it, and everything near it
 * that an attacker could sign. Written apart from the verifier and from the product, and held to the real aws-cli by
 * test/suites/aws/eks-token.
 */
import { createHash, createHmac } from 'node:crypto';
import { hostOf } from './authentication.ts';

export interface PresignOptions {
  readonly credential: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
  readonly region: string;
  /** Value of the x-k8s-aws-id header; absent = no such header. */
  readonly id?: string;
  /** In milliseconds. */
  readonly at: number;
  // What follows is as `aws eks get-token` has it, unless given.
  readonly host?: string;
  readonly method?: string;
  readonly path?: string;
  readonly service?: string;
  /** Of the credential, when it is not the host's. */
  readonly scopeRegion?: string;
  readonly expires?: number | string;
  readonly parameters?: Readonly<Record<string, string>>;
  /** Signed besides host and x-k8s-aws-id; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export function presign(options: PresignOptions): string {
  const { credential, region, id, at } = options;
  const host = options.host ?? hostOf(region);
  const time = new Date(at).toISOString().replace(/[-:]|\.\d+/g, '');
  const scope = [time.slice(0, 8), options.scopeRegion ?? region, options.service ?? 'sts', 'aws4_request'];
  const signed = new Map(
    Object.entries({ host, ...(id === undefined ? {} : { 'x-k8s-aws-id': id }), ...options.headers }).sort(byName),
  );
  const headerList = [...signed.keys()].join(';');
  const parameters = Object.entries({
    Action: 'GetCallerIdentity',
    Version: '2011-06-15',
    ...options.parameters,
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': [credential.accessKeyId, ...scope].join('/'),
    'X-Amz-Date': time,
    'X-Amz-Expires': String(options.expires ?? 60),
    'X-Amz-SignedHeaders': headerList,
    ...(credential.sessionToken === undefined ? {} : { 'X-Amz-Security-Token': credential.sessionToken }),
  }).map(([name, value]): [string, string] => [percent(name), percent(value)]);

  const path = options.path ?? '/';
  const query = (pairs: readonly (readonly [string, string])[]) => pairs.map((pair) => pair.join('=')).join('&');
  const lines = [...signed].map(([name, value]) => `${name}:${value.trim()}\n`).join('');
  const sorted = query([...parameters].sort(byName));
  const request = `${options.method ?? 'GET'}\n${path}\n${sorted}\n${lines}\n${headerList}\n${sha256(options.body ?? '')}`;
  const toSign = `AWS4-HMAC-SHA256\n${time}\n${scope.join('/')}\n${sha256(request)}`;
  let key = Buffer.from(`AWS4${credential.secretAccessKey}`);
  for (const part of scope) key = createHmac('sha256', key).update(part).digest();
  const signature = createHmac('sha256', key).update(toSign).digest('hex');
  return `https://${host}${path}?${query([...parameters, ['X-Amz-Signature', signature]])}`;
}

/** What goes by the name of an EKS token. */
export function stsToken(url: string): string {
  return `k8s-aws-v1.${Buffer.from(url).toString('base64url')}`;
}

/** The presigned URL in a token. */
export function urlOfToken(token: string): string {
  return Buffer.from(token.replace(/^k8s-aws-v1\./, ''), 'base64url').toString();
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** RFC 3986: everything but the unreserved characters, byte by byte. */
function percent(text: string): string {
  return Array.from(Buffer.from(text), (byte) => {
    const character = String.fromCharCode(byte);
    return /[\w.~-]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}
