import { createHash, generateKeyPairSync } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { embeddedSigner, generateKey, publicKeyInfo } from '../../../../adapters/embedded/signer.ts';
import type { KeySpec } from '../../../../core/configuration/schema/cluster.ts';
import type { SignatureAlgorithm } from '../../../../core/ports/signer.ts';
import { createFaults } from '../../../contract/faulty.ts';
import { signatureAlgorithms, signerContract } from '../../../contract/signer.ts';

const keyFor: Readonly<Record<SignatureAlgorithm, KeySpec>> = {
  ECDSA_SHA_256: 'P-256',
  ECDSA_SHA_384: 'P-384',
  ECDSA_SHA_512: 'P-521',
  RSASSA_PKCS1_V1_5_SHA_256: 'RSA-2048',
  RSASSA_PKCS1_V1_5_SHA_384: 'RSA-3072',
  RSASSA_PKCS1_V1_5_SHA_512: 'RSA-2048',
  RSASSA_PSS_SHA_256: 'RSA-2048',
  RSASSA_PSS_SHA_384: 'RSA-2048',
  RSASSA_PSS_SHA_512: 'RSA-2048',
};

for (const algorithm of signatureAlgorithms)
  signerContract('embedded', algorithm, async () => {
    const key = await generateKey(keyFor[algorithm]);
    const signer = embeddedSigner(key.export({ type: 'pkcs8', format: 'pem' }) as string, algorithm);
    // An in-memory key has no far side that could say no; a fault is put in its place.
    const broken = createFaults({ call: 1, time: 'before', kind: 'crash' }).wrap('signer', signer);
    return { signer, publicKey: publicKeyInfo(key), broken, logged: false, close: async () => {} };
  });

describe('the embedded key', () => {
  test.each([
    ['P-256', 'ECDSA_SHA_256'],
    ['P-384', 'ECDSA_SHA_384'],
    ['P-521', 'ECDSA_SHA_512'],
    ['RSA-2048', 'RSASSA_PKCS1_V1_5_SHA_256'],
  ] as const)(
    '%s signs with %s unless told otherwise, and its keyId is the hash of its SPKI',
    async (spec, algorithm) => {
      const key = await generateKey(spec);
      const signer = embeddedSigner(key);
      expect(signer.keyId).toBe(`embedded:${createHash('sha256').update(publicKeyInfo(key)).digest('hex')}`);
      expect(signer.algorithm).toBe(algorithm);
    },
  );

  test.each([
    ['P-256', 'ECDSA_SHA_384'],
    ['P-521', 'ECDSA_SHA_256'],
    ['P-256', 'RSASSA_PSS_SHA_256'],
  ] as const)('a %s key does not sign with %s', (namedCurve, algorithm) => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve });
    expect(() => embeddedSigner(privateKey, algorithm)).toThrow(/cannot sign with/);
  });

  test.each([
    ['P-224', () => generateKeyPairSync('ec', { namedCurve: 'P-224' }).privateKey, /this one is EC secp224r1/],
    ['RSA 1024', () => generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey, /this one is rsa 1024/],
    ['Ed25519', () => generateKeyPairSync('ed25519').privateKey, /this one is ed25519/],
  ] as const)('a %s key is refused by name', (_, make, message) => {
    expect(() => embeddedSigner(make())).toThrow(message);
  });
});

describe('inside Lambda', () => {
  afterEach(() => vi.unstubAllEnvs());
  test('refuses to start', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    vi.stubEnv('AWS_LAMBDA_FUNCTION_NAME', 'sign');
    expect(() => embeddedSigner(privateKey)).toThrow(/refuses to start inside AWS Lambda/);
  });
});
