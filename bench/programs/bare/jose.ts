/** Only the library that the authorizer needs, and a handler that checks one token. */
import { createLocalJWKSet, jwtVerify } from 'jose';
import type { JSONWebKeySet } from 'jose';

export async function handler(event: {
  readonly token: string;
  readonly jwks: JSONWebKeySet;
}): Promise<{ readonly subject: string | undefined }> {
  const { payload } = await jwtVerify(event.token, createLocalJWKSet(event.jwks));
  return { subject: payload.sub };
}
