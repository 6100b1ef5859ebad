/**
 * The time and the memory that the relay needs in a cluster that has many requests already: as its image runs it, and from
 * its sources, compared with kube-controller-manager, whose informer holds all requests. docs/internals/performance.md
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildRelay } from '../../deploy/image/build.ts';
import { images } from '../../deploy/image/images.ts';
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import { startKubeControllerManager } from '../../test/harness/kubernetes/controller-manager.ts';
import { startProcess, temporaryFolder, waitUntilReady } from '../../test/harness/processes/processes.ts';
import type { RunningProcess } from '../../test/harness/processes/processes.ts';
import { installRelay } from '../../test/harness/stack/stack.ts';
import { createTestAuthority } from '../../test/harness/x509/test-certificates.ts';
import { startedAt, usageOf } from '../measure/process-usage.ts';
import { removeRequests, storeRequests } from '../requests/stored-requests.ts';
import type { StoredKind } from '../requests/stored-requests.ts';

export interface RelayMemoryPlan {
  /** How many requests the cluster has when the relay starts; each number is measured by itself. */
  readonly counts: readonly number[];
}

export interface RelayMemoryResult {
  readonly rows: readonly RelayMemoryRow[];
}

export interface RelayMemoryRow {
  /** The program that was started. */
  readonly program: string;
  readonly present: number;
  /** The state of those requests. */
  readonly state: string;
  /** From the start of the process until everything was listed, in seconds. */
  readonly started: number;
  /** CPU time of all threads until then. */
  readonly cpuSeconds: number;
  /** The highest resident set until the end of the measurement, and the resident set after a while. */
  readonly peakMegabytes: number;
  readonly settledMegabytes: number;
}

/** A started process, and the moment when it had listed everything (performance.now()). */
interface Started {
  readonly process: RunningProcess;
  readonly listed: number;
  readonly cpuSeconds: number;
}

const root = join(import.meta.dirname, '../..');
const settleMilliseconds = 10_000;
const listMilliseconds = 180_000;
/** How long an overloaded endpoint takes to answer. */
const busyMilliseconds = 1_000;

const states: readonly (readonly [kind: StoredKind, label: string])[] = [
  ['issued', 'issued long ago'],
  ['approved', 'waiting, the endpoint is busy'],
];

export async function measureRelayMemory(
  controlPlane: ControlPlane,
  { counts }: RelayMemoryPlan,
  say: (text: string) => void,
): Promise<RelayMemoryResult> {
  const folder = temporaryFolder('relay-memory');
  const endpoint = await startBusyEndpoint();
  const rows: RelayMemoryRow[] = [];
  try {
    const bundle = await buildRelay(folder.path);
    const kubeconfig = (await installRelay(controlPlane)).kubeconfig();
    const args = [`--url=${endpoint.url}`, `--kubeconfig=${kubeconfig}`, '--metrics-address=127.0.0.1:0'];
    const relay = (name: string, program: readonly string[]) => (): Promise<Started> =>
      startRelay(name, [...program, ...args], join(folder.path, `${name}-${rows.length}.log`));
    const relays = [
      ['relay, as in its image', relay('image', [...images.relay.flags, bundle.path])],
      ['relay, from sources', relay('sources', [join(root, 'lambdas/watch-relay/index.ts')])],
    ] as const;
    const reference = ['kube-controller-manager', () => startReference(controlPlane)] as const;

    await removeRequests(controlPlane);
    for (const present of [0, ...counts]) {
      for (const [kind, state] of states) {
        // Without requests there is only one case. The reference is not started beside requests that it would sign.
        if (present === 0 && kind !== 'issued') continue;
        say(`relay memory: ${present} requests, ${state}`);
        if (present > 0) await storeRequests(controlPlane, kind, present);
        for (const [program, start] of kind === 'issued' ? [...relays, reference] : relays)
          rows.push({ program, present, state: present === 0 ? '' : state, ...(await measureStart(start)) });
        await removeRequests(controlPlane);
      }
    }
  } finally {
    endpoint.close();
    folder.remove();
  }
  return { rows };
}

async function measureStart(
  start: () => Promise<Started>,
): Promise<Omit<RelayMemoryRow, 'program' | 'present' | 'state'>> {
  const { process, listed, cpuSeconds } = await start();
  try {
    const started = (listed - startedAt(process.pid)) / 1_000;
    await sleep(settleMilliseconds);
    const { peakMegabytes } = usageOf(process.pid);
    return { started, cpuSeconds, peakMegabytes, settledMegabytes: residentMegabytes(process.pid) };
  } finally {
    await process.stop();
  }
}

/** Returns when the relay is ready and has listed the requests of each signer. Its log has the time of the last list. */
async function startRelay(name: string, command: readonly string[], logPath: string): Promise<Started> {
  const process = startProcess({ name, command: globalThis.process.execPath, args: command, logPath });
  try {
    await waitUntilReady(process, () => linesOf(logPath, 'listed').length === signerCount, listMilliseconds);
    const { cpuSeconds } = usageOf(process.pid);
    const [connected] = linesOf(logPath, 'connected');
    const probes = connected?.['probes'] as AddressInfo | undefined;
    const ready = await fetch(`http://127.0.0.1:${probes?.port}/readyz`);
    if (!ready.ok) throw new Error(`${name} has listed and is not ready: ${await ready.text()}`);
    const last = linesOf(logPath, 'listed').at(-1)?.['time'];
    return { process, listed: Date.parse(String(last)) - performance.timeOrigin, cpuSeconds };
  } catch (error) {
    await process.stop();
    throw error;
  }
}

/** The signers of a relay without a countersign.yaml. */
const signerCount = 3;

function linesOf(logPath: string, message: string): readonly Record<string, unknown>[] {
  return readFileSync(logPath, 'utf8')
    .split('\n')
    .filter((line) => line.endsWith('}') && line.includes(`"msg":"${message}"`))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Starts its signing controller only, and returns when each of its four loops has the list. */
async function startReference(controlPlane: ControlPlane): Promise<Started> {
  const { certificatePem, keyPem } = await createTestAuthority('bench reference ca');
  const process = await startKubeControllerManager({
    controlPlane,
    controllers: ['csrsigning'],
    signingCertPem: certificatePem,
    signingKeyPem: keyPem,
  });
  return { process, listed: performance.now(), cpuSeconds: usageOf(process.pid).cpuSeconds };
}

/** Answers each call with `busy`, after a second. */
async function startBusyEndpoint(): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((request, response) => {
    request.resume();
    setTimeout(() => {
      response.writeHead(503, { 'content-type': 'application/json', 'x-countersign-outcome': 'busy' });
      response.end('{"retryAfterSeconds":1}');
    }, busyMilliseconds);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1/clusters/bench`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function residentMegabytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
}

export function renderRelayMemory({ rows }: RelayMemoryResult): string {
  const cells = rows.map((row) => [
    row.program,
    String(row.present),
    row.state,
    `${row.started.toFixed(2)} s`,
    `${row.cpuSeconds.toFixed(2)} s`,
    row.peakMegabytes.toFixed(0),
    row.settledMegabytes.toFixed(0),
  ]);
  const head = ['', 'requests', 'state', 'listed after', 'CPU', 'peak MB', 'after 10 s'];
  const lines = [head, head.map(() => '---'), ...cells].map((line) => `| ${line.join(' | ')} |`);
  return `${lines.join('\n')}\n`;
}
