import { failure, success } from '../../../../../core/outcome/result.ts';
import type { ApiProblem, ApiRefusal, JsonObject, ListWatch } from '../../../../../core/ports/kubernetes-api.ts';
import { createEventQueue } from '../../../../harness/kubernetes/event-queue.ts';
import type { EventQueue } from '../../../../harness/kubernetes/event-queue.ts';

export type Json = JsonObject & { readonly metadata: JsonObject & { readonly name: string } };

/** One resource of an API server in memory. Its watches tell only what happens while they are open, and from where they start. */
export function createSimulatedSource() {
  const objects = new Map<string, Json>();
  const watches = new Set<EventQueue>();
  const history: { version: number; type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: Json }[] = [];
  let version = 1;
  let compacted = 0;
  let refusing: ApiRefusal | undefined;
  let lists = 0;

  function happen(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: Json): void {
    version += 1;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    if (type === 'DELETED') objects.delete(object.metadata.name);
    else objects.set(object.metadata.name, stored);
    history.push({ version, type, object: stored });
    for (const watch of watches) watch.push({ type, object: stored, bytes: 100 });
  }

  const refusal = (why: ApiRefusal) => failure<ApiProblem>({ why, message: why });
  const source: ListWatch = {
    async list({ limit, continue: token = '0' }) {
      lists += 1;
      if (refusing !== undefined) return refusal(refusing);
      const all = [...objects.values()];
      const next = Number(token) + limit;
      const items = all.slice(Number(token), next);
      return success({
        items,
        resourceVersion: String(version),
        ...(next < all.length ? { continue: String(next) } : {}),
      });
    },
    async watch({ resourceVersion }, signal) {
      if (refusing !== undefined) return refusal(refusing);
      if (Number(resourceVersion) < compacted) return refusal('Expired');
      const queue = createEventQueue(signal);
      for (const { version: at, type, object } of history)
        if (at > Number(resourceVersion)) queue.push({ type, object, bytes: 100 });
      watches.add(queue);
      queue.whenEnded(() => watches.delete(queue));
      return success(queue.events);
    },
  };
  return {
    source,
    put: (object: Json) => happen(objects.has(object.metadata.name) ? 'MODIFIED' : 'ADDED', object),
    remove(name: string) {
      const object = objects.get(name);
      if (object !== undefined) happen('DELETED', object);
    },
    refuse: (why: ApiRefusal | undefined) => void (refusing = why),
    /** As after a restart of the API server whose etcd was compacted. */
    loseHistory() {
      compacted = version + 1;
      version += 2;
      for (const watch of watches) watch.end(new Error('connection reset'));
    },
    bookmark() {
      for (const watch of watches) watch.push({ type: 'BOOKMARK', resourceVersion: String(version) });
    },
    lists: () => lists,
    watching: () => watches.size,
  };
}

export function machine(name: string, more: { spec?: object; status?: object; metadata?: object } = {}): Json {
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Machine',
    metadata: { name, namespace: 'default', ...more.metadata },
    spec: { clusterName: 'prod', providerID: `aws:///eu-central-1a/${name}`, ...more.spec },
    status: { initialization: { bootstrapDataSecretCreated: true }, nodeRef: { name: `node-${name}` }, ...more.status },
  };
}

export function machinePool(name: string, providerIDList: readonly string[], spec: object = {}): Json {
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachinePool',
    metadata: { name, namespace: 'default' },
    spec: { clusterName: 'prod', providerIDList, ...spec },
    status: { initialization: { bootstrapDataSecretCreated: true } },
  };
}

export function clusterObject(more: { annotations?: object; spec?: object; deletionTimestamp?: string } = {}): Json {
  const { annotations = {}, spec = {}, ...metadata } = more;
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata: { name: 'prod', namespace: 'default', annotations, ...metadata },
    spec: {
      infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'AWSCluster', name: 'prod-infra' },
      ...spec,
    },
  };
}
