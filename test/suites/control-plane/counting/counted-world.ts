/**
 * A cluster, its relay and the functions' own services over an emulated AWS, with a counter at each interface: the
 * API server's audit log, an HTTP front before the endpoint, a proxy for each client of DynamoDB and KMS, the invocation
 * of attest by sign, and the fake STS and EC2 of the machines.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { dynamoDbCaStore } from '../../../../adapters/dynamodb/ca.ts';
import { dynamoDbAttestationAdmin } from '../../../../adapters/dynamodb/attestation-admin.ts';
import { ledgerClientConfig } from '../../../../adapters/dynamodb/ledger.ts';
import { kmsChallengeKey } from '../../../../adapters/aws/kms-challenge-key.ts';
import { kmsClientConfig } from '../../../../adapters/aws/kms-client.ts';
import { kmsKey } from '../../../../adapters/aws/kms-signer.ts';
import { invocationClientConfig } from '../../../../adapters/lambda/invocation.ts';
import type { HttpEvent, HttpHandler } from '../../../../adapters/lambda/http.ts';
import { loopbackCaller } from '../../../../dev/serve/loopback-caller.ts';
import { createAuthority } from '../../../../core/ca/create-authority.ts';
import type { ClusterConfiguration } from '../../../../core/configuration/model/cluster.ts';
import type { AttestationAdmin } from '../../../../core/ports/attestation-store.ts';
import { createAttestService } from '../../../../lambdas/attest/service.ts';
import { createSignService } from '../../../../lambdas/sign/service.ts';
import { startApprovalStack, stateOf, type ApprovalStack, type OpenHandlers } from '../../../harness/stack/approval.ts';
import { startAwsPlatform, type AwsPlatform } from '../../../harness/attestation/attested-site.ts';
import type { AuditEvent } from '../../../harness/kubernetes/audit-log.ts';
import { startAwsProxy, type AwsCall, type AwsProxy } from '../../../harness/aws/proxy.ts';
import { createAttestationsTable, createCertificatesTable } from '../../../harness/aws/tables.ts';
import type { ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { readAll, startLoopbackServer } from '../../../harness/processes/forwarding.ts';
import type { ReceivedRequest } from '../../../harness/aws/sigv4-verifier.ts';
import { clusterPath, type Relay } from '../../../harness/stack/stack.ts';
import { eventually, readRequest } from '../../../harness/stack/requests.ts';

/** How often each call was made, by its name: `<who is asked>: <what>`. */
export type Counts = Readonly<Record<string, number>>;

export interface CountedWorld {
  readonly stack: ApprovalStack;
  readonly platform: AwsPlatform;
  /** The endpoint behind its counting front. */
  readonly url: string;
  /** A relay that asks this endpoint. */
  relay(...args: readonly string[]): Promise<Relay>;
  /** All calls from the beginning of `work` until, after its end, there are no more calls. */
  during(work: () => Promise<unknown>): Promise<Counts>;
  reaches(name: string, state: string): Promise<void>;
  /** To sign, by a client of its own, as it was before it was answered. */
  deliver(name: string): Promise<number>;
  /** As operators change the records, past the proxies. */
  register(): AttestationAdmin;
  /** As when Lambda starts another environment of each function. */
  startAnew(): void;
  stop(): Promise<void>;
}

/** An emulator on a busy machine may take its time: how long production waits is not what is counted here. */
const patience = { connectionTimeout: 30_000, requestTimeout: 30_000 } as const;
/** Longer than anything here takes by itself; what is asked later than that is asked by a timer. */
const quietMilliseconds = 800;

