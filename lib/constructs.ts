/** What `import … from 'countersign/lib'` gives: the only file of lib that other projects import. docs/constructs.md describes it. */
export { SigningCluster } from './signing-cluster.ts';
export type { SigningClusterProps } from './signing-cluster.ts';
export { SigningState } from './signing-state.ts';
export type { SigningStateProps } from './signing-state.ts';
export { clusterOfFile } from './props/checked-cluster.ts';
export type { ParsedCluster } from './props/checked-cluster.ts';
export type { CaProps, CaSubject, ClusterProps } from './props/cluster-props.ts';
export type {
  KeyUsage,
  ProfileAttestation,
  ProfileProps,
  ProfileRequester,
  ProfileSans,
  ProfileSubject,
  ProfileUsages,
} from './props/profile-props.ts';
export type { AwsAccount, AwsAttestation, AwsInstance, ClusterAttestation } from './props/attestation-props.ts';
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
