/**
 * Connections that ended while a function was frozen: the far side resets each of them at its next call. The clients are those
 * of the functions, over real TCP.
 */
import { createHash, createHmac, createVerify, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EC2Client } from '@aws-sdk/client-ec2';
import { KMSClient } from '@aws-sdk/client-kms';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { afterEach, expect, test } from 'vitest';
import { ec2ClientConfig, ec2Endpoint, sharedRetries } from '../../../adapters/aws/ec2.ts';
import { kmsChallengeKey } from '../../../adapters/aws/kms-challenge-key.ts';
import { kmsClientConfig } from '../../../adapters/aws/kms-client.ts';
import { kmsPublicKey, kmsSigner } from '../../../adapters/aws/kms-signer.ts';
import { dynamoDbLedger, ledgerClientConfig } from '../../../adapters/dynamodb/ledger.ts';
import { invocationClientConfig, invokeAttest } from '../../../adapters/lambda/invocation.ts';
import { readAll } from '../../harness/processes/forwarding.ts';

const keyArn = 'arn:aws:kms:eu-central-1:111122223333:key/1';
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const tbs = new Uint8Array(randomBytes(200));

/** One service for all clients: what it answers depends on the operation only. */
function answerTo(operation: string, body: string): string {
  if (operation === 'TrentService.Sign') {
    const digest = createHash('sha256').update(tbs).digest('base64');
    if ((JSON.parse(body) as { Message: string }).Message !== digest) throw new Error('another digest');
    return JSON.stringify({ KeyId: keyArn, Signature: sign('sha256', tbs, privateKey).toString('base64') });
  }
  if (operation === 'TrentService.GenerateMac')
    return JSON.stringify({ KeyId: keyArn, Mac: createHmac('sha256', 'k').update(tbs).digest('base64') });
  if (operation === 'TrentService.GetPublicKey') {
    const spki = publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
    return JSON.stringify({ KeyId: keyArn, PublicKey: spki, KeyUsage: 'SIGN_VERIFY', SigningAlgorithms: [] });
  }
  if (operation.startsWith('DynamoDB_')) return '{}';
  if (operation.startsWith('POST /2015-03-31/functions/'))
    return JSON.stringify({ countersign: 'attest/v1', outcome: 'verdict' });
  const instance = '<item><instanceId>i-1</instanceId><instanceState><name>running</name></instanceState></item>';
  const reservation = `<item><ownerId>111122223333</ownerId><instancesSet>${instance}</instancesSet></item>`;
  return `<DescribeInstancesResponse><reservationSet>${reservation}</reservationSet></DescribeInstancesResponse>`;
}

/** `resets` counts the calls that found a connection of before the freeze. */
async function startService() {
  const open = new Set<Socket>();
  const stale = new WeakSet<Socket>();
  const calls: string[] = [];
  let resets = 0;
  let always = false;
  let waiting: { readonly count: number; readonly release: (() => void)[] } | undefined;
  const server = createServer({ keepAliveTimeout: 60_000 }, (incoming, outgoing) => {
    if (incoming.socket.destroyed) return;
    void readAll(incoming).then(async (body) => {
      const target = incoming.headers['x-amz-target'];
      const operation = typeof target === 'string' ? target : `${incoming.method} ${incoming.url}`;
      calls.push(operation);
      if (waiting !== undefined) {
        const { count, release } = waiting;
        const together = new Promise<void>((resolve) => release.push(resolve));
        if (release.length === count) for (const each of release) each();
        await together;
      }
      outgoing.end(answerTo(operation, body.toString('utf8')));
    });
  });
  server.on('connection', (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    // Before the parser of the HTTP server.
    socket.prependListener('data', () => {
      if (!always && !stale.has(socket)) return;
      resets += 1;
      socket.resetAndDestroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const service = {
    client: {
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      region: 'eu-central-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    },
    calls,
    resets: () => resets,
    /** `count` calls at once: none is answered before all have arrived, so each has a connection of its own. */
    async together(count: number, call: () => Promise<unknown>): Promise<void> {
      waiting = { count, release: [] };
      await Promise.all(Array.from({ length: count }, call));
      waiting = undefined;
    },
    freeze(): void {
      for (const socket of open) stale.add(socket);
    },
    resetEverything(): void {
      always = true;
    },
    async close(): Promise<void> {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return service;
}

type Service = Awaited<ReturnType<typeof startService>>;
let service: Service | undefined;
afterEach(async () => {
  await service?.close();
  service = undefined;
});

const intent = {
  uid: 'u',
  requestDigest: 'd',
  serial: '01',
  notAfter: 1_830_000_000_000,
  openedAt: 1,
  leaseUntil: 2,
  caKeyId: keyArn,
  tbs,
};

/** Each client of the functions: what it is asked, and how often it asks when each connection is reset. */
const clients: readonly (readonly [string, number, (client: Service['client']) => () => Promise<unknown>])[] = [
  [
    'KMS signs',
    2,
    (client) => {
      const signer = kmsSigner(new KMSClient({ ...client, ...kmsClientConfig }), keyArn, 'ECDSA_SHA_256');
      return async () => {
        const { bytes } = await signer.sign(tbs);
        expect(createVerify('sha256').update(tbs).verify(publicKey, bytes)).toBe(true);
      };
    },
  ],
  [
    'KMS gives its public key',
    2,
    (client) => {
      const kms = new KMSClient({ ...client, ...kmsClientConfig });
      return () => kmsPublicKey(kms, keyArn);
    },
  ],
  [
    'KMS makes a MAC',
    2,
    (client) => {
      const key = kmsChallengeKey(keyArn, new KMSClient({ ...client, ...kmsClientConfig }));
      return async () => expect(await key.mac(tbs)).toHaveLength(32);
    },
  ],
  [
    'Lambda invokes attest',
    2,
    (client) => {
      const lambda = new LambdaClient({ ...client, ...invocationClientConfig });
      const ask = invokeAttest({ client: () => lambda, functionName: 'attest', cluster: 'prod' });
      return () => ask({ kind: 'CertificateSigningRequest' });
    },
  ],
  [
    'DynamoDB writes a record',
    3,
    (client) => {
      const dynamodb = new DynamoDBClient({ ...client, ...ledgerClientConfig });
      const ledger = dynamoDbLedger({ client: dynamodb, tableName: 't', randomBytes });
      return async () => expect(await ledger.open(intent)).toEqual({ kind: 'written' });
    },
  ],
  [
    'EC2 describes an instance',
    2,
    (client) => {
      const config = { ...client, ...ec2ClientConfig, retryStrategy: sharedRetries };
      const ec2 = ec2Endpoint(() => new EC2Client(config));
      return () => ec2.describeInstance({ account: '111122223333', region: 'eu-central-1' }, 'i-1');
    },
  ],
];

test.each(clients)('%s at the first call after the freeze', async (_, _attempts, connect) => {
  service = await startService();
  const call = connect(service.client);
  await service.together(4, call);
  service.freeze();
  await call();
  expect(service.resets()).toBeGreaterThan(0);
  // The service itself executed that call once.
  expect(service.calls).toHaveLength(5);
});

test.each(clients)('%s: if each connection is reset, it fails after %i calls', async (_, attempts, connect) => {
  service = await startService();
  const call = connect(service.client);
  await call();
  service.resetEverything();
  await expect(call()).rejects.toThrow();
  expect(service.resets()).toBe(attempts);
});
