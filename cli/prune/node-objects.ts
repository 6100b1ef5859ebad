/** The Node objects of machines that no longer exist: found by provider ID, so that the Node of a successor is another one. */
import type { V1Node } from '@kubernetes/client-node';
import type { ClusterClients } from '../../adapters/kubernetes/clients.ts';
import type { IdentityRecord } from '../../core/ports/attestation-store.ts';
import { allPages, failIfRefused, unlessRefused } from '../cluster/object-answers.ts';

export interface NodeObject {
  readonly name: string;
  readonly uid: string;
}

/** By identity. A Node without a provider ID, or with another one, belongs to no machine here. */
export async function nodeObjectsOf(
  records: readonly IdentityRecord[],
  { core }: Pick<ClusterClients, 'core'>,
): Promise<ReadonlyMap<string, NodeObject>> {
  const hints = { Forbidden: 'it needs list nodes; without --kubeconfig and --context Node objects are left alone' };
  const nodes = await allPages<V1Node>((page) => core.listNode({ ...page }), 'list nodes', hints);
  const found = new Map<string, NodeObject>();
  for (const { identity, nodeName, providerId } of records) {
    const node = nodes.find(({ metadata, spec }) => metadata?.name === nodeName && spec?.providerID === providerId);
    const { name, uid } = node?.metadata ?? {};
    if (name !== undefined && uid !== undefined) found.set(identity, { name, uid });
  }
  return found;
}

/** The UID is a precondition: a Node of the same name that was registered meanwhile stays. `false`: it had gone, or was another one. */
export async function deleteNodeObject(
  { name, uid }: NodeObject,
  { core }: Pick<ClusterClients, 'core'>,
): Promise<boolean> {
  const deleted = unlessRefused(core.deleteNode({ name, body: { preconditions: { uid } } }), 'NotFound', 'Conflict');
  const hints = { Forbidden: 'it needs delete nodes' };
  return (await failIfRefused(deleted, `delete node ${name}`, hints)) !== undefined;
}
