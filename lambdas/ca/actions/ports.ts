/** What the actions of the ca function need. */
import type { CrlStore, RevocationStore } from '../../../core/ports/revocations.ts';
import type { KubeadmConfiguration } from '../../../core/configuration/model/cluster.ts';
import type { CertificateLedger } from '../../../core/ports/certificate-ledger.ts';
import type { LockReader } from '../../../core/ports/locks.ts';
import type { SignatureLog } from '../../../core/ports/signature-log.ts';
import type { CaStore } from '../../../core/ca/authority.ts';
import type { CreationPorts } from '../../../core/ca/create-authority.ts';
import type { ClusterConfiguration } from '../../../core/configuration/model/cluster.ts';

export interface CaPorts extends CreationPorts {
  readonly cluster: string;
  /** Which signer uses which CA. */
  readonly profiles: ClusterConfiguration['profiles'];
  readonly store: CaStore;
  readonly revocations: RevocationStore;
  readonly crls: CrlStore;
  /** Present if operators may have certificates of kubeadm's control plane signed. */
  readonly kubeadm?: {
    readonly settings: KubeadmConfiguration;
    readonly ledger: CertificateLedger;
    readonly locks: LockReader;
  };
  /** The invocation, for the ledger. Absent outside Lambda. */
  readonly lambdaRequestId?: string | undefined;
  readonly signatures: SignatureLog;
}
