import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { connectSigner } from '../../../adapters/signing-api/client.ts';
import { openEmbeddedLedger, type EmbeddedLedger } from '../../../adapters/embedded/ledger.ts';
import type { HttpHandler } from '../../../adapters/lambda/http.ts';
import { loopbackCaller } from '../../../dev/serve/loopback-caller.ts';
import { defaultCluster } from '../../../core/configuration/parse.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { SigningEndpoint } from '../../../core/ports/signing-endpoint.ts';
import type { CertificateLedger } from '../../../core/ports/certificate-ledger.ts';
import { serveHttp, type HttpService } from '../../../dev/csr-api/node-http.ts';
import { noCrls } from './no-crls.ts';
import { createSignHandler } from '../../../lambdas/sign/handler.ts';
import { createRelay } from '../../../lambdas/watch-relay/relay.ts';
import type { Faults } from '../../contract/faulty.ts';
import { clockOf, createTimeline, type Timeline } from '../determinism/virtual-time.ts';
import type { CountingAuthority } from './key.ts';
import { createInProcessApi, metadataOf, type InProcessApi } from './request-api.ts';
import { temporaryFolder } from '../processes/processes.ts';
import { noLocks } from '../kubernetes/no-locks.ts';

/*
 * The whole path of a request in one process and in virtual time: relay → HTTP on loopback → sign handler → ledger in
 * a SQLite file and a key that counts. What persists (objects, ledger file, key) is apart from the workers, so that a
 * worker can die at any of its calls and another take up what it left.
 */

export const clusterName = 'demo';
export const cluster = defaultCluster(clusterName, { maxTtlSeconds: 86_400 });
export const clientSigner = 'kubernetes.io/kube-apiserver-client';

/** What outlives every worker. */
export interface World {
  readonly timeline: Timeline;
  readonly epoch: number;
  readonly now: () => number;
  readonly api: InProcessApi;
  readonly key: CountingAuthority;
  /** A connection of one worker's own, where the ledger is a file. */
  openLedger(): EmbeddedLedger;
  /** The ledger as a stranger reads it. */
  readonly ledger: CertificateLedger;
  close(): void;
}

/** `memory` is for the many: no disk waits for each of hundreds of worlds, and the statements are the same. */
export function createWorld(key: CountingAuthority, place: 'file' | 'memory' = 'file'): World {
  const folder = place === 'file' ? temporaryFolder('world') : undefined;
  const ledgerFile = folder === undefined ? ':memory:' : join(folder.path, 'ledger.sqlite');
  const reader = openEmbeddedLedger(ledgerFile);
  const epoch = Date.now();
  const timeline = createTimeline();
  const clock = clockOf(timeline, epoch);
  const now = (): number => clock.now();
  key.reset();
  return {
    timeline,
    epoch,
    now,
    api: createInProcessApi(now),
    key,
    openLedger: () => (place === 'file' ? openEmbeddedLedger(ledgerFile) : { ...reader, close() {} }),
    ledger: reader.ledger,
    close() {
      reader.close();
      folder?.remove();
    },
  };
}

/** One process of the sign function: its own connection to the ledger, its own way to the key. */
export interface SignFunction {
  readonly handler: HttpHandler;
  readonly dead: () => boolean;
  stop(): void;
}

export function startSignFunction(world: World, faults?: Faults): SignFunction {
  const opened = world.openLedger();
  const { authority } = world.key;
  const ledger = faults?.wrap('ledger', opened.ledger) ?? opened.ledger;
  const signer = faults?.wrap('signer', authority.signer) ?? authority.signer;
  return {
    handler: createSignHandler({
      crls: () => noCrls,
      version: 'test',
      caller: loopbackCaller,
      cluster: (name) => (name === clusterName ? cluster : undefined),
      ledger: () => ledger,
      locks: () => noLocks,
      authority: async () => ({ ...authority, signer }),
      now: world.now,
      randomBytes: (count) => new Uint8Array(randomBytes(count)),
      log: () => {},
    }),
    dead: () => faults?.crashed ?? false,
    stop: opened.close,
  };
}

