/**
 * Names to which the API server or another part of the control plane grants rights. No signer issues one of them unless its
 * profile lists it exactly; docs/signers.md, deviations 3, 7 and 14.
 */
import { nameMatches } from './patterns.ts';
import type { AddressRange } from './patterns.ts';

/** What the operator reserves besides the built-in names; the same for each profile of a cluster. */
export interface Reserved {
  /** Patterns of core/policy/patterns.ts, for common names, organizations and DNS names of kubelets, in the form of `comparableName`. */
  readonly names: readonly string[];
  /** CIDR blocks and single addresses: no kubelet serves under them. */
  readonly addresses: readonly AddressRange[];
  /** Such as `cluster.local`; no kubelet serves under a name in it. */
  readonly clusterDomain: string;
}

/**
 * The names that installers give to parts of a control plane (kubeadm, kops, Talos, k0s, k3s and RKE2, from their sources).
 * Whether a name has rights depends on RBAC bindings and trusted CAs of the cluster, so all are reserved everywhere. In the
 * form of `comparableName`.
 */
export const controlPlaneNames: readonly string[] = [
  // Users and groups of Kubernetes itself; also the front proxy of k3s and RKE2 (system:auth-proxy).
  'system:*',
  // kubeadm binds the group kubeadm:cluster-admins to cluster-admin.
  'kubeadm:*',
  'kubernetes-admin',
  'kubernetes-super-admin',
  // Clients whose X-Remote-User headers the API server trusts (--requestheader-allowed-names): kubeadm, Talos, k0s; kops.
  'front-proxy-*',
  'aggregator',
  'kube-aggregator',
  // The API server as a client of kubelets and of etcd, and as a server: kubeadm; k0s and Talos; kops.
  'kube-apiserver',
  'kube-apiserver-*',
  'apiserver',
  'apiserver-*',
  'kubelet-api',
  'kubernetes',
  'kubernetes-master',
  'kubernetes-konnectivity',
  // Members and clients of etcd.
  'etcd',
  'etcd-*',
  'kube-etcd',
  'kube-etcd-*',
  // Bound to a role by the manifests of k3s and RKE2.
  'k3s-cloud-controller-manager',
  'rke2-cloud-controller-manager',
];

/** Whether a common name or organization is reserved. */
export function isReservedName({ names }: Pick<Reserved, 'names'>, name: string): boolean {
  const compared = comparableName(name);
  const isMatch = (pattern: string): boolean => nameMatches(pattern, compared);
  return controlPlaneNames.some(isMatch) || names.some(isMatch);
}

/**
 * Names are compared as verifiers do by RFC 5280 §7.1 (RFC 4518: compatibility forms, case and repeated blanks are ignored): a
 * proxy or a database may map `CN=Front-Proxy-Client` to a user that way. The API server compares exactly.
 */
export function comparableName(name: string): string {
  return name.normalize('NFKC').toLowerCase().replaceAll(/\s+/g, ' ').trim();
}
