/** A far side that takes the connection and says nothing: calls end by themselves, well before the function does. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EC2Client } from '@aws-sdk/client-ec2';
import { KMSClient } from '@aws-sdk/client-kms';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { dynamoDbAttestations } from '../../../adapters/dynamodb/attestations.ts';
import type { TransactionOptions } from '../../../adapters/dynamodb/transactions.ts';
import { dynamoDbLedger, ledgerClientConfig } from '../../../adapters/dynamodb/ledger.ts';
import { connectEc2, ec2ClientConfig, ec2Endpoint } from '../../../adapters/aws/ec2.ts';
import { kmsClientConfig } from '../../../adapters/aws/kms-client.ts';
import { kmsSigner } from '../../../adapters/aws/kms-signer.ts';
import { MisconfigurationError, ThrottledError } from '../../../core/ports/errors.ts';

/** Whose login it takes, how many connections it has, and its end. */
async function silentServer() {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    client: {
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      region: 'eu-central-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    },
    sockets,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

// Only the timeouts are of simulated time; connections are real.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

/** Why the call failed, and after how many milliseconds. */
async function endOf(call: Promise<unknown>): Promise<{ readonly failure: unknown; readonly waited: number }> {
  let ended: { readonly failure: unknown } | undefined;
  void call.then(
    (answer) => (ended = { failure: answer }),
    (failure: unknown) => (ended = { failure }),
  );
  let waited = 0;
  for (; ended === undefined; waited += 50) {
    // What is on its way over loopback arrives meanwhile.
    for (let turn = 0; turn < 3; turn += 1) await new Promise((done) => setImmediate(done));
    await vi.advanceTimersByTimeAsync(50);
  }
  return { ...ended, waited };
}

describe('the end of silence', () => {
  test('KMS is asked once', async () => {
    const server = await silentServer();
    const client = new KMSClient({ ...server.client, ...kmsClientConfig });
    const signer = kmsSigner(client, 'arn:aws:kms:eu-central-1:111122223333:key/1', 'ECDSA_SHA_256');
    const { failure, waited } = await endOf(signer.sign(new Uint8Array(10)));
    expect(failure).toMatchObject({ name: 'TimeoutError' });
    expect(waited).toBeLessThan(4_500);
    expect(server.sockets).toHaveLength(1);
    client.destroy();
    await server.close();
  });

  const asked: readonly (readonly [string, (options: TransactionOptions) => Promise<unknown>])[] = [
    ['a record', (options) => dynamoDbLedger(options).find('u')],
    ['a node name, in a transaction', (options) => dynamoDbAttestations(options).findNode('n')],
  ];
  test.for(asked)('DynamoDB is asked three times for %s', async ([, ask]) => {
    const server = await silentServer();
    const client = new DynamoDBClient({ ...server.client, ...ledgerClientConfig });
    const { failure, waited } = await endOf(ask({ client, tableName: 't', randomBytes }));
    expect(failure).toMatchObject({ name: 'TimeoutError' });
    expect(waited).toBeLessThan(7_000);
    expect(failure instanceof ThrottledError || failure instanceof MisconfigurationError).toBe(false);
    expect(server.sockets).toHaveLength(3);
    client.destroy();
    await server.close();
  });

  const place = { account: '111122223333', region: 'eu-central-1' };
  const noInstance = 'i-00000000000000000';

  test('EC2 is asked twice', async () => {
    const server = await silentServer();
    const endpoint = ec2Endpoint(() => new EC2Client({ ...server.client, ...ec2ClientConfig }));
    const { failure, waited } = await endOf(endpoint.describeInstance(place, noInstance));
    expect(failure).toMatchObject({ message: 'EC2 cannot be asked now (TimeoutError)' });
    expect(waited).toBeLessThan(9_000);
    expect(failure instanceof ThrottledError || failure instanceof MisconfigurationError).toBe(false);
    expect(server.sockets).toHaveLength(2);
    await server.close();
  });

  test('STS is asked twice for a role, and EC2 then not at all', async () => {
    const [sts, ec2] = [await silentServer(), await silentServer()];
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
    vi.stubEnv('AWS_ENDPOINT_URL_STS', sts.client.endpoint);
    vi.stubEnv('AWS_ENDPOINT_URL_EC2', ec2.client.endpoint);
    const where = { ...place, assumeRole: 'arn:aws:iam::444455556666:role/reader' };
    const asked = ec2Endpoint(connectEc2).describeInstance(where, noInstance);
    const { failure, waited } = await endOf(asked);
    expect(failure).toMatchObject({ message: 'EC2 cannot be asked now (TimeoutError)' });
    expect(waited).toBeLessThan(9_000);
    expect(failure).not.toBeInstanceOf(MisconfigurationError);
    expect([sts.sockets.length, ec2.sockets.length]).toEqual([2, 0]);
    await Promise.all([sts.close(), ec2.close()]);
  });
});
