/** Files that parts of a cluster trust, which the API does not show. Static pods of kubeadm name them. */
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import type { Concern, Consumer } from '../../core/rotation/consumers.ts';
import { readOr } from './reads.ts';

const kubeletServing = { kinds: ['kubelet-serving'] } as const;
/** client-go 1.36 compares the file at a call, five minutes after it last did (transport/ca_rotation.go). */
const changeOfKubeletAuthority =
  'add the new CA; Kubernetes 1.36 reads the file again within five minutes, before 1.36 restart kube-apiserver';
const clients = { kinds: ['kube-apiserver-client', 'kube-apiserver-client-kubelet'] } as const;

/** Flags that name trusted certificates, by component. Restarts as measured with Kubernetes 1.36 (docs/ca/rotation.md). */
const flags: Readonly<
  Record<string, Readonly<Record<string, { readonly concern: Concern; readonly change: string }>>>
> = {
  'kube-apiserver': {
    'client-ca-file': { concern: clients, change: 'add the new CA; no restart' },
    'kubelet-certificate-authority': { concern: kubeletServing, change: changeOfKubeletAuthority },
  },
  'kube-controller-manager': {
    'root-ca-file': { concern: 'apiServer', change: 'add the new CA; restart kube-controller-manager' },
    'client-ca-file': { concern: clients, change: 'add the new CA; no restart' },
  },
  'kube-scheduler': { 'client-ca-file': { concern: clients, change: 'add the new CA; no restart' } },
};

/** One consumer for each file of a component, with the machines that have it. */
export async function filesOfStaticPods({ core }: Pick<ClusterConnection, 'core'>): Promise<readonly Consumer[]> {
  const labelSelector = 'tier=control-plane';
  const read = await readOr(core.listNamespacedPod({ namespace: 'kube-system', labelSelector }));
  if (!read.ok)
    return [
      {
        name: 'static pods of kubeadm',
        place: 'pods of kube-system',
        unread: read.why,
        concern: 'none',
        change: 'they name the files that the control plane trusts',
      },
    ];
  const machines = new Map<string, { consumer: Consumer; path: string; on: string[] }>();
  for (const { metadata, spec } of read.value?.items ?? []) {
    // The kubelet makes such a pod for a manifest on its machine. Another pod says nothing about files there.
    if (metadata?.annotations?.['kubernetes.io/config.mirror'] === undefined) continue;
    const component = metadata.labels?.['component'] ?? '';
    const words = spec?.containers.flatMap(({ command = [], args = [] }) => [...command, ...args]) ?? [];
    for (const [flag, { concern, change }] of Object.entries(flags[component] ?? {})) {
      const path = words.findLast((word) => word.startsWith(`--${flag}=`))?.slice(flag.length + 3);
      if (path === undefined) continue;
      const key = `${component} ${flag} ${path}`;
      const known = machines.get(key);
      if (known !== undefined) known.on.push(spec?.nodeName ?? '');
      else {
        const consumer: Consumer = { name: `${component} --${flag}`, place: path, concern, change };
        machines.set(key, { consumer, path, on: [spec?.nodeName ?? ''] });
      }
    }
  }
  return [...machines.values()].map(({ consumer, path, on }) => ({
    ...consumer,
    place: `file ${path} on ${on.toSorted().join(', ')}`,
  }));
}

/** What no object tells, on any cluster. */
export const filesOfNodes: readonly Consumer[] = [
  {
    name: 'kube-apiserver --kubelet-certificate-authority',
    place: 'file on each machine of an API server',
    concern: kubeletServing,
    change: changeOfKubeletAuthority,
  },
  {
    name: 'kubelet authentication.x509.clientCAFile',
    place: 'file on each node (kubeadm: /etc/kubernetes/pki/ca.crt)',
    concern: 'apiServer',
    change: 'add the new CA; no restart with Kubernetes 1.36, before it restart the kubelet',
  },
  {
    name: 'kubeconfigs',
    place: 'files of the control plane, of kubelets and of users',
    concern: 'apiServer',
    change: 'certificate-authority-data: add the new CA; restart the programs that read them',
  },
];
