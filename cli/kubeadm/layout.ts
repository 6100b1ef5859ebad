/**
 * Where kubeadm keeps its certificates, and which static pods read them. The files are those of kubeadm 1.36 and 1.37
 * (cmd/kubeadm/app/constants/constants.go).
 */
import { join } from 'node:path';
import { kubeadmProfiles } from '../../core/kubeadm/certificates.ts';
import type { KubeadmCa, KubeadmCertificate } from '../../core/kubeadm/certificates.ts';

export interface Folders {
  /** With the kubeconfigs: /etc/kubernetes. */
  readonly kubeconfigs: string;
  /** With keys and certificates: /etc/kubernetes/pki. */
  readonly pki: string;
}

/** Without their endings. A certificate that is missing here is inside the kubeconfig of its name. */
const pkiFiles = {
  apiserver: 'apiserver',
  'apiserver-kubelet-client': 'apiserver-kubelet-client',
  'front-proxy-client': 'front-proxy-client',
  'etcd-server': 'etcd/server',
  'etcd-peer': 'etcd/peer',
  'etcd-healthcheck-client': 'etcd/healthcheck-client',
  'apiserver-etcd-client': 'apiserver-etcd-client',
} as const satisfies Partial<Record<KubeadmCertificate, string>>;

/** The files of one certificate. */
export type Files =
  | { readonly kind: 'pki'; readonly csr: string; readonly key: string; readonly certificate: string }
  | { readonly kind: 'kubeconfig'; readonly csr: string; readonly kubeconfig: string };

export function filesOf(name: KubeadmCertificate, { kubeconfigs, pki }: Folders): Files {
  if (name in pkiFiles) {
    const base = join(pki, pkiFiles[name as keyof typeof pkiFiles]);
    return { kind: 'pki', csr: `${base}.csr`, key: `${base}.key`, certificate: `${base}.crt` };
  }
  const kubeconfig = join(kubeconfigs, name);
  return { kind: 'kubeconfig', csr: `${kubeconfig}.csr`, kubeconfig };
}

const caFiles: Readonly<Record<KubeadmCa, string>> = {
  kubernetes: 'ca',
  frontProxy: 'front-proxy-ca',
  etcd: 'etcd/ca',
};

/** The certificate of the CA, and where its key would be. */
export function caFilesOf(
  name: KubeadmCertificate,
  { pki }: Folders,
): { readonly certificate: string; readonly key: string } {
  const base = join(pki, caFiles[kubeadmProfiles[name].ca]);
  return { certificate: `${base}.crt`, key: `${base}.key` };
}

/** The static pods that read these certificates only when they start, in the order of kubeadm's upgrades. */
export function podsToRestart(names: readonly KubeadmCertificate[]): readonly string[] {
  const readers: readonly (readonly [pod: string, reads: (name: KubeadmCertificate) => boolean])[] = [
    ['etcd', (name) => name === 'etcd-server' || name === 'etcd-peer'],
    ['kube-apiserver', (name) => /^(apiserver|front-proxy-client)/.test(name)],
    ['kube-controller-manager', (name) => name === 'controller-manager.conf'],
    ['kube-scheduler', (name) => name === 'scheduler.conf'],
  ];
  return readers.filter(([, reads]) => names.some(reads)).map(([pod]) => pod);
}
