/** What the actions of the ca function need. */
import type { CrlStore, RevocationStore } from '../../../core/ports/revocations.ts';
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
  /** The invocation, for the ledger. Absent outside Lambda. */
  readonly lambdaRequestId?: string | undefined;
  readonly signatures: SignatureLog;
}
