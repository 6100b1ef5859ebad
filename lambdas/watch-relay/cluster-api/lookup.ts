/** What the management cluster has about the machine of one request, for attest. */
import { failure, success } from '../../../core/outcome/result.ts';
import type { Result } from '../../../core/outcome/result.ts';
import { nodeUserPrefix } from '../../../core/policy/in-tree-rules.ts';
import type { ApiAnswer, ApiProblem } from '../../../core/ports/kubernetes-api.ts';
import { mostMachines } from '../../../core/ports/signing-endpoint.ts';
import type { ClusterApiContext, MachineObject } from '../../../core/ports/signing-endpoint.ts';
import type { CertificateRequest } from '../../../core/x509/model.ts';
import type { MachineIndex } from './found-machines.ts';
import type { Mirror } from './mirror.ts';
import type { ClusterRecord } from './objects.ts';

/**
 * Finds the Machines of a request. A problem or an error means that the request is tried again. `NotRead`: the relay never answers from
 * an incomplete or old copy.
 */
export type MachineLookup = (
  request: CertificateRequest,
  signal: AbortSignal,
) => Promise<Result<ClusterApiContext, ApiProblem | { readonly why: 'NotRead'; readonly message: string }>>;

export interface LookupSources {
  readonly mirrors: Readonly<Record<'machines' | 'machinepools' | 'clusters', Pick<Mirror<unknown>, 'isCurrent'>>>;
  readonly index: MachineIndex;
  readonly cluster: () => ClusterRecord | undefined;
  /** `spec.providerID` of a Node; empty if the Node or its provider ID does not exist. */
  readonly providerIdOfNode: (nodeName: string, signal: AbortSignal) => Promise<ApiAnswer<string>>;
}

export function createLookup({ mirrors, index, cluster, providerIdOfNode }: LookupSources): MachineLookup {
  return async (request, signal) => {
    let machines: readonly MachineObject[];
    const { providerId } = request;
    if (providerId !== undefined) machines = index.byProviderId(providerId);
    else {
      const { commonName } = request.subject;
      const node = commonName.startsWith(nodeUserPrefix) ? commonName.slice(nodeUserPrefix.length) : '';
      const ofNode = node === '' ? success('') : await providerIdOfNode(node, signal);
      if (!ofNode.ok) return ofNode;
      machines = byNode(node, ofNode.value);
    }
    // After the read of the Node, so that the answer is current when it is given.
    const behind = Object.entries(mirrors).find(([, mirror]) => !mirror.isCurrent())?.[0];
    if (behind !== undefined)
      return failure({ why: 'NotRead', message: `the relay has no current copy of ${behind}` } as const);
    const found = cluster();
    if (found === undefined) return success({ machines });
    const { infrastructure: _, ...object } = found;
    return success({ machines, cluster: object });
  };

  function byNode(node: string, providerId: string): readonly MachineObject[] {
    const found = [...index.byNodeName(node), ...(providerId === '' ? [] : index.byProviderId(providerId))];
    const keys = new Map(found.map((machine) => [`${machine.kind}/${machine.namespace}/${machine.name}`, machine]));
    return [...keys.values()].slice(0, mostMachines);
  }
}
