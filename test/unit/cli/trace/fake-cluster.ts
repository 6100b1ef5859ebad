/** An API server with requests, Events, and pods of a relay with their logs. */
import { answerWith, notFound } from '../../../harness/kubernetes/answering-server.ts';
import type { Answer } from '../../../harness/kubernetes/answering-server.ts';

export interface FakeCluster {
  readonly kubeconfig: string;
  /** CertificateSigningRequests by name. */
  readonly requests: Map<string, object>;
  readonly events: { readonly involvedObject: { readonly uid: string }; readonly [field: string]: unknown }[];
  /** Logs by `namespace/name` of pods with the labels of the relay. */
  readonly logs: Map<string, string>;
  /** Paths that are answered 403. */
  readonly forbidden: RegExp[];
  readonly asked: string[];
}

const labels = 'app.kubernetes.io/part-of=countersign,app.kubernetes.io/component=watch-relay';

export async function startFakeCluster(): Promise<FakeCluster> {
  const fake: Contents = { requests: new Map(), events: [], logs: new Map(), forbidden: [], asked: [] };
  const { kubeconfig } = await answerWith(({ path, query }) => {
    fake.asked.push(path);
    return fake.forbidden.some((each) => each.test(path))
      ? [403, { kind: 'Status', message: 'is forbidden: User "ada" cannot do this' }]
      : answer(path, query, fake);
  });
  return { ...fake, kubeconfig };
}

type Contents = Omit<FakeCluster, 'kubeconfig'>;

function answer(path: string, query: URLSearchParams, fake: Contents): Answer {
  const [, name] = /^\/apis\/certificates\.k8s\.io\/v1\/certificatesigningrequests\/([^/]+)$/.exec(path) ?? [];
  if (name !== undefined) {
    const object = fake.requests.get(decodeURIComponent(name));
    return object === undefined ? notFound : [200, object];
  }
  if (path === '/api/v1/namespaces/default/events') {
    const [, uid] = /^involvedObject\.uid=(.+)$/.exec(query.get('fieldSelector') ?? '') ?? [];
    return [200, { items: fake.events.filter(({ involvedObject }) => involvedObject.uid === uid), metadata: {} }];
  }
  if (path === '/api/v1/pods' && query.get('labelSelector') === labels) {
    const items = [...fake.logs.keys()].map((pod) => {
      const [namespace, podName] = pod.split('/');
      return { metadata: { namespace, name: podName } };
    });
    return [200, { items, metadata: {} }];
  }
  const [, namespace, pod] = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/log$/.exec(path) ?? [];
  const log = fake.logs.get(`${namespace}/${pod}`);
  if (log === undefined || query.get('container') !== 'watch-relay' || !query.has('sinceTime')) return notFound;
  return [200, log.slice(0, Number(query.get('limitBytes')))];
}
