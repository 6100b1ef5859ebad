import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

/* Tokens as kube-apiserver makes them, and as it never would. Made by hand: the library under test reads, it does not write. */

export const cluster = 'prod';
export const issuer = 'https://issuer.example';
export const audience = 'countersign.prod';
export const subject = 'system:serviceaccount:kube-system:gcp-controller-manager';
export const otherSubject = 'system:serviceaccount:countersign-system:countersign-watch-relay';
/** Of all tests. */
export const now = Date.parse('2026-03-01T12:00:00Z');
export const nowSeconds = now / 1_000;

export interface IssuerKey {
  readonly kid: string;
  readonly alg: 'RS256' | 'ES256';
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export const rsaKey: IssuerKey = {
  kid: 'rsa',
  alg: 'RS256',
  ...generateKeyPairSync('rsa', { modulusLength: 2048 }),
};
export const ecKey: IssuerKey = { kid: 'ec', alg: 'ES256', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
/** A key that the configuration does not have. */
export const strangerKey: IssuerKey = {
  kid: 'stranger',
  alg: 'RS256',
  ...generateKeyPairSync('rsa', { modulusLength: 2048 }),
};

export function jwkOf({ kid, alg, publicKey }: IssuerKey): Record<string, unknown> {
  return { use: 'sig', kid, alg, ...publicKey.export({ format: 'jwk' }) };
}

export const jwks = { keys: [jwkOf(rsaKey), jwkOf(ecKey)] };

/** A bound token's claims, an hour's. */
export function claims(change: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    aud: [audience],
    exp: nowSeconds + 3_000,
    iat: nowSeconds - 600,
    iss: issuer,
    jti: 'c2a1f3d6-0000-4000-8000-000000000001',
    'kubernetes.io': {
      namespace: 'kube-system',
      serviceaccount: { name: 'gcp-controller-manager', uid: '8d3e1f00-0000-4000-8000-000000000002' },
    },
    nbf: nowSeconds - 600,
    sub: subject,
    ...change,
  };
}

export interface TokenSpec {
  readonly key?: IssuerKey;
  readonly header?: Readonly<Record<string, unknown>>;
  /** `undefined` leaves a claim out. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Text instead of what the two above make. */
  readonly headerText?: string;
  readonly payloadText?: string;
  /** Instead of the signature by `key`. */
  readonly signature?: (input: string) => Buffer;
}

export function makeToken(spec: TokenSpec = {}): string {
  const key = spec.key ?? rsaKey;
  const header = spec.headerText ?? JSON.stringify({ alg: key.alg, kid: key.kid, ...spec.header });
  const payload = spec.payloadText ?? JSON.stringify(claims(spec.claims));
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${(spec.signature ?? signer(key))(input).toString('base64url')}`;
}

/** JWS wants r and s side by side, not DER (RFC 7518 §3.4). */
export function signer({ alg, privateKey }: Pick<IssuerKey, 'alg' | 'privateKey'>, hash = 'sha256') {
  return (input: string): Buffer =>
    sign(hash, Buffer.from(input), {
      key: privateKey,
      ...(alg === 'ES256' ? { dsaEncoding: 'ieee-p1363' as const } : {}),
    });
}

export function hmac(secret: string | Buffer, hash = 'sha256') {
  return (input: string): Buffer => createHmac(hash, secret).update(input).digest();
}

export function encode(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}
