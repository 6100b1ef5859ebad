/** The oracle of Machine objects: no machine is let in that had none which met the demands, at any moment that its relay can have seen. */
import type { IdentityRecord } from '../../../core/ports/attestation-store.ts';
import type { MachineObject } from '../../../core/ports/signing-endpoint.ts';
import type { GroundTruth } from '../ground-truth.ts';
import { staleMilliseconds } from '../ports/machine-objects.ts';
import type { ObjectsThen } from '../ports/machine-objects.ts';
import { clusterReference, insecureSigner } from '../scenario.ts';
import type { Bench } from './oracle.ts';

export interface ObjectOracle {
  /** A machine was let in. */
  readonly claimed: (truth: GroundTruth, record: IdentityRecord) => void;
}

export function createObjectOracle({ runtime, objects, facts, broken }: Bench): ObjectOracle {
  return {
    claimed(truth, { identity, nodeName }) {
      if (objects === undefined || truth.signerName === insecureSigner) return;
      if (facts.get(identity)?.foreign === true)
        return broken(`${truth.what}: let in, and ${identity} is a machine of another cluster`);
      // A relay looks after it has seen the request, at a state that is at most so old.
      const from = truth.createdAt - staleMilliseconds;
      const { history } = objects;
      const seen = history.filter(({ from: since }, index) => {
        const until = history[index + 1]?.from ?? Infinity;
        return until >= from && since <= runtime.timeline.now();
      });
      const providerId = identity.replace('#', ':///');
      if (!seen.some((then) => permits(then, providerId, nodeName)))
        return broken(`${truth.what}: let in, and no Machine object permitted ${identity} since it asked`);
      runtime.count('step: objects: let in');
    },
  };
}

/** Whether these objects permit that machine to be that node. */
function permits({ machines, cluster }: ObjectsThen, providerId: string, node: string): boolean {
  if (cluster === undefined || cluster.deleting || cluster.kubeletAuthentication === false) return false;
  if (cluster.authorizedAttestors?.includes('null') === false) return false;
  const own = [...machines.values()].filter((machine) => machine.providerId === providerId);
  const direct = own.filter(({ kind }) => kind === 'Machine');
  const [machine, ...others] = direct.length > 0 ? direct : own;
  return machine !== undefined && others.length === 0 && isGood(machine, node);
}

function isGood({ namespace, clusterName, deleting, bootstrapReady, nodeName }: MachineObject, node: string): boolean {
  const isOwn = namespace === clusterReference.namespace && clusterName === clusterReference.cluster;
  return isOwn && !deleting && bootstrapReady && (nodeName === undefined || nodeName === node);
}
