import { createPublicKey, randomBytes } from 'node:crypto';
import { CreateKeyCommand, DisableKeyCommand, GetPublicKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import type { KeySpec, KeyUsageType } from '@aws-sdk/client-kms';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kmsClientConfig } from '../../../../adapters/aws/kms-client.ts';
import { kmsPublicKey, kmsSigner } from '../../../../adapters/aws/kms-signer.ts';
import { MisconfigurationError, ThrottledError } from '../../../../core/ports/errors.ts';
import type { SignatureAlgorithm } from '../../../../core/ports/signer.ts';
import { signatureAlgorithms, signatureVerifies, signerContract } from '../../../contract/signer.ts';
import { startAwsProxy } from '../../../harness/aws/proxy.ts';
import type { AwsFault, AwsProxy } from '../../../harness/aws/proxy.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { bothEmulators, describeOnEmulators, patience } from './emulators.ts';

const specFor: Readonly<Record<SignatureAlgorithm, KeySpec>> = {
  ECDSA_SHA_256: 'ECC_NIST_P256',
  ECDSA_SHA_384: 'ECC_NIST_P384',
  ECDSA_SHA_512: 'ECC_NIST_P521',
  RSASSA_PKCS1_V1_5_SHA_256: 'RSA_2048',
  RSASSA_PKCS1_V1_5_SHA_384: longerRsa('RSA_3072'),
  RSASSA_PKCS1_V1_5_SHA_512: longerRsa('RSA_4096'),
  RSASSA_PSS_SHA_256: 'RSA_2048',
  RSASSA_PSS_SHA_384: longerRsa('RSA_3072'),
  RSASSA_PSS_SHA_512: longerRsa('RSA_4096'),
};

/** KMS signs with each hash by an RSA key of any length. Emulators take seconds to make the longer ones. */
function longerRsa(spec: KeySpec): KeySpec {
  return byTier({ default: 'RSA_2048', deep: spec });
}

