/** The public keys with which Google signs identity tokens, as a JWKS. core/jwt/key-source.ts keeps and checks them. */
import { callGoogle } from './call.ts';
import type { GoogleCallOptions } from './call.ts';

const host = 'www.googleapis.com';
/** `jwks_uri` of https://accounts.google.com/.well-known/openid-configuration, which is not read: it never changed. */
const path = '/oauth2/v3/certs';

/** Throws unless Google answers with a JSON object. */
export async function fetchGoogleKeySet(options: GoogleCallOptions = {}): Promise<unknown> {
  const { status, body } = await callGoogle({ host, path }, options);
  if (status !== 200) throw new Error(`${host} answered with status ${status}`);
  return body;
}
