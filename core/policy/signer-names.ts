/** Which rules apply to a signer. Only its name decides; the configuration cannot change this. */
import type { Profile, ProfileKind } from './profile.ts';

/** The names in evidence and in signer names. */
export const providerNames = ['aws', 'aws-nitrotpm', 'tpm', 'x509', 'gce', 'gce-vtpm', 'insecure'] as const;
export type ProviderName = (typeof providerNames)[number];

export interface SignerKind {
  readonly kind: ProfileKind;
  /** Only for a signer under cluster.x-k8s.io/: the one provider whose evidence it accepts. */
  readonly provider?: ProviderName;
}

const inTreeKinds: readonly ProfileKind[] = [
  'kube-apiserver-client',
  'kube-apiserver-client-kubelet',
  'kubelet-serving',
  'legacy-unknown',
];

/**
 * Cluster API's proposal, Signers: one pair for each provider. Insecure providers have no serving signer, because they cannot
 * show to which machine an address belongs.
 */
const attestedSigners: ReadonlyMap<string, SignerKind> = new Map(
  providerNames.flatMap((provider) =>
    (['kube-apiserver-client-kubelet', 'kubelet-serving'] as const)
      .filter((kind) => provider !== 'insecure' || kind !== 'kubelet-serving')
      .map((kind) => [`${kind}-${provider}`, { kind, provider }] as const),
  ),
);

/** Of the records of `countersign kubeadm`, in the ledger. No profile can have it. */
export const kubeadmSignerName = 'countersign.dev/kubeadm';

/**
 * `undefined` for a name that must not be used: sig-auth reserves kubernetes.io/ (Kubernetes' CSR documentation), and
 * cluster.x-k8s.io/ belongs to the attestation providers.
 */
export function signerOf(signerName: string): SignerKind | undefined {
  const [domain, path = ''] = signerName.split('/');
  if (domain === 'cluster.x-k8s.io') return attestedSigners.get(path);
  if (signerName === kubeadmSignerName) return undefined;
  if (domain !== 'kubernetes.io') return { kind: 'custom' };
  const kind = inTreeKinds.find((known) => known === path);
  return kind === undefined ? undefined : { kind };
}

export function unknownSignerMessage(signerName: string): string {
  if (signerName === kubeadmSignerName)
    return 'is the name of what countersign kubeadm signs; the key kubeadm configures it';
  return signerName.startsWith('cluster.x-k8s.io/')
    ? `names under cluster.x-k8s.io/ are those of attestation providers: ${[...attestedSigners.keys()].join(', ')}`
    : `names under kubernetes.io/ are reserved; the signers there are ${inTreeKinds.join(', ')}`;
}

/** Whether the in-tree signer of Kubernetes has this name, so that its texts are used. */
export function isInTree({ signerName }: Pick<Profile, 'signerName'>): boolean {
  return signerName.startsWith('kubernetes.io/');
}

/** Whether certificates of the signer can be client certificates, which log in where their CA is trusted for clients. */
export function permitsClientCertificates({ kind, custom }: Pick<Profile, 'kind' | 'custom'>): boolean {
  switch (kind) {
    case 'kube-apiserver-client':
    case 'kube-apiserver-client-kubelet':
    case 'legacy-unknown':
      return true;
    case 'kubelet-serving':
      return false;
    case 'custom':
      return custom?.usages.allowed.some((usage) => usage === 'client auth' || usage === 'any') === true;
  }
}

/** The signers whose certificates identify nodes; only these can be attested. */
export function isNodeSigner({ kind }: Pick<Profile, 'kind'>): boolean {
  return kind === 'kube-apiserver-client-kubelet' || kind === 'kubelet-serving';
}
