/** How discovery can end. A refusal has a code, kubeadm's words and, where the operator can act, a hint. */
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

export interface Discovered {
  readonly ok: true;
  readonly server: string;
  /** The whole CA bundle of the API server, read over a verified connection. */
  readonly caPem: string;
  readonly pins: readonly string[];
  /** Problems that do not prevent the join, but may prevent the node from getting a certificate. */
  readonly warnings: readonly string[];
}

export interface DiscoveryFailure {
  readonly ok: false;
  readonly why: DiscoveryRefusal;
  readonly message: string;
  readonly hint?: string;
}
export type Discovery = Discovered | DiscoveryFailure;

export function refuse(why: DiscoveryRefusal, message: string, hint?: string): DiscoveryFailure {
  return { ok: false, why, message, ...(hint === undefined ? {} : { hint }) };
}
