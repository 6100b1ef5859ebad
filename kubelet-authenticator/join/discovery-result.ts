import { failure } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';

export type DiscoveryRefusal =
  | 'NotSetUp' // the cluster has no cluster-info that anonymous users may read
  | 'TokenUnknown' // of another cluster, expired, or deleted
  | 'TokenCannotSign' // valid, but without the usage "signing"
  | 'TokenCannotLogIn' // expired meanwhile, or without the usage "authentication"
  | 'SignatureInvalid' // another token secret, or a changed ConfigMap
  | 'ClusterInfoMalformed'
  | 'CaNotPinned' // signed by a holder of the token, but with another CA than the pinned one
  | 'ServerNotTrusted' // the server has no certificate of the pinned CA
  | 'ClusterInfoChanged' // the API server has another cluster-info than the one that was read first
  | 'Unreachable'; // temporary: the only refusal that another try may change

/** `message`: kubeadm's words. `hint`: what the operator can do. */
export type Discovery<T> = Result<
  T,
  { readonly why: DiscoveryRefusal; readonly message: string; readonly hint: string | undefined }
>;

export interface DiscoveredCluster {
  readonly server: string;
  /** The whole CA bundle of the API server, read over a verified connection. */
  readonly caPem: string;
  readonly pins: readonly string[];
  /** Problems that do not prevent the join, but may prevent the node from getting a certificate. */
  readonly warnings: readonly string[];
}

export function refuse(why: DiscoveryRefusal, message: string, hint?: string) {
  return failure({ why, message, hint });
}
