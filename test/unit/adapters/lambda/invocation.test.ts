import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { invocationClientConfig, invokeAttest } from '../../../../adapters/lambda/invocation.ts';

let server: Server;
let endpoint: string;
let calls = 0;
const verdict = { countersign: 'attest/v1', outcome: 'verdict' };
let answer: object = verdict;
const connections = new Set<unknown>();

beforeAll(async () => {
  server = createServer((request, response) => {
    calls++;
    connections.add(request.socket);
    request.resume().on('end', () => response.end(JSON.stringify(answer)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

test('the first request creates the client and its connection, and later requests use them again', async () => {
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

const busy = { countersign: 'attest/v1', outcome: 'busy' };

test.each([
  ['SecondLook', 120_000],
  ['Limited', 5_000],
])('finding 14: what attest has wait waits here too, and is no failure: %s', async (why, afterMilliseconds) => {
  answer = { ...busy, later: { why, afterMilliseconds } };
  await expect(askOnce()).rejects.toMatchObject({ name: 'LaterError', why, afterMilliseconds });
});

test.each([
  ['busy for another reason', busy],
  ['busy for an unknown reason', { ...busy, later: { why: 'Tired', afterMilliseconds: 5 } }],
  ['busy for no time', { ...busy, later: { why: 'Limited' } }],
  ['of another function', { outcome: 'busy', later: { why: 'Limited', afterMilliseconds: 5 } }],
])('an answer %s is a failure', async (_, given) => {
  answer = given;
  await expect(askOnce()).rejects.toMatchObject({ name: 'Error' });
});

async function askOnce(): Promise<void> {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = new LambdaClient({ ...invocationClientConfig, endpoint, region: 'eu-west-1', credentials });
  try {
    await invokeAttest({ client: () => client, functionName: 'attest', cluster: 'prod' })({ kind: 'x' });
  } finally {
    client.destroy();
    answer = verdict;
  }
}
