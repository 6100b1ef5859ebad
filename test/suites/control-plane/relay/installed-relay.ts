import type { ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import type { RelayIdentity } from '../../../harness/stack/stack.ts';

/** A control plane with the manifests of the relay. The suites of this folder that need no more share one. */
export interface InstalledRelay {
  readonly plane: ControlPlane;
  readonly identity: RelayIdentity;
}
