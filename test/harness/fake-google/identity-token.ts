/** Identity tokens of VMs as Google signs them, and as it never would. Made by hand: the library under test reads, it does not write. */
import { generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

export interface GoogleKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export function createGoogleKey(kid: string, modulusLength = 2048): GoogleKey {
  return { kid, ...generateKeyPairSync('rsa', { modulusLength }) };
}

/** A key as https://www.googleapis.com/oauth2/v3/certs has it. */
export function jwkOf({ kid, publicKey }: GoogleKey): Readonly<Record<string, unknown>> {
  return { kid, use: 'sig', alg: 'RS256', ...publicKey.export({ format: 'jwk' }) };
}

export interface TokenVm {
  readonly projectNumber: string;
  readonly projectId: string;
  readonly zone: string;
  readonly id: string;
  readonly name: string;
}

export type Claims = Readonly<Record<string, unknown>>;

/**
 * What `identity?audience=…&format=full` states. `at`: milliseconds.
 * https://cloud.google.com/compute/docs/instances/verifying-instance-identity#payload
 */
export function claimsOf({ projectNumber, projectId, zone, id, name }: TokenVm, audience: string, at: number): Claims {
  const seconds = Math.floor(at / 1_000);
  return {
    aud: audience,
    azp: '107517467455664443765',
    email: 'nodes@my-nodes.iam.gserviceaccount.com',
    email_verified: true,
    exp: seconds + 3_600,
    google: {
      compute_engine: {
        instance_confidentiality: 0,
        instance_creation_timestamp: seconds - 86_400,
        instance_id: id,
        instance_name: name,
        project_id: projectId,
        project_number: Number(projectNumber),
        zone,
      },
    },
    iat: seconds,
    iss: 'https://accounts.google.com',
    sub: '107517467455664443765',
  };
}

export interface SignedToken {
  readonly claims: Claims | string;
  readonly key: GoogleKey;
  /** Besides or instead; `undefined` leaves one out. Text replaces the whole header. */
  readonly header?: Claims | string;
  readonly signature?: (signed: Buffer) => Buffer;
}

const encoded = (part: Claims | string): string =>
  Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url');

export function writeToken({ claims, key, header = {}, signature }: SignedToken): string {
  const head = typeof header === 'string' ? header : { alg: 'RS256', kid: key.kid, typ: 'JWT', ...header };
  const signed = Buffer.from(`${encoded(head)}.${encoded(claims)}`);
  const bytes = signature?.(signed) ?? sign('sha256', signed, key.privateKey);
  return `${signed.toString('latin1')}.${bytes.toString('base64url')}`;
}
