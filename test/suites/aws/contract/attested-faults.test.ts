/**
 * The deployed functions' own services over a real DynamoDB and KMS, asked straight or on arrival: their process dies at
 * every call of DynamoDB, before it arrives or after it took effect, and another takes its place.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dynamoDbAttestations } from '../../../../adapters/dynamodb/attestations.ts';
import { dynamoDbCaStore } from '../../../../adapters/dynamodb/ca.ts';
import { ledgerClientConfig } from '../../../../adapters/dynamodb/ledger.ts';
import { kmsChallengeKey } from '../../../../adapters/aws/kms-challenge-key.ts';
import { kmsClientConfig } from '../../../../adapters/aws/kms-client.ts';
import { kmsKey } from '../../../../adapters/aws/kms-signer.ts';
import { invocationClientConfig } from '../../../../adapters/lambda/invocation.ts';
import type { HttpEvent, HttpHandler } from '../../../../adapters/lambda/http.ts';
import { loopbackCaller } from '../../../../dev/serve/loopback-caller.ts';
import { createAuthority } from '../../../../core/ca/create-authority.ts';
import { createAttestService } from '../../../../lambdas/attest/service.ts';
import { createSignService } from '../../../../lambdas/sign/service.ts';
import { createActors, oneMachine, storyClusters, twoMachines } from '../../../contract/attested-story.ts';
import type { Actors, Stage } from '../../../contract/attested-story.ts';
import { functionsOf, readClusters, startAwsPlatform } from '../../../harness/attestation/attested-site.ts';
import type { AwsPlatform, Functions } from '../../../harness/attestation/attested-site.ts';
import { startAwsProxy } from '../../../harness/aws/proxy.ts';
import type { AwsProxy } from '../../../harness/aws/proxy.ts';
import { createAttestationsTable, createCertificatesTable } from '../../../harness/aws/tables.ts';
import { startLoopbackServer, readAll } from '../../../harness/processes/forwarding.ts';
import type { LoopbackServer } from '../../../harness/processes/forwarding.ts';
import { requireLocalStack, startLocalStack } from '../../../harness/aws/localstack.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { patience } from './emulators.ts';

const { skip } = await requireLocalStack();
const cluster = readClusters(storyClusters).get('prod')!;

/** Lambda as far as an invocation that waits goes: an event in, what the handler says out. */
async function startLambda(handler: () => HttpHandler): Promise<LoopbackServer> {
  return startLoopbackServer(async (incoming, outgoing) => {
    const event = JSON.parse((await readAll(incoming)).toString('utf8')) as HttpEvent;
    outgoing.writeHead(200, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify(await handler()(event)));
  });
}

describe.skipIf(skip)('attest and sign over DynamoDB', () => {
  let emulator: Emulator;
  let platform: AwsPlatform;
  let actors: Actors;
  let proxy: AwsProxy;
  let direct: DynamoDBClient;
  let kms: KMSClient;
  let keyArn: string;
  let certificatesTable: string;
  beforeAll(async () => {
    [emulator, platform] = await Promise.all([startLocalStack(), startAwsPlatform()]);
    actors = createActors(platform);
    proxy = await startAwsProxy(emulator.url);
    direct = new DynamoDBClient({ ...emulator.client, ...ledgerClientConfig, requestHandler: patience });
    kms = new KMSClient({ ...emulator.client, ...kmsClientConfig, requestHandler: patience });
    const made = await kms.send(new CreateKeyCommand({ KeySpec: 'ECC_NIST_P256', KeyUsage: 'SIGN_VERIFY' }));
    keyArn = made.KeyMetadata!.Arn!;
    certificatesTable = await createCertificatesTable(direct, 'certificates');
    const store = dynamoDbCaStore(direct, certificatesTable);
    await createAuthority(cluster.cas.get('ca')!, {
      cas: cluster.cas,
      key: () => kmsKey(kms, keyArn),
      store,
      origin: () => ({ now: Date.now(), randomBytes }),
    });
  });
  afterAll(async () => {
    direct?.destroy();
    kms?.destroy();
    await proxy?.close();
    await platform?.close();
    await emulator?.stop();
  });

  /** A process of each function. */
  async function start(
    dynamodb: DynamoDBClient,
    attestationsTable: string,
    now: () => number,
  ): Promise<Functions & { stop(): Promise<void> }> {
    const world = { caller: loopbackCaller, dynamodb, now, randomBytes, log: () => {} };
    const challengeKey = (arn: string) => kmsChallengeKey(arn, kms);
    const attest = createAttestService(cluster, { attestationsTable }, { ...world, aws: platform.ports, challengeKey });
    const lambda = await startLambda(() => attest);
    const client = new LambdaClient({ ...emulator.client, ...invocationClientConfig, endpoint: lambda.url });
    const caKeys = new Map([['ca', keyArn]]);
    const settings = { certificatesTable, attestationsTable, caKeys, attestFunction: 'attest' };
    const sign = createSignService(cluster, settings, { ...world, kms, lambda: () => client });
    return {
      ...functionsOf(attest, sign),
      async stop() {
        client.destroy();
        await lambda.close();
      },
    };
  }

  /** Lets the process die at its `last` call; gives whether it came so far. */
  async function dieAt(
    last: number,
    time: 'before' | 'after',
    story: (stage: Stage) => Promise<void>,
  ): Promise<boolean> {
    const table = await createAttestationsTable(direct, `attestations-${randomUUID()}`);
    let waited = 0;
    const now = (): number => platform.now() + waited;
    // Dead processes do not try again.
    const dying = new DynamoDBClient({
      ...emulator.client,
      ...ledgerClientConfig,
      requestHandler: patience,
      endpoint: proxy.url,
      maxAttempts: 1,
    });
    const began = proxy.calls.length;
    proxy.inject = ({ number }) => {
      const call = number - began;
      if (call < last) return undefined;
      return call === last && time === 'after' ? 'answerLost' : 'lost';
    };
    const [failing, healthy] = [await start(dying, table, now), await start(direct, table, now)];
    const dead = (): boolean => proxy.calls.length - began >= last;
    try {
      await story({
        failing,
        healthy,
        dead,
        passTime: () => void (waited += 31_000),
        store: dynamoDbAttestations({ client: direct, tableName: table, randomBytes }),
      });
      return dead();
    } finally {
      dying.destroy();
      await failing.stop();
      await healthy.stop();
    }
  }

  const stories = [
    ['one machine, asked straight: each claim once', oneMachine, 'straight'],
    ['two machines, one name: one', twoMachines, 'arrival'],
  ] as const;
  test.each(stories)(
    '%s',
    async (_, story, way) => {
      let calls = 0;
      for (const time of ['before', 'after'] as const)
        for (let last = 1; await dieAt(last, time, (stage) => story(stage, actors, way)); last += 1) {
          calls += 1;
          expect(last).toBeLessThan(100);
        }
      expect(calls).toBeGreaterThan(20);
    },
    300_000,
  );
});
