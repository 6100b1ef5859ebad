/** What the authorizer needs, without anything of its own: the library that checks tokens, and one token checked. */
import { createLocalJWKSet, jwtVerify } from 'jose';
import type { JSONWebKeySet } from 'jose';

export async function handler(event: {
  readonly token: string;
  readonly jwks: JSONWebKeySet;
}): Promise<{ readonly subject: string | undefined }> {
  const { payload } = await jwtVerify(event.token, createLocalJWKSet(event.jwks));
  return { subject: payload.sub };
}
