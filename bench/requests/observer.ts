import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import type { RunningProcess } from '../../test/harness/processes/processes.ts';

/** Records, from its own watch, which requests appeared and when each got its certificate, by performance.now(). */
export interface Observer {
  readonly certifiedAt: ReadonlyMap<string, number>;
  /** How many requests have appeared so far. Throws when a request failed or the watch is lost. */
  added(): number;
  /**
   * Resolves when each request has its certificate. Rejects when no certificate came for `stalledMilliseconds`, when any
   * request fails, or when one of the processes in `by`, which issue them, has ended.
   */
  allCertified(names: readonly string[], stalledMilliseconds: number, by?: readonly RunningProcess[]): Promise<void>;
  /** Forgets the certificates seen so far, since new requests may have the names of earlier ones. */
  forget(): void;
  close(): void;
}

/** The texts to find in an event. In `managedFields` these names have the prefix `f:`. */
const certificateField = '"certificate":"';
const failedCondition = '"type":"Failed"';
const addedEvent = '{"type":"ADDED"';
const deletedEvent = '{"type":"DELETED"';

/**
 * Scans each event for the fields that matter rather than parsing it, since the observer runs on the same processors
 * as those it watches. It does not use the project's client, so that it shares no faults with what it measures.
 */
export async function observeRequests(controlPlane: ControlPlane): Promise<Observer> {
  const certifiedAt = new Map<string, number>();
  const waiting = new Set<Waiting>();
  let added = 0;
  let failure: Error | undefined;

  function fail(error: Error): void {
    failure ??= error; // later calls must reject too
    for (const waiter of waiting) waiter.reject(failure);
    waiting.clear();
  }

  function read(line: Buffer): void {
    // A deletion shows the certificate once more: it would count for the next request of that name.
    if (line.indexOf(deletedEvent) === 0) return;
    const name = stringAfter(line, '"name":"');
    if (line.indexOf(addedEvent) === 0) added += 1;
    if (line.includes(failedCondition)) fail(new Error(`request ${name} failed: ${line.toString('utf8')}`));
    if (certifiedAt.has(name) || !line.includes(certificateField)) return;
    certifiedAt.set(name, performance.now());
    for (const waiter of waiting) {
      if (!waiter.missing.delete(name) || waiter.missing.size > 0) continue;
      waiting.delete(waiter);
      waiter.resolve();
    }
  }

  const watch = await watchRequests(controlPlane, read, fail);
  return {
    certifiedAt,
    added() {
      if (failure !== undefined) throw failure;
      return added;
    },
    async allCertified(names, stalledMilliseconds, by = []) {
      const missing = new Set(names.filter((name) => !certifiedAt.has(name)));
      if (failure !== undefined) throw failure;
      if (missing.size === 0) return;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting.add({ missing, resolve, reject });
      let [left, since] = [missing.size, performance.now()];
      const checkProgress = (): void => {
        const ended = by.find((process) => process.ended() !== undefined);
        if (ended !== undefined) reject(new Error(`${ended.name} ended (${ended.ended()})`));
        if (missing.size < left) [left, since] = [missing.size, performance.now()];
        if (performance.now() - since < stalledMilliseconds) return;
        const stalled = `and no other for ${stalledMilliseconds / 1_000} s`;
        reject(new Error(`${names.length - left} of ${names.length} have a certificate, ${stalled}`));
      };
      const limit = setInterval(checkProgress, Math.min(1_000, stalledMilliseconds));
      await promise.finally(() => clearInterval(limit));
    },
    forget: () => certifiedAt.clear(),
    close: () => watch.close(),
  };
}

interface Waiting {
  readonly missing: Set<string>;
  resolve(): void;
  reject(error: Error): void;
}

/**
 * A watch of all requests from now on. When the API server ends it for being slow, it goes on from one revision earlier
 * and drops what it has read already: requests that were written in one transaction have the same revision.
 */
async function watchRequests(
  controlPlane: ControlPlane,
  read: (line: Buffer) => void,
  fail: (error: Error) => void,
): Promise<{ close(): void }> {
  const list = await controlPlane.admin.expectOk<{ metadata: { resourceVersion: string } }>(`${requestsPath}?limit=1`);
  let { resourceVersion } = list.metadata;
  const atRevision = new Set<string>();
  const login = loginOf(controlPlane.adminKubeconfig);
  let closed = false;
  let close = (): void => {};

  function open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const from = atRevision.size === 0 ? resourceVersion : String(Number(resourceVersion) - 1);
      const query = `watch=true&timeoutSeconds=3600&resourceVersion=${from}`;
      const watch = request(`${controlPlane.url}${requestsPath}?${query}`, { ...login, agent: false });
      close = () => watch.destroy();
      watch.on('response', (response) => {
        if (response.statusCode !== 200) {
          watch.destroy(new Error(`the watch was answered with ${response.statusCode}`));
          return;
        }
        response.on(
          'data',
          lines((line) => {
            const revision = stringAfter(line, '"resourceVersion":"');
            const name = stringAfter(line, '"name":"');
            if (revision !== resourceVersion) atRevision.clear();
            else if (atRevision.has(name)) return;
            resourceVersion = revision;
            atRevision.add(name);
            read(line);
          }),
        );
        response.on('end', () => {
          if (!closed) open().catch(fail);
        });
        resolve();
      });
      watch.on('error', (error) => {
        reject(error);
        if (!closed) fail(error);
      });
      watch.end();
    });
  }

  await open();
  return {
    close() {
      closed = true;
      close();
    },
  };
}

/** The first string that follows these words; a watch event has them in its metadata first. */
function stringAfter(line: Buffer, words: string): string {
  const begin = line.indexOf(words) + words.length;
  return line.toString('latin1', begin, line.indexOf('"', begin));
}

export const requestsPath = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

/** Calls `read` with each whole line of a stream that comes in pieces. */
function lines(read: (line: Buffer) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    let data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (let end = data.indexOf(10); end !== -1; end = data.indexOf(10)) {
      read(data.subarray(0, end));
      data = data.subarray(end + 1);
    }
    rest = data;
  };
}

/** The harness writes its kubeconfigs as JSON. */
function loginOf(kubeconfigPath: string): { ca: Buffer; cert: Buffer; key: Buffer } {
  const { clusters, users } = JSON.parse(readFileSync(kubeconfigPath, 'utf8')) as {
    clusters: { cluster: Record<string, string> }[];
    users: { user: Record<string, string> }[];
  };
  const decoded = (field: string | undefined): Buffer => Buffer.from(field ?? '', 'base64');
  return {
    ca: decoded(clusters[0]?.cluster['certificate-authority-data']),
    cert: decoded(users[0]?.user['client-certificate-data']),
    key: decoded(users[0]?.user['client-key-data']),
  };
}