export async function startCountedWorld(emulator: Emulator, configuration: object): Promise<CountedWorld> {
  const cleanups: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  };
  try {
    const platform = await startAwsPlatform();
    cleanups.push(() => platform.close());
    const proxies = new Map<string, AwsProxy>();
    for (const name of ['DynamoDB of sign', 'DynamoDB of attest', 'KMS of sign', 'KMS of attest']) {
      const proxy = await startAwsProxy(emulator.url);
      cleanups.push(() => proxy.close());
      proxies.set(name, proxy);
    }
    const endpointOf = (name: string) => ({ ...emulator.client, endpoint: proxies.get(name)!.url });

    const invoked: string[] = [];
    let startAnew = (): void => {};
    let register: AttestationAdmin | undefined;
    const openHandlers: OpenHandlers = async (cluster) => {
      const { tables, keyArn, challengeKey } = await provide(emulator, cluster);
      const client = new DynamoDBClient({ ...emulator.client, requestHandler: patience });
      cleanups.push(() => client.destroy());
      register = dynamoDbAttestationAdmin({ client, tableName: tables.attestations, randomBytes });
      let attest: HttpHandler | undefined;
      const lambda = await startLoopbackServer(async (incoming, outgoing) => {
        invoked.push('Lambda of sign: Invoke attest');
        const event = JSON.parse((await readAll(incoming)).toString('utf8')) as HttpEvent;
        outgoing.writeHead(200, { 'content-type': 'application/json' });
        outgoing.end(JSON.stringify(await attest?.(event)));
      });
      cleanups.push(() => lambda.close());
      let functions = start();
      function start() {
        const dynamodb = (of: string) =>
          new DynamoDBClient({
            ...endpointOf(`DynamoDB of ${of}`),
            ...ledgerClientConfig,
            requestHandler: patience,
          });
        const kms = (of: string) =>
          new KMSClient({ ...endpointOf(`KMS of ${of}`), ...kmsClientConfig, requestHandler: patience });
        const common = { caller: loopbackCaller, now: Date.now, randomBytes, log: () => {} };
        const clients = {
          sign: dynamodb('sign'),
          attest: dynamodb('attest'),
          kms: kms('sign'),
          attestKms: kms('attest'),
          lambda: new LambdaClient({ ...emulator.client, ...invocationClientConfig, endpoint: lambda.url }),
        };
        const attested = cluster.attestation !== undefined;
        attest = attested
          ? createAttestService(
              cluster,
              { attestationsTable: tables.attestations, challengeKey },
              {
                ...common,
                dynamodb: clients.attest,
                aws: platform.ports,
                challengeKey: (arn) => kmsChallengeKey(arn, clients.attestKms),
              },
            )
          : undefined;
        const sign = createSignService(
          cluster,
          {
            certificatesTable: tables.certificates,
            attestationsTable: tables.attestations,
            caKeys: new Map([...cluster.cas.keys()].map((name) => [name, keyArn])),
            ...(attested ? { attestFunction: 'attest' } : {}),
          },
          { ...common, dynamodb: clients.sign, kms: clients.kms, lambda: () => clients.lambda },
        );
        const close = (): void => Object.values(clients).forEach((client) => client.destroy());
        return { attest, sign, close };
      }
      startAnew = () => {
        functions.close();
        functions = start();
      };
      return {
        handler: (event) => ((event.rawPath.endsWith('/attest') && functions.attest) || functions.sign)(event),
        close: () => functions.close(),
      };
    };

    const stack = await startApprovalStack(JSON.stringify(configuration), undefined, {}, openHandlers);
    cleanups.push(() => stack.stop());
    const front = await startAwsProxy(stack.endpoint);
    cleanups.push(() => front.close());
    const relays: Relay[] = [];

    const calls = (): readonly string[] => [
      ...apiCalls(stack.plane, stack.identity.user),
      ...front.calls.map(({ operation }) => `endpoint: ${operation.replace(clusterPath, '')}`),
      ...[...proxies].flatMap(([name, proxy]) => proxy.calls.map((call) => `${name}: ${operationOf(call)}`)),
      ...invoked,
      // Those that are refused too.
      ...platform.sts.received.map((request) => `STS of attest: ${actionOf(request)}`),
      ...platform.ec2.received.map((request) => `EC2 of attest: ${actionOf(request)}`),
    ];
    const busy = async (): Promise<number> => {
      const each = relays.flatMap((relay) =>
        relay.process.ended() === undefined ? [relay.metric('in_flight'), relay.metric('queue_depth')] : [],
      );
      return (await Promise.all(each)).reduce((sum, value) => sum + value, 0);
    };
    async function quiet(): Promise<void> {
      for (let before = -1; ;) {
        const now = calls().length;
        if (now === before && (await busy()) === 0) return;
        before = now;
        await sleep(quietMilliseconds);
      }
    }

    return {
      stack,
      platform,
      url: front.url,
      async relay(...args) {
        const relay = await stack.relay('--url', `${front.url}${clusterPath}`, ...args);
        relays.push(relay);
        return relay;
      },
      async during(work) {
        const [before, slowBefore] = [tally(calls()), await slowWatches(stack.plane)];
        await work();
        await quiet();
        const counts = difference(tally(calls()), before);
        return difference(counts, begunAgain((await slowWatches(stack.plane)) - slowBefore));
      },
      reaches: (name, state) =>
        eventually(async () => (await stateOf(stack.plane, name)) === state, `${name} is ${state}`),
      async deliver(name) {
        const object = await readRequest(stack.plane, name);
        const { certificate: _earlier, ...status } = object.status;
        const type = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' };
        const answer = await fetch(`${front.url}${clusterPath}/sign`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ ...type, ...object, status }),
        });
        return answer.status;
      },
      register() {
        if (register === undefined) throw new Error('there is no cluster yet');
        return register;
      },
      startAnew: () => startAnew(),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What a cluster's stacks give it, made past the proxies. */
