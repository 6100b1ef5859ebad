/** What the cluster knows about one request: the object, its Events, the relay's log. */
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import { isObject } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { failIfRefused, unlessRefused } from '../cluster/object-answers.ts';
import { eventMoment, relayMoment } from './moments.ts';
import type { Moment } from './moments.ts';

const request = { group: 'certificates.k8s.io', version: 'v1', plural: 'certificatesigningrequests' };

/** Undefined if there is no request with this name. */
export async function readRequest({ custom }: ClusterConnection, name: string): Promise<JsonObject | undefined> {
  // The typed call would drop unknown fields.
  const answer: Promise<unknown> = custom.getClusterCustomObject({ ...request, name });
  const object = await failIfRefused(unlessRefused(answer, 'NotFound'), 'the request', {
    Forbidden: 'it needs get on certificatesigningrequests',
  });
  return isObject(object) ? object : undefined;
}

/** The relay writes Events about objects without a namespace into `default`. */
export async function readEvents({ core }: ClusterConnection, uid: string): Promise<readonly Moment[]> {
  const query = { namespace: 'default', fieldSelector: `involvedObject.uid=${uid}`, limit: 50 };
  const { items } = await failIfRefused(core.listNamespacedEvent(query), 'its Events', {
    Forbidden: 'it needs list on events in the namespace default',
  });
  return items.flatMap((event) => eventMoment(event as unknown as JsonObject) ?? []);
}

const mostPods = 10;
/** For each pod. A line about a request has 200 bytes. */
const mostLogBytes = 8 * 1_048_576;
const relayPods = 'app.kubernetes.io/part-of=countersign,app.kubernetes.io/component=watch-relay';

export interface RelayLog {
  readonly moments: readonly Moment[];
  /** What of the log was not read; absent if nothing was left out. */
  readonly endedEarly?: string;
}

/**
 * The lines of the relay's pods that run now. The labels only select candidates: a user who may create pods can set them. So
 * each line names its pod.
 */
export async function readRelayLog(cluster: ClusterConnection, uid: string, since: Instant): Promise<RelayLog> {
  const { items: pods } = await failIfRefused(
    cluster.core.listPodForAllNamespaces({ labelSelector: relayPods, limit: mostPods }),
    'the pods of the relay',
    { Forbidden: 'it needs list on pods' },
  );
  if (pods.length === 0) return { moments: [], endedEarly: 'no pod has the labels of the relay' };
  const query = {
    container: 'watch-relay',
    sinceTime: new Date(since).toISOString().replace(/\.\d+Z$/, 'Z'),
    limitBytes: String(mostLogBytes),
  };
  const moments: Moment[] = [];
  const cut: string[] = [];
  for (const { metadata } of pods) {
    const { name = '', namespace = '' } = metadata ?? {};
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/log`;
    const text = await failIfRefused(cluster.text(path, query), `the log of ${namespace}/${name}`, {
      Forbidden: 'it needs get on pods/log',
    });
    if (text === undefined || text.length >= mostLogBytes) cut.push(`${namespace}/${name}`);
    for (const line of text?.split('\n') ?? [])
      moments.push(...[relayMoment(line, uid, `${namespace}/${name}`) ?? []].flat());
  }
  return cut.length === 0
    ? { moments }
    : { moments, endedEarly: `only the first ${mostLogBytes / 1_048_576} MiB of ${cut.join(', ')}` };
}
