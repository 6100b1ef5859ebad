import { CreateKeyCommand, DisableKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import type { KeySpec } from '@aws-sdk/client-kms';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kmsChallengeKey } from '../../../../adapters/aws/kms-challenge-key.ts';
import { kmsClientConfig } from '../../../../adapters/aws/kms-client.ts';
import { MisconfigurationError, ThrottledError } from '../../../../core/ports/errors.ts';
import { challengeKeyContract } from '../../../contract/challenge-key.ts';
import { startAwsProxy } from '../../../harness/aws/proxy.ts';
import type { AwsFault, AwsProxy } from '../../../harness/aws/proxy.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { bothEmulators, describeOnEmulators, patience } from './emulators.ts';

describeOnEmulators(byTier({ default: ['MiniStack'], deep: bothEmulators }), (name, emulator) => {
  challengeKeyContract(`KMS of ${name}`, async () => {
    const [client, second] = [clientOf(emulator()), clientOf(emulator())];
    const [arn, otherArn] = [await createKey(client), await createKey(client)];
    return {
      key: kmsChallengeKey(arn, client),
      again: kmsChallengeKey(arn, second),
      other: kmsChallengeKey(otherArn, client),
      close: () => [client, second].forEach((each) => each.destroy()),
    };
  });

  describe('the key', () => {
    let client: KMSClient;
    let proxied: KMSClient;
    let proxy: AwsProxy;
    let arn: string;
    const message = new Uint8Array(Buffer.from('a challenge'));
    beforeAll(async () => {
      client = clientOf(emulator());
      proxy = await startAwsProxy(emulator().url);
      proxied = clientOf(emulator(), proxy.url);
      arn = await createKey(client);
    });
    afterAll(async () => {
      client.destroy();
      proxied.destroy();
      await proxy.close();
    });

    test.each<readonly [AwsFault, number, new (message: string) => Error]>([
      ['throttled', 1, ThrottledError],
      ['failed', 1, Error],
      ['lost', 2, Error],
      ['answerLost', 2, Error],
    ])('%s: %i calls, and never taken for a no of the operator’s', async (fault, count, kind) => {
      const before = proxy.count('TrentService.GenerateMac');
      proxy.inject = () => fault;
      const failure: unknown = await kmsChallengeKey(arn, proxied)
        .mac(message)
        .catch((error: unknown) => error);
      proxy.inject = () => undefined;
      expect(failure).toBeInstanceOf(kind);
      expect(failure).not.toBeInstanceOf(MisconfigurationError);
      expect(failure instanceof ThrottledError).toBe(fault === 'throttled');
      expect(proxy.count('TrentService.GenerateMac') - before).toBe(count);
    });

    test('a call that was reset once is repeated, and gives the same MAC', async () => {
      const mac = await kmsChallengeKey(arn, client).mac(message);
      for (const fault of ['lost', 'answerLost'] as const) {
        const first = proxy.calls.length + 1;
        proxy.inject = ({ number }) => (number === first ? fault : undefined);
        expect(await kmsChallengeKey(arn, proxied).mac(message)).toEqual(mac);
        expect(proxy.calls.length).toBe(first + 1);
      }
      proxy.inject = () => undefined;
    });

    test('that is disabled, missing or of another kind needs an operator, and the message is in no error', async () => {
      const disabled = await createKey(client);
      await client.send(new DisableKeyCommand({ KeyId: disabled }));
      const missing = disabled.replace(/[^/]+$/, '00000000-0000-4000-8000-000000000000');
      for (const key of [disabled, missing, await createKey(client, 'HMAC_384')]) {
        const failure: unknown = await kmsChallengeKey(key, client)
          .mac(message)
          .catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(MisconfigurationError);
        expect(JSON.stringify(failure) + String((failure as Error).cause)).not.toContain(
          Buffer.from(message).toString('base64'),
        );
      }
    });

    test('is asked for by its ARN: a bare ID could come to mean another key', async () => {
      const id = arn.split('/').at(-1)!;
      await expect(kmsChallengeKey(id, client).mac(message)).rejects.toThrow('another key');
    });
  });
});

async function createKey(client: KMSClient, spec: KeySpec = 'HMAC_256'): Promise<string> {
  const { KeyMetadata: made } = await client.send(
    new CreateKeyCommand({ KeySpec: spec, KeyUsage: 'GENERATE_VERIFY_MAC' }),
  );
  return made!.Arn!;
}

function clientOf(emulator: Emulator, endpoint = emulator.url): KMSClient {
  return new KMSClient({ ...emulator.client, ...kmsClientConfig, requestHandler: patience, endpoint });
}