async function provide(
  emulator: Emulator,
  cluster: ClusterConfiguration,
): Promise<{ tables: { certificates: string; attestations: string }; keyArn: string; challengeKey: string }> {
  const dynamodb = new DynamoDBClient({ ...emulator.client, requestHandler: patience });
  const kms = new KMSClient({ ...emulator.client, requestHandler: patience });
  try {
    const tables = {
      certificates: await createCertificatesTable(dynamodb, `certificates-${randomUUID()}`),
      attestations: await createAttestationsTable(dynamodb, `attestations-${randomUUID()}`),
    };
    const key = await kms.send(new CreateKeyCommand({ KeySpec: 'ECC_NIST_P256', KeyUsage: 'SIGN_VERIFY' }));
    const keyArn = key.KeyMetadata?.Arn ?? '';
    const store = dynamoDbCaStore(dynamodb, tables.certificates);
    for (const ca of cluster.cas.values())
      await createAuthority(ca, {
        cas: cluster.cas,
        key: () => kmsKey(kms, keyArn),
        store,
        origin: () => ({ now: Date.now(), randomBytes }),
      });
    const mac = await kms.send(new CreateKeyCommand({ KeySpec: 'HMAC_256', KeyUsage: 'GENERATE_VERIFY_MAC' }));
    return { tables, keyArn, challengeKey: mac.KeyMetadata?.Arn ?? '' };
  } finally {
    dynamodb.destroy();
    kms.destroy();
  }
}

/**
 * How many watches the API server has ended because their reader was slow, which says how busy the machine is. Each is
 * begun again at once (`ended` of the budget).
 */
export async function slowWatches({ admin }: ControlPlane): Promise<number> {
  const { text } = await admin.request('/metrics');
  const lines = text.matchAll(/^apiserver_terminated_watchers_total\{.*certificatesigningrequests.*\} (\d+)$/gm);
  return [...lines].reduce((sum, [, count]) => sum + Number(count), 0);
}

export function begunAgain(watches: number): Counts {
  return { 'API server: watch certificatesigningrequests': watches };
}

/** Every request of this user but those about its Lease, which go by the clock: once, however long it lasts. */
export function apiCalls(plane: ControlPlane, user: string): readonly string[] {
  return requestsOf(plane, user)
    .filter(({ objectRef }) => objectRef?.resource !== 'leases')
    .map((event) => `API server: ${verbOf(event)}`);
}

/** In the order in which they were begun. A watch has two events, of its beginning and of its end. */
export function requestsOf(plane: ControlPlane, user: string): readonly AuditEvent[] {
  const seen = new Map<string, AuditEvent>();
  for (const event of plane.auditEvents({ user })) if (!seen.has(event.auditID)) seen.set(event.auditID, event);
  return [...seen.values()];
}

/** `update certificatesigningrequests/status` */
export function verbOf({ verb, objectRef, requestURI }: AuditEvent): string {
  if (objectRef === undefined) return `${verb} ${requestURI}`;
  const { resource, subresource } = objectRef;
  return `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`;
}

/** In the query or, of a POST, in the body. */
function actionOf({ target, body }: ReceivedRequest): string {
  return /[?&]Action=(\w+)/.exec(`${target}&${Buffer.from(body).toString('utf8')}`)?.[1] ?? target;
}

interface Keyed {
  readonly Key?: Keys;
  readonly Item?: Keys;
}
interface Keys {
  readonly pk?: { readonly S?: string };
}

/** Of DynamoDB with the kinds of items it is about, as `GetItem verdict#`. */
export function operationOf({ operation, body }: AwsCall): string {
  const [service = '', name = ''] = operation.split('.');
  if (!service.startsWith('DynamoDB')) return name;
  const request = JSON.parse(body.toString('utf8')) as Keyed & {
    readonly TransactItems?: readonly Readonly<Record<string, Keyed>>[];
    readonly RequestItems?: Readonly<Record<string, { readonly Keys: readonly Keys[] }>>;
  };
  const batch = Object.values(request.RequestItems ?? {}).flatMap(({ Keys }) => Keys.map((Key): Keyed => ({ Key })));
  const transaction = request.TransactItems?.flatMap((item) => Object.values(item));
  const parts = transaction ?? (batch.length > 0 ? batch : [request]);
  const kinds = parts.map(({ Key, Item }) => ((Key ?? Item)?.pk?.S ?? '').replace(/#.*/s, '#'));
  return `${name} ${kinds.join(' ')}`;
}

export function tally(calls: readonly string[]): Counts {
  const counts: Record<string, number> = {};
  for (const call of calls) counts[call] = (counts[call] ?? 0) + 1;
  return counts;
}

export function difference(after: Counts, before: Counts): Counts {
  const entries = Object.entries(after).map(([call, count]) => [call, count - (before[call] ?? 0)] as const);
  return Object.fromEntries(entries.filter(([, count]) => count !== 0));
}
