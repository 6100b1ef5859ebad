/** The API servers in memory of the relay's tests, of the in-process stack and of the simulator. */
import { randomUUID } from 'node:crypto';
import { afterAll } from 'vitest';
import { requestApiContract } from '../../contract/request-api.ts';
import { createVirtualClock } from '../../harness/determinism/virtual-time.ts';
import { createInProcessApi } from '../../harness/stack/request-api.ts';
import { createRequests } from '../../sim/ports/request-api.ts';
import { createRandom } from '../../sim/random.ts';
import { createRuntime, startProcess } from '../../sim/runtime.ts';
import { createSimulatedApi } from '../lambdas/watch-relay/simulated-api.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';

/** Virtual time passes by itself while the suite runs. */
const pumps: NodeJS.Timeout[] = [];
const pump = (advance: () => Promise<void>): void => void pumps.push(setInterval(() => void advance(), 1));
afterAll(() => pumps.forEach((each) => clearInterval(each)));

/** What an API server adds to a new object. */
const stored = (object: JsonObject) => ({
  ...object,
  metadata: { ...(object['metadata'] as JsonObject), uid: randomUUID() },
  status: {},
});

requestApiContract("the relay's simulated API server", async () => {
  const clock = createVirtualClock();
  const server = createSimulatedApi({ clock });
  pump(() => clock.advance(20));
  return { api: server.api, create: async (object) => server.create(stored(object)) };
});

requestApiContract('the simulator', async () => {
  const none = { until: 0, crash: 0, lost: 0, throttled: 0, late: 0, slow: 0, forbidden: 0, pause: 0, skew: 0 };
  const rates = { ...none, later: [], duplicate: 0, watch: 0, staleList: 0 };
  const runtime = createRuntime(createRandom('contract'), rates, false, new Map());
  const events = { changed() {}, tooLarge() {}, reviewed() {}, crime() {} };
  const server = createRequests(runtime, events, () => true, 500);
  pump(() => runtime.timeline.advance(20));
  return {
    api: server.connect(startProcess(runtime, 'relay')),
    create: async (object) => server.create(stored(object)),
  };
});

requestApiContract('the in-process API server', async () => {
  const server = createInProcessApi(Date.now);
  return {
    api: server.connect(),
    create: async (object) => void server.store.create(object, { username: 'requester', groups: [] }),
  };
});
