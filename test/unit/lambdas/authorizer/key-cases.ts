import { constants, generateKeyPairSync, sign } from 'node:crypto';
import { refused, withKeys } from './case.ts';
import type { Case } from './case.ts';
import { claims, ecKey, encode, hmac, jwkOf, makeToken, rsaKey, signer, strangerKey } from './tokens.ts';
import type { IssuerKey } from './tokens.ts';

const weakRsa: IssuerKey = { kid: 'weak', alg: 'RS256', ...generateKeyPairSync('rsa', { modulusLength: 1024 }) };
const p384: IssuerKey = { kid: 'p384', alg: 'ES256', ...generateKeyPairSync('ec', { namedCurve: 'P-384' }) };
const secret = Buffer.from('a shared secret of thirty-two bytes!');
const rsaPem = rsaKey.publicKey.export({ type: 'spki', format: 'pem' });
const rsaDer = rsaKey.publicKey.export({ type: 'spki', format: 'der' });
const pss = (input: string): Buffer =>
  sign('sha256', Buffer.from(input), {
    key: rsaKey.privateKey,
    padding: constants.RSA_PKCS1_PSS_PADDING,
    saltLength: 32,
  });
const [head, body, signature] = makeToken().split('.') as [string, string, string];

/** Algorithms, keys and signatures. */
export const keyCases: readonly Case[] = [
  refused(
    'AlgorithmNotPermitted',
    'alg none',
    makeToken({ header: { alg: 'none' }, signature: () => Buffer.from('x') }),
  ),
  refused('AlgorithmNotPermitted', 'alg None', makeToken({ header: { alg: 'None' } })),
  refused('TokenMalformed', 'alg none, unsigned', `${encode('{"alg":"none","kid":"rsa"}')}.${body}.`),
  refused(
    'AlgorithmNotPermitted',
    'HS256 with the PEM',
    makeToken({ header: { alg: 'HS256' }, signature: hmac(rsaPem) }),
  ),
  refused(
    'AlgorithmNotPermitted',
    'HS256 with the DER',
    makeToken({ header: { alg: 'HS256' }, signature: hmac(rsaDer) }),
  ),
  refused(
    'AlgorithmNotPermitted',
    'HS256 with the JWK',
    makeToken({ header: { alg: 'HS256' }, signature: hmac(JSON.stringify(jwkOf(rsaKey))) }),
  ),
  refused(
    'AlgorithmNotPermitted',
    'RS512',
    makeToken({ header: { alg: 'RS512' }, signature: signer(rsaKey, 'sha512') }),
  ),
  refused(
    'AlgorithmNotPermitted',
    'RS512 with a key that does not say for what',
    makeToken({ header: { alg: 'RS512' }, signature: signer(rsaKey, 'sha512') }),
    withKeys({ ...jwkOf(rsaKey), alg: undefined }),
  ),
  refused('AlgorithmNotPermitted', 'PS256', makeToken({ header: { alg: 'PS256' }, signature: pss })),
  refused('AlgorithmNotPermitted', 'a list of algorithms', makeToken({ header: { alg: ['RS256'] } })),
  refused('AlgorithmNotPermitted', 'no algorithm', makeToken({ headerText: '{"kid":"rsa"}' })),
  refused('SignatureInvalid', 'RS256 that is RS512', makeToken({ signature: signer(rsaKey, 'sha512') })),
  refused('SignatureInvalid', 'RS256 that is PSS', makeToken({ signature: pss })),
  refused('SignatureInvalid', 'RS256 that is an HMAC', makeToken({ signature: hmac(rsaPem) })),
  refused('SignatureInvalid', 'an unknown key under a known name', makeToken({ signature: signer(strangerKey) })),
  refused('SignatureInvalid', 'claims changed afterwards', `${head}.${encode(JSON.stringify(claims()))}x.${signature}`),
  refused('SignatureInvalid', 'the signature of another token', makeToken({ signature: () => signer(rsaKey)('a.b') })),
  refused('SignatureInvalid', 'a signature of zeros', makeToken({ key: ecKey, signature: () => Buffer.alloc(64) })),
  refused('SignatureInvalid', 'ES256 in DER', makeToken({ key: ecKey, signature: signer({ ...ecKey, alg: 'RS256' }) })),
  refused('KeyUnknown', 'another key under its own name', makeToken({ key: strangerKey })),
  refused('KeyUnknown', 'no kid', makeToken({ header: { kid: undefined } })),
  refused('KeyUnknown', 'an empty kid', makeToken({ header: { kid: '' } })),
  refused('KeyUnknown', 'a kid that is a list', makeToken({ header: { kid: ['rsa'] } })),
  refused('KeyUnknown', 'the RSA key for ES256', makeToken({ key: ecKey, header: { kid: 'rsa' } })),
  refused('KeyUnknown', 'the EC key for RS256', makeToken({ header: { kid: 'ec' } })),
  refused('KeyUnknown', 'a key for encryption', makeToken(), withKeys({ ...jwkOf(rsaKey), use: 'enc' })),
  refused('KeyUnknown', 'a key that may only sign', makeToken(), withKeys({ ...jwkOf(rsaKey), key_ops: ['sign'] })),
  refused('KeyUnknown', 'a key for RS512', makeToken(), withKeys({ ...jwkOf(rsaKey), alg: 'RS512' })),
  refused('KeyUnknown', 'ES256 over P-384', makeToken({ key: p384 }), withKeys(jwkOf(p384))),
  refused(
    'KeysUnusable',
    'two keys by one name',
    makeToken(),
    withKeys(jwkOf(rsaKey), { ...jwkOf(strangerKey), kid: 'rsa' }),
  ),
  refused(
    'KeysUnusable',
    'a set that shows the private key',
    makeToken(),
    withKeys({ ...rsaKey.privateKey.export({ format: 'jwk' }), kid: 'rsa' }),
  ),
  refused(
    'KeysUnusable',
    'a set that shows another private key',
    makeToken(),
    withKeys(jwkOf(rsaKey), { ...ecKey.privateKey.export({ format: 'jwk' }), kid: 'ec' }),
  ),
  refused(
    'KeysUnusable',
    'a set with a shared key',
    makeToken(),
    withKeys(jwkOf(rsaKey), { kty: 'oct', kid: 'oct', k: secret.toString('base64url') }),
  ),
  refused(
    'AlgorithmNotPermitted',
    'HS256 with a shared key in the set',
    makeToken({ header: { alg: 'HS256', kid: 'oct' }, signature: hmac(secret) }),
    withKeys({ kty: 'oct', kid: 'oct', alg: 'HS256', k: secret.toString('base64url') }),
  ),
  refused('KeysUnusable', 'an empty set', makeToken(), withKeys()),
  refused('KeysUnusable', 'a set of nothing', makeToken(), withKeys(null)),
  refused('KeysUnusable', 'an invalid key', makeToken(), withKeys({ kty: 'RSA', kid: 'rsa', n: '!', e: 'AQAB' })),
  refused('KeysUnusable', 'RSA 1024', makeToken({ key: weakRsa }), withKeys(jwkOf(weakRsa))),
];
