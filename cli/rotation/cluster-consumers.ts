/** Reads from a cluster what its parts trust. */
import { objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { readClusterEntry } from '../../core/kubernetes/cluster-info.ts';
import type { Consumer } from '../../core/rotation/consumers.ts';
import { filesOfNodes, filesOfStaticPods } from './files.ts';
import { bundleOf, listAll, nameOf, readConfigMap, readOr, text } from './reads.ts';
import type { Cluster } from './reads.ts';
import { signerBundles } from './signer-bundles.ts';

export async function readConsumers(cluster: Cluster): Promise<readonly Consumer[]> {
  const files = await filesOfStaticPods(cluster);
  return [
    ...(await apiServerConsumers(cluster)),
    ...(await signerBundles(cluster)),
    ...(await caBundles(cluster)),
    ...files,
    ...filesOfNodes.filter(({ name }) => !files.some((file) => file.name === name)),
  ];
}

const authentication = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };
const clientKinds = ['kube-apiserver-client', 'kube-apiserver-client-kubelet'] as const;

/** Three ConfigMaps that Kubernetes and kubeadm keep themselves. */
async function apiServerConsumers(cluster: Cluster): Promise<readonly Consumer[]> {
  const published = await readConfigMap(cluster, authentication.namespace, authentication.name);
  const root = await readConfigMap(cluster, 'kube-system', 'kube-root-ca.crt');
  const info = await readConfigMap(cluster, 'kube-public', 'cluster-info');
  const entry = readClusterEntry(info.data?.['kubeconfig'] ?? '');
  return [
    {
      name: 'kube-apiserver --client-ca-file',
      place: `ConfigMap kube-system/${authentication.name}, client-ca-file`,
      ...bundleOf(published, 'client-ca-file'),
      concern: { kinds: clientKinds },
      change:
        'the file on each machine of an API server; no restart. The API servers add to the ConfigMap and never take away: delete it when all files are changed, and they write it anew',
    },
    {
      name: 'kube-apiserver --requestheader-client-ca-file',
      place: `ConfigMap kube-system/${authentication.name}, requestheader-client-ca-file`,
      ...bundleOf(published, 'requestheader-client-ca-file'),
      concern: 'none',
      change: 'the file on each machine of an API server; no restart. The ConfigMap as with --client-ca-file',
    },
    {
      name: 'kube-controller-manager --root-ca-file',
      place: 'ConfigMap kube-system/kube-root-ca.crt',
      ...bundleOf(root, 'ca.crt'),
      concern: 'apiServer',
      change:
        'the file on each machine of a controller manager; restart it, then the pods whose programs read the ConfigMap only when they start',
    },
    {
      name: 'machines that join',
      place: 'ConfigMap kube-public/cluster-info',
      ...(entry.ok ? { bundle: entry.value.caPem } : bundleOf(info, 'kubeconfig')),
      concern: 'apiServer',
      change: 'certificate-authority-data in its kubeconfig; join commands with pins need the pin of the new CA too',
    },
  ];
}

const bundled = [
  ['admissionregistration.k8s.io', 'validatingwebhookconfigurations', 'ValidatingWebhookConfiguration'],
  ['admissionregistration.k8s.io', 'mutatingwebhookconfigurations', 'MutatingWebhookConfiguration'],
  ['apiregistration.k8s.io', 'apiservices', 'APIService'],
  ['apiextensions.k8s.io', 'customresourcedefinitions', 'CustomResourceDefinition'],
] as const;

/** The CAs by which the API server verifies webhooks and other API servers. */
async function caBundles(cluster: Cluster): Promise<readonly Consumer[]> {
  const found: Consumer[] = [];
  for (const [group, plural, kind] of bundled) {
    const read = await readOr(listAll(cluster, group, 'v1', plural));
    const common = { name: 'kube-apiserver', concern: 'none', change: 'caBundle in the object; no restart' } as const;
    if (!read.ok) found.push({ ...common, place: `${kind}s`, unread: read.why });
    else
      for (const item of read.value ?? []) {
        const bundle = bundlesIn(item);
        if (bundle !== '') found.push({ ...common, place: `${kind} ${nameOf(item)}`, bundle });
      }
  }
  return found;
}

/** PEM of each `caBundle`, wherever these kinds have one. */
function bundlesIn(item: JsonObject): string {
  const spec = objectOf(item['spec']);
  const webhooks = Array.isArray(item['webhooks']) ? (item['webhooks'] as readonly unknown[]) : [];
  const conversion = objectOf(objectOf(spec['conversion'])['webhook']);
  const holders = [
    spec,
    objectOf(conversion['clientConfig']),
    ...webhooks.map((each) => objectOf(objectOf(each)['clientConfig'])),
  ];
  return holders
    .map(({ caBundle }) => Buffer.from(text(caBundle), 'base64').toString('latin1'))
    .join('\n')
    .trim();
}
