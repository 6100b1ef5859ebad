/** The requests that `kubeadm certs generate-csr` writes, made by the tests' own writer. A suite compares them with the real kubeadm's. */
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../../core/configuration/model/cluster.ts';
import type { KubeadmCertificate } from '../../../../core/kubeadm/certificates.ts';
import type { RequestSpec } from '../../../harness/x509/requests.ts';

export const kubeadmKeys = `
    kubeadm:
      cas: {kubernetes: kubernetes, frontProxy: front-proxy, etcd: etcd}
      apiServerNames: [10.96.0.1, k8s.example.com, '*.api.example.com']
      nodes: {cp-1: [10.0.0.11, cp-1.example.com], cp-2: [10.0.0.12]}`;

export const kubeadmCas = `{kubernetes: {subject: {commonName: kubernetes}},
      front-proxy: {subject: {commonName: front-proxy-ca}}, etcd: {subject: {commonName: etcd-ca}}}`;

export function kubeadmFile(keys: string = kubeadmKeys): string {
  return `version: 1
clusters:
  prod:
    cas: ${kubeadmCas}
    profiles: {kubernetes.io/kube-apiserver-client-kubelet: {ca: kubernetes}}${keys}
`;
}

export function kubeadmCluster(keys?: string): ClusterConfiguration {
  const parsed = parseConfiguration(kubeadmFile(keys), 'countersign.yaml');
  if (!parsed.ok) throw new Error(parsed.problem.map(({ path, message }) => `${path}: ${message}`).join('\n'));
  return parsed.value.configuration.clusters.get('prod')!;
}

const etcdMember: RequestSpec = {
  subject: { CN: 'cp-1' },
  sans: { dns: ['cp-1', 'localhost'], ip: ['10.0.0.11', '127.0.0.1', '::1'] },
};

/** By certificate, for node cp-1. */
export const kubeadmRequests: Readonly<Record<KubeadmCertificate, RequestSpec>> = {
  apiserver: {
    subject: { CN: 'kube-apiserver' },
    sans: {
      dns: [
        'cp-1',
        'k8s.example.com',
        'kubernetes',
        'kubernetes.default',
        'kubernetes.default.svc',
        'kubernetes.default.svc.cluster.local',
      ],
      ip: ['10.96.0.1', '10.0.0.11'],
    },
  },
  'apiserver-kubelet-client': { subject: { CN: 'kube-apiserver-kubelet-client' } },
  'front-proxy-client': { subject: { CN: 'front-proxy-client' } },
  'etcd-server': etcdMember,
  'etcd-peer': etcdMember,
  'etcd-healthcheck-client': { subject: { CN: 'kube-etcd-healthcheck-client' } },
  'apiserver-etcd-client': { subject: { CN: 'kube-apiserver-etcd-client' } },
  'admin.conf': { subject: { O: 'kubeadm:cluster-admins', CN: 'kubernetes-admin' } },
  'super-admin.conf': { subject: { O: 'system:masters', CN: 'kubernetes-super-admin' } },
  'controller-manager.conf': { subject: { CN: 'system:kube-controller-manager' } },
  'scheduler.conf': { subject: { CN: 'system:kube-scheduler' } },
  'kubelet.conf': { subject: { O: 'system:nodes', CN: 'system:node:cp-1' } },
};
