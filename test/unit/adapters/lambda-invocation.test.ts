import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { invocationClientConfig, invokeAttest } from '../../../adapters/lambda-invocation.ts';

let server: Server;
let endpoint: string;
let calls = 0;
const connections = new Set<unknown>();

beforeAll(async () => {
  server = createServer((request, response) => {
    calls++;
    connections.add(request.socket);
    request.resume().on('end', () => response.end('{"statusCode":200}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

test('nobody is connected to before somebody must be asked, and then one client asks every time', async () => {
  const made: LambdaClient[] = [];
  const ask = invokeAttest({
    client: () => {
      const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
      const client = new LambdaClient({ ...invocationClientConfig, endpoint, region: 'eu-west-1', credentials });
      made.push(client);
      return client;
    },
    functionName: 'attest',
    cluster: 'prod',
  });
  expect(made).toHaveLength(0);
  for (let i = 0; i < 3; i++) await ask({ kind: 'CertificateSigningRequest' });
  expect(calls).toBe(3);
  expect(made).toHaveLength(1);
  expect(connections.size).toBe(1);
  made[0]?.destroy();
});
