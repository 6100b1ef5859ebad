import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { removeRequests, storeRequests } from '../../../../bench/requests/stored-requests.ts';
import { buildRelay } from '../../../../deploy/image/build.ts';
import { images } from '../../../../deploy/image/images.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { startOnFreePort } from '../../../harness/kubernetes/control-plane-servers.ts';
import {
  startProcess,
  temporaryFolder,
  waitUntilReady,
  type RunningProcess,
} from '../../../harness/processes/processes.ts';
import { installRelay } from '../../../harness/stack/stack.ts';
import { requireTools } from '../../../tools/tools.ts';
import { startTestEndpoint, type TestEndpoint } from './endpoint.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');
const present = 10_000;
/** What the chart asks a node for, and what the relay stays below with five times as many requests. */
const megabytes = 150;

/** As the image runs it. How fast it is says the benchmark; what it holds does not depend on who else is at work. */
describe.skipIf(skip)(`the relay where ${present} requests are`, () => {
  const folder = temporaryFolder('relay-memory-test');
  let plane: ControlPlane;
  let endpoint: TestEndpoint;
  let command: readonly string[];
  let user: string;
  let relay: RunningProcess | undefined;
  let url: string;

  beforeAll(async () => {
    endpoint = await startTestEndpoint();
    endpoint.behave('is busy');
    plane = await startControlPlane();
    const identity = await installRelay(plane);
    user = identity.user;
    const { path } = await buildRelay(folder.path);
    const cluster = `--url=${endpoint.url}/v1/clusters/demo`;
    command = [...images.relay.flags, path, cluster, `--kubeconfig=${identity.kubeconfig()}`];
  });
  afterEach(async () => {
    await relay?.stop();
    await removeRequests(plane);
  });
  afterAll(async () => {
    await plane?.stop();
    endpoint?.close();
    folder.remove();
  });

  async function startRelay(): Promise<RunningProcess> {
    ({ url } = await startOnFreePort([], (port) => {
      const args = [...command, `--metrics-address=127.0.0.1:${port}`];
      const logPath = join(folder.path, `relay-${port}.log`);
      const server = startProcess({ name: 'relay', command: process.execPath, args, logPath });
      relay = server;
      const at = `http://127.0.0.1:${port}`;
      const ready = () => waitUntilReady(server, async () => (await fetch(`${at}/readyz`)).ok);
      return Promise.resolve({ server, url: at, ready });
    }));
    return relay!;
  }

  async function metric(name: string): Promise<number> {
    const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n');
    const values = lines.filter((line) => line.startsWith(`countersign_relay_${name}`));
    return values.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  }

  const peak = ({ pid }: RunningProcess): number =>
    Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;

  test('that have been answered holds no object', async () => {
    await storeRequests(plane, 'issued', present);
    const started = await startRelay();
    expect(await metric('lists_total')).toBe(3);
    expect(await metric('malformed_objects_total')).toBe(0);
    expect(await metric('held_object_bytes')).toBe(0);
    const pages = () =>
      plane
        .auditEvents({ user })
        .filter(({ verb, requestURI }) => verb === 'list' && requestURI.includes('client-kubelet'));
    await expect.poll(pages).toHaveLength(present / 100);
    expect(peak(started)).toBeLessThan(megabytes);
  });

  test('that wait for an endpoint which is busy holds a line of them and as many objects as it may', async () => {
    await storeRequests(plane, 'approved', present);
    const started = await startRelay();
    // Read one after the other, while some change sides.
    expect((await metric('queue_depth')) + (await metric('in_flight'))).toBeGreaterThan(present - 64);
    expect(await metric('held_object_bytes')).toBeGreaterThan(4 * 1_048_576);
    expect(await metric('held_object_bytes')).toBeLessThanOrEqual(8 * 1_048_576);
    expect(peak(started)).toBeLessThan(megabytes);
  });

  test('of which some are as large as they can be passes those over one by one', async () => {
    await storeRequests(plane, 'hostile', 60);
    const started = await startRelay();
    expect(await metric('malformed_objects_total')).toBe(0);
    expect(peak(started)).toBeLessThan(200); // all of them on one page would be 80 MB, which it does not take
  });
});