describeOnEmulators(byTier({ default: ['MiniStack'], deep: bothEmulators }), (name, emulator) => {
  /** One key of each kind for all tests: emulators take their time over RSA keys too. */
  const keys = new Map<string, Promise<string>>();
  const keyOf = (client: KMSClient, spec: KeySpec): Promise<string> => {
    const known = keys.get(spec) ?? createKey(client, spec);
    keys.set(spec, known);
    return known;
  };

  for (const algorithm of signatureAlgorithms)
    signerContract(`KMS of ${name}`, algorithm, async () => {
      const client = clientOf(emulator());
      const arn = await keyOf(client, specFor[algorithm]);
      const disabled = await createKey(client, 'ECC_NIST_P256');
      await client.send(new DisableKeyCommand({ KeyId: disabled }));
      const { PublicKey: publicKey } = await client.send(new GetPublicKeyCommand({ KeyId: arn }));
      return {
        signer: kmsSigner(client, arn, algorithm),
        publicKey: publicKey!,
        broken: kmsSigner(client, disabled, 'ECDSA_SHA_256'),
        logged: true,
        close: async () => client.destroy(),
      };
    });

  describe('the key', () => {
    let client: KMSClient;
    let proxied: KMSClient;
    let proxy: AwsProxy;
    beforeAll(async () => {
      client = clientOf(emulator());
      proxy = await startAwsProxy(emulator().url);
      proxied = clientOf(emulator(), proxy.url);
    });
    afterAll(async () => {
      client.destroy();
      proxied.destroy();
      await proxy.close();
    });
    const tbs = new Uint8Array(randomBytes(300));

    test.each(Object.entries({ ECC_NIST_P256: 'ec', ECC_NIST_P384: 'ec', ECC_NIST_P521: 'ec', RSA_2048: 'rsa' }))(
      'of kind %s tells its public key and what it signs with',
      async (spec, type) => {
        const { spki, algorithms } = await kmsPublicKey(client, await keyOf(client, spec as KeySpec));
        const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
        expect(key.asymmetricKeyType).toBe(type);
        const expected = signatureAlgorithms.filter((algorithm) =>
          type === 'rsa' ? algorithm.startsWith('RSASSA') : specFor[algorithm] === spec,
        );
        expect(algorithms).toEqual(expect.arrayContaining(expected));
      },
    );

    test('that is no signing key offers nothing to sign with', async () => {
      const arn = await createKey(client, 'RSA_2048', 'ENCRYPT_DECRYPT');
      expect((await kmsPublicKey(client, arn)).algorithms).toEqual([]);
    });

    test.each<readonly [AwsFault, number, new (message: string) => Error]>([
      ['throttled', 1, ThrottledError],
      ['failed', 1, Error],
      ['lost', 2, Error],
      ['answerLost', 2, Error],
    ])('%s: %i calls, and never taken for a no of the operator’s', async (fault, count, kind) => {
      const signer = kmsSigner(proxied, await keyOf(client, 'ECC_NIST_P256'), 'ECDSA_SHA_256');
      const before = proxy.count('TrentService.Sign');
      proxy.inject = () => fault;
      const failure: unknown = await signer.sign(tbs).catch((error: unknown) => error);
      proxy.inject = () => undefined;
      expect(failure).toBeInstanceOf(kind);
      expect(failure).not.toBeInstanceOf(MisconfigurationError);
      expect(failure instanceof ThrottledError).toBe(fault === 'throttled');
      expect(proxy.count('TrentService.Sign') - before).toBe(count);
    });

    test('after a fault the same signer signs', async () => {
      const arn = await keyOf(client, 'ECC_NIST_P256');
      const signer = kmsSigner(proxied, arn, 'ECDSA_SHA_256');
      proxy.inject = () => 'failed';
      await expect(signer.sign(tbs)).rejects.toThrow();
      proxy.inject = () => undefined;
      const { spki } = await kmsPublicKey(client, arn);
      expect(signatureVerifies('ECDSA_SHA_256', spki, tbs, (await signer.sign(tbs)).bytes)).toBe(true);
    });

    test('a call that was reset once is repeated, before it took effect and after', async () => {
      const arn = await keyOf(client, 'ECC_NIST_P256');
      const { spki } = await kmsPublicKey(client, arn);
      for (const fault of ['lost', 'answerLost'] as const) {
        const first = proxy.calls.length + 1;
        proxy.inject = ({ number }) => (number === first ? fault : undefined);
        const { bytes } = await kmsSigner(proxied, arn, 'ECDSA_SHA_256').sign(tbs);
        expect(signatureVerifies('ECDSA_SHA_256', spki, tbs, bytes)).toBe(true);
        expect(proxy.calls.length).toBe(first + 1);
      }
      proxy.inject = () => undefined;
    });

    test('that is disabled, or not there, needs an operator', async () => {
      const disabled = await createKey(client, 'ECC_NIST_P256');
      await client.send(new DisableKeyCommand({ KeyId: disabled }));
      const missing = disabled.replace(/[^/]+$/, '00000000-0000-4000-8000-000000000000');
      for (const arn of [disabled, missing])
        await expect(kmsSigner(client, arn, 'ECDSA_SHA_256').sign(tbs)).rejects.toBeInstanceOf(MisconfigurationError);
      await expect(kmsPublicKey(client, missing)).rejects.toBeInstanceOf(MisconfigurationError);
    });

    test('is asked for by its ARN: an alias or a bare id could come to mean another key', async () => {
      const arn = await keyOf(client, 'ECC_NIST_P256');
      const id = arn.split('/').at(-1)!;
      await expect(kmsSigner(client, id, 'ECDSA_SHA_256').sign(tbs)).rejects.toThrow('another key');
      await expect(kmsPublicKey(client, id)).rejects.toThrow('another key');
    });
  });
});

async function createKey(client: KMSClient, spec: KeySpec, usage: KeyUsageType = 'SIGN_VERIFY'): Promise<string> {
  const { KeyMetadata: made } = await client.send(new CreateKeyCommand({ KeySpec: spec, KeyUsage: usage }));
  return made!.Arn!;
}

function clientOf(emulator: Emulator, endpoint = emulator.url): KMSClient {
  return new KMSClient({ ...emulator.client, ...kmsClientConfig, requestHandler: patience, endpoint });
}
