/** Encodes the context of a call of attest (docs/signing-api.md, Machine objects), within the bounds that attest decodes. */
import { mostMachines } from '../../core/ports/signing-endpoint.ts';
import type { AttestContext, ClusterObject, MachineObject } from '../../core/ports/signing-endpoint.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';

/** Longer lists of addresses are left out: they can only narrow what is allowed. */
const maxAddresses = 64;
/** Attest knows fewer attestors. Of a longer list the rest is cut off, which permits no more. */
const maxAttestors = 64;
const maxTextLength = 512;

/** Only the fields of the wire. `undefined` if the caller did not look. */
export function encodeContext({ clusterApi }: AttestContext = {}): JsonObject | undefined {
  if (clusterApi === undefined) return undefined;
  const { machines, cluster } = clusterApi;
  // Attest refuses more than one, and whether there are eight or more makes no difference.
  const only = machines.filter(({ kind }) => kind === 'Machine').length === 1;
  const encoded = machines.slice(0, mostMachines).map((machine) => encodeMachine(machine, only));
  return { clusterApi: { machines: encoded, ...(cluster === undefined ? {} : { cluster: encodeCluster(cluster) }) } };
}

function encodeMachine(machine: MachineObject, isOnly: boolean): JsonObject {
  const { kind, namespace, name, clusterName, providerId, nodeName, bootstrapReady, deleting, addresses } = machine;
  const sendsAddresses = isOnly && addresses !== undefined && addresses.length <= maxAddresses && addresses.every(fits);
  return {
    kind,
    namespace,
    name,
    clusterName,
    bootstrapReady,
    deleting,
    // No machine has a longer one: cut off, it fits none.
    providerId: providerId.slice(0, maxTextLength),
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(sendsAddresses ? { addresses } : {}),
  };
}

function encodeCluster({ deleting, kubeletAuthentication, authorizedAttestors }: ClusterObject): JsonObject {
  return {
    deleting,
    ...(kubeletAuthentication === undefined ? {} : { kubeletAuthentication }),
    ...(authorizedAttestors === undefined
      ? {}
      : { authorizedAttestors: authorizedAttestors.filter(fits).slice(0, maxAttestors) }),
  };
}

function fits(text: string): boolean {
  return text.length <= maxTextLength;
}
