/** What `import … from 'countersign/lib'` gives: the only file of lib that other projects import. docs/constructs.md describes it. */
export { SigningCluster } from './signing-cluster.ts';
export type { SigningClusterProps } from './signing-cluster.ts';
export { SigningState } from './signing-state.ts';
export type { SigningStateProps } from './signing-state.ts';
export { clusterOfFile } from './props/checked-cluster.ts';
export type { ParsedCluster } from './props/checked-cluster.ts';
export type { CaProps, CaSubject, ClusterProps, KubeadmCas, KubeadmProps } from './props/cluster-props.ts';
export type {
  KeyUsage,
  ProfileProps,
  ProfileRequester,
  ProfileSans,
  ProfileSubject,
  ProfileUsages,
} from './props/profile-props.ts';
export type {
  ClusterApiReference,
  ClusterAttestation,
  PcrPolicy,
  ProfileAttestation,
} from './props/attestation-props.ts';
export type { AwsAccount, AwsAttestation, AwsInstance } from './props/providers/aws.ts';
export type { GceAttestation, GceFederation } from './props/providers/gce.ts';
export type { GceVtpmAttestation, GoogleFederation, PinnedVm } from './props/providers/gce-vtpm.ts';
export type { TpmAttestation } from './props/providers/tpm.ts';
export type { X509Attestation, X509Rule } from './props/providers/x509.ts';
export type {
  ClusterAccess,
  ClusterAlarms,
  ClusterKeys,
  ClusterLimits,
  ClusterLogs,
  ClusterPlace,
  DomainProps,
  IamAccess,
  JwtAccess,
  ThrottleProps,
} from './props/deployment-props.ts';
