/** A far side that takes the connection and says nothing: calls end by themselves, well before the function does. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { describe, test } from 'vitest';
import { dynamoDbLedger, ledgerClientConfig } from '../../../adapters/dynamodb-ledger.ts';
import { kmsClientConfig, kmsSigner } from '../../../adapters/kms-signer.ts';
import { MisconfigurationError, ThrottledError } from '../../../core/ports.ts';

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

describe.concurrent('the end of silence', () => {
  test('KMS is asked once', async ({ expect }) => {
    const server = await silentServer();
    const client = new KMSClient({ ...server.client, ...kmsClientConfig });
    const signer = kmsSigner(client, 'arn:aws:kms:eu-central-1:111122223333:key/1', 'ECDSA_SHA_256');
    const failure: unknown = await signer.sign(new Uint8Array(10)).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'TimeoutError' });
    expect(server.sockets).toHaveLength(1);
    client.destroy();
    await server.close();
  });

  test('DynamoDB is asked three times', async ({ expect }) => {
    const server = await silentServer();
    const client = new DynamoDBClient({ ...server.client, ...ledgerClientConfig });
    const ledger = dynamoDbLedger({ client, tableName: 't', randomBytes });
    const failure: unknown = await ledger.find('u').catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'TimeoutError' });
    expect(failure instanceof ThrottledError || failure instanceof MisconfigurationError).toBe(false);
    expect(server.sockets).toHaveLength(3);
    client.destroy();
    await server.close();
  });
});