/** HTTP between relay and sign function, one server for a whole test file: the `current` function answers. */
export interface Wire {
  current: SignFunction;
  readonly endpoint: SigningEndpoint;
  /** Calls under way: only they leave this process's own turn of the event loop. */
  pending(): number;
  close(): Promise<void>;
}

export async function createWire(first: SignFunction): Promise<Wire> {
  const service: HttpService = await serveHttp((event) => wire.current.handler(event), {
    port: 0,
    maxBodyBytes: 2_000_000,
    tooLarge: { statusCode: 413, headers: {}, body: '' },
    onError: () => {},
  });
  const signer = connectSigner({ url: `${service.url}/v1/clusters/${clusterName}`, connections: 8 });
  let pending = 0;
  async function call<A>(ask: () => Promise<A>): Promise<A> {
    const { current } = wire;
    pending += 1;
    try {
      const answer = await ask();
      // Its process died over this call: a dead process answers nothing.
      if (current.dead()) throw new Error('socket hang up');
      return answer;
    } finally {
      pending -= 1;
    }
  }
  const wire: Wire = {
    current: first,
    endpoint: {
      sign: (object, signal) => call(() => signer.sign(object, signal)),
      attest: (object, context, signal) => call(() => signer.attest(object, context, signal)),
    },
    pending: () => pending,
    async close() {
      signer.close();
      await service.close();
    },
  };
  return wire;
}

/** One process of the relay. */
export interface RelayWorker {
  readonly dead: () => boolean;
  stop(): Promise<void>;
}

export function startRelayWorker(world: World, wire: Wire, faults?: Faults): RelayWorker {
  let stopped = false;
  const dead = (): boolean => faults?.crashed ?? false;
  const alive = (): boolean => !stopped && !dead();
  const stop = new AbortController();
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const api = world.api.connect();
  const relay = createRelay(
    {
      signerNames: [clientSigner],
      policies: new Map(),
      concurrency: 1,
      inFlightPerRequester: 1,
      graceMilliseconds: 0,
      identity: 'test',
    },
    {
      api: faults?.wrap('api', api) ?? api,
      endpoint: faults?.wrap('endpoint', wire.endpoint) ?? wire.endpoint,
      // After its death nothing of it runs: not even a timer. While it stops, it needs them.
      clock: clockOf(world.timeline, world.epoch, () => alive() || stop.signal.aborted),
      random: () => 0.5,
      log: silent,
    },
  );
  const run = relay.run(stop.signal);
  return {
    dead,
    async stop() {
      stop.abort();
      stopped = true;
      let ended = false;
      void run.finally(() => (ended = true));
      await passTime(world, wire, () => ended);
      await run;
    },
  };
}

/** Lets everything that can happen now happen, then goes to the next timer, until `over`. */
export async function passTime(world: World, wire: Wire, over: () => boolean): Promise<void> {
  for (let timers = 0; timers < 2_000; timers += 1) {
    do for (let turns = 0; turns < 5; turns += 1) await turn();
    while (wire.pending() > 0);
    if (over()) return;
    if (!world.timeline.next()) throw new Error('nothing will ever happen, and it is not over');
  }
  throw new Error('it does not end');
}

/** What became of a request: as `kubectl get csr` would say it. */
export function endOf(object: JsonObject): 'issued' | 'failed' | 'denied' | 'approved' | 'pending' {
  const status = (object['status'] ?? {}) as { certificate?: string; conditions?: { type: string }[] };
  const has = (type: string): boolean => status.conditions?.some((condition) => condition.type === type) ?? false;
  if (status.certificate !== undefined) return 'issued';
  if (has('Failed')) return 'failed';
  if (has('Denied')) return 'denied';
  return has('Approved') ? 'approved' : 'pending';
}

export { metadataOf };
