/**
 * The certificates of kubeadm's control plane, each with kubeadm's own profile. The tables are those of kubeadm 1.36 and 1.37:
 * cmd/kubeadm/app/phases/certs/certlist.go (GetDefaultCertList), app/phases/kubeconfig/kubeconfig.go (getKubeConfigSpecsBase) and
 * app/util/pkiutil/pki_helpers.go (GetAPIServerAltNames, getAltNames, NewSignedCert).
 */
import type { KubeadmConfiguration } from '../configuration/model/cluster.ts';
import type { Usage } from '../x509/key-usages.ts';

export type KubeadmCa = keyof KubeadmConfiguration['cas'];

export interface KubeadmProfile {
  readonly ca: KubeadmCa;
  /** Exactly; with `ofNode`, what stands before the name of the node. */
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly usages: readonly Usage[];
  /** `subject`: the common name ends with the name of a node. `names`: a DNS name is that of a node. */
  readonly ofNode?: 'subject' | 'names';
  /** Whose subjectAltNames it may have; without it none. */
  readonly serves?: 'apiServer' | 'etcd';
  /** Only if the operator says so once more: members of its group bypass all authorization. */
  readonly isSuperAdmin?: true;
}

const signs = ['digital signature', 'key encipherment'] as const;
const client = [...signs, 'client auth'] as const;
/** etcd asks for client auth in the certificates of its servers too. */
const peer = [...signs, 'server auth', 'client auth'] as const;

const kubeconfig = (commonName: string, ...organizations: string[]): KubeadmProfile => ({
  ca: 'kubernetes',
  commonName,
  organizations,
  usages: client,
});
const clientOf = (ca: KubeadmCa, commonName: string): KubeadmProfile => ({
  ca,
  commonName,
  organizations: [],
  usages: client,
});
const etcdMember = {
  ca: 'etcd',
  commonName: '',
  organizations: [],
  usages: peer,
  ofNode: 'subject',
  serves: 'etcd',
} as const satisfies KubeadmProfile;

/** By kubeadm's names (`kubeadm certs renew <name>`), and kubelet.conf, which the kubelet renews itself. */
export const kubeadmProfiles = {
  apiserver: {
    ca: 'kubernetes',
    commonName: 'kube-apiserver',
    organizations: [],
    usages: [...signs, 'server auth'],
    ofNode: 'names',
    serves: 'apiServer',
  },
  'apiserver-kubelet-client': clientOf('kubernetes', 'kube-apiserver-kubelet-client'),
  'front-proxy-client': clientOf('frontProxy', 'front-proxy-client'),
  'etcd-server': etcdMember,
  'etcd-peer': etcdMember,
  'etcd-healthcheck-client': clientOf('etcd', 'kube-etcd-healthcheck-client'),
  'apiserver-etcd-client': clientOf('etcd', 'kube-apiserver-etcd-client'),
  'admin.conf': kubeconfig('kubernetes-admin', 'kubeadm:cluster-admins'),
  'super-admin.conf': { ...kubeconfig('kubernetes-super-admin', 'system:masters'), isSuperAdmin: true },
  'controller-manager.conf': kubeconfig('system:kube-controller-manager'),
  'scheduler.conf': kubeconfig('system:kube-scheduler'),
  'kubelet.conf': { ...kubeconfig('system:node:', 'system:nodes'), ofNode: 'subject' },
} as const satisfies Readonly<Record<string, KubeadmProfile>>;

export type KubeadmCertificate = keyof typeof kubeadmProfiles;

export const kubeadmCertificates = Object.keys(kubeadmProfiles) as readonly KubeadmCertificate[];

export function isKubeadmCertificate(name: unknown): name is KubeadmCertificate {
  return typeof name === 'string' && Object.hasOwn(kubeadmProfiles, name);
}

/** What kubeadm gives each API server, beside the names of the configuration and of the node. */
export function apiServerNames(clusterDomain: string): readonly string[] {
  return ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', `kubernetes.default.svc.${clusterDomain}`];
}

/** What kubeadm gives each member of etcd, beside the names of the node. */
export const etcdNames: readonly string[] = ['localhost', '127.0.0.1', '::1'];
