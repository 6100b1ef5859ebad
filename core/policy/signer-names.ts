/** Which rules a signer follows, told by its name alone: nobody can configure a name into meaning something else. */
import type { Profile, ProfileKind } from './profile.ts';

/** As on the wire and in signer names. */
export const providerNames = ['aws', 'insecure'] as const;
export type ProviderName = (typeof providerNames)[number];

export interface SignerKind {
  readonly kind: ProfileKind;
  /** Of a signer under cluster.x-k8s.io/: whose evidence it takes, and no other. */
  readonly provider?: ProviderName;
}

const inTreeKinds: readonly ProfileKind[] = [
  'kube-apiserver-client',
  'kube-apiserver-client-kubelet',
  'kubelet-serving',
  'legacy-unknown',
];

/**
 * Cluster API's proposal, Signers: one pair for each provider. Insecure providers have no serving signer, since nothing
 * they say could tell whose an address is.
 */
const attestedSigners: ReadonlyMap<string, SignerKind> = new Map(
  providerNames.flatMap((provider) =>
    (['kube-apiserver-client-kubelet', 'kubelet-serving'] as const)
      .filter((kind) => provider !== 'insecure' || kind !== 'kubelet-serving')
      .map((kind) => [`${kind}-${provider}`, { kind, provider }] as const),
  ),
);

/**
 * Nothing for a name nobody may use: sig-auth reserves kubernetes.io/ (Kubernetes' CSR documentation), the providers have
 * the other domain.
 */
export function signerOf(signerName: string): SignerKind | undefined {
  const [domain, path = ''] = signerName.split('/');
  if (domain === 'cluster.x-k8s.io') return attestedSigners.get(path);
  if (domain !== 'kubernetes.io') return { kind: 'custom' };
  const kind = inTreeKinds.find((known) => known === path);
  return kind === undefined ? undefined : { kind };
}

export function unknownSignerMessage(signerName: string): string {
  return signerName.startsWith('cluster.x-k8s.io/')
    ? `names under cluster.x-k8s.io/ are those of attestation providers: ${[...attestedSigners.keys()].join(', ')}`
    : `names under kubernetes.io/ are reserved; the signers there are ${inTreeKinds.join(', ')}`;
}

/** Whether the in-tree signer of Kubernetes answers to this name too, so that ours speaks in its words. */
export function isInTree({ signerName }: Pick<Profile, 'signerName'>): boolean {
  return signerName.startsWith('kubernetes.io/');
}

/** The signers that say who is a node; only a machine can be attested. */
export function isNodeSigner({ kind }: Pick<Profile, 'kind'>): boolean {
  return kind === 'kube-apiserver-client-kubelet' || kind === 'kubelet-serving';
}
