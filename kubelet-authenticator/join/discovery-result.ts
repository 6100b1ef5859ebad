import { failure } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';

export type DiscoveryRefusal =
  | 'NotSetUp' // the cluster has no cluster-info that anonymous users may read
  | 'TokenUnknown' // the token is of another cluster, expired, or deleted
  | 'TokenCannotSign' // the token is valid, but without the usage "signing"
  | 'TokenCannotLogIn' // the token expired meanwhile, or is without the usage "authentication"
  | 'LoginRefused' // the API server does not accept the user of the discovery file
  | 'SignatureInvalid' // the token has another secret, or the ConfigMap was changed
  | 'ClusterInfoMalformed'
  | 'CaNotPinned' // a holder of the token signed it, but it names another CA than the pinned one
  | 'ServerNotTrusted' // the pinned CA did not issue the server's certificate
  | 'ClusterInfoChanged' // the API server has another cluster-info than the one that was read first
  | 'Unreachable'; // temporary: the only refusal that another try may change

/** `message`: in kubeadm's words. `hint`: what the operator can do. */
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
