/**
 * Does a Machine or MachinePool of Cluster API stand behind the machine of this request (`attestation.machines: clusterApi`)? The
 * objects come from the relay, which is not trusted, so they can only restrict: the evidence, or the record of a registered
 * machine, must name the machine too. Cluster API's kubelet authentication proposal, Node Attestation.
 */
import type { ClusterReference } from '../../configuration/model/attestation.ts';
import { violation } from '../../outcome/outcome.ts';
import type { RefusalCode, Violations } from '../../outcome/outcome.ts';
import { printable, quoted, quotedList } from '../../outcome/printable-text.ts';
import type { AttestContext, ClusterObject, MachineObject } from '../../ports/signing-endpoint.ts';

/** The part of an AttestQuestion that the objects are compared with. */
interface ObjectsQuestion {
  readonly settings: { readonly clusterApi?: ClusterReference };
  readonly context: AttestContext;
  readonly request: { readonly providerId?: string };
  readonly nodeName: string;
}

/** A `Refused` of core/attestation/declined.ts. */
interface Refused {
  readonly kind: 'refused';
  readonly violations: Violations;
  readonly transient?: true;
}

/**
 * The checks that need no platform, made before it is asked: a node whose Machine is not listed yet asks again every minute, and
 * must not use up EC2's quota. `provider`: of the evidence, or of the record.
 */
export function checkObjects(question: ObjectsQuestion, provider: string): Refused | undefined {
  const { settings, context } = question;
  if (settings.clusterApi === undefined) return undefined;
  if (context.clusterApi === undefined) return refuse('MachineNotFound', notLookedUp);
  const { machines, cluster } = context.clusterApi;
  return (
    checkCluster(cluster, settings.clusterApi, provider) ??
    checkMachines(candidates(machines), settings.clusterApi, question)
  );
}

/** The object behind this request; undefined if `machines` is not configured. `checkObjects` has found exactly one. */
export function objectOf({
  settings,
  context,
}: Pick<ObjectsQuestion, 'settings' | 'context'>): MachineObject | undefined {
  return settings.clusterApi === undefined ? undefined : candidates(context.clusterApi?.machines ?? [])[0];
}

/** Names the object in the approved request, for operators and auditors. */
export function objectAnnotations(
  question: Pick<ObjectsQuestion, 'settings' | 'context'>,
): Readonly<Record<string, string>> {
  const object = objectOf(question);
  if (object === undefined) return {};
  return { 'countersign.dev/machine': `${object.kind} ${printable(object.namespace)}/${printable(object.name)}` };
}

/** A member of a MachinePool that has a Machine of its own (MachinePool Machines) counts as this Machine. */
function candidates(objects: readonly MachineObject[]): readonly MachineObject[] {
  const machines = objects.filter(({ kind }) => kind === 'Machine');
  return machines.length > 0 ? machines : objects;
}

function checkCluster(
  cluster: ClusterObject | undefined,
  wanted: ClusterReference,
  provider: string,
): Refused | undefined {
  const object = `Cluster ${nameOf(wanted.namespace, wanted.cluster)}`;
  if (cluster === undefined)
    return notYet(
      'MachineNotFound',
      `${object} of attestation.clusterApi does not exist in the management cluster: create it, or correct countersign.yaml`,
    );
  const { deleting, kubeletAuthentication, authorizedAttestors } = cluster;
  if (deleting) return refuse('MachineDeleting', `${object} is being deleted: its machines get no certificates`);
  if (kubeletAuthentication === false)
    return refuse('AttestorNotAuthorized', `kubeletAuthentication of ${object} is false: set it to true, or remove it`);
  if (authorizedAttestors !== undefined && !authorizedAttestors.includes(provider))
    return refuse(
      'AttestorNotAuthorized',
      `authorizedAttestors of ${object} are ${quotedList(authorizedAttestors)}, and this machine is attested by ${quoted(provider)}: add it there`,
    );
  return undefined;
}

function checkMachines(
  objects: readonly MachineObject[],
  wanted: ClusterReference,
  { request, nodeName }: ObjectsQuestion,
): Refused | undefined {
  const [machine, ...others] = objects;
  if (machine === undefined) {
    const named =
      request.providerId === undefined ? `node ${quoted(nodeName)}` : `provider ID ${quoted(request.providerId)}`;
    return notYet('MachineNotFound', `no Machine and no MachinePool of Cluster API has ${named}: wait, or create one`);
  }
  const { kind, namespace, name, clusterName, deleting, bootstrapReady } = machine;
  if (others.length > 0) {
    const names = quotedList(objects.map((each) => `${each.namespace}/${each.name}`));
    return refuse(
      'MachineAmbiguous',
      `these objects of kind ${kind} have the same provider ID: ${names}; correct those that are not about this machine`,
    );
  }
  const object = `${kind} ${nameOf(namespace, name)}`;
  if (namespace !== wanted.namespace || clusterName !== wanted.cluster)
    return refuse(
      'MachineOfOtherCluster',
      `${object} belongs to Cluster ${nameOf(namespace, clusterName)}, and this endpoint is for Cluster ${nameOf(wanted.namespace, wanted.cluster)}`,
    );
  if (deleting) return refuse('MachineDeleting', `${object} is being deleted: its machine gets no certificates`);
  if (!bootstrapReady)
    return notYet('MachineNotReady', `${object} has no bootstrap data yet (condition BootstrapConfigReady): wait`);
  if (machine.nodeName !== undefined && machine.nodeName !== nodeName)
    return refuse(
      'MachineMismatch',
      `${object} has nodeRef ${quoted(machine.nodeName)}, and the request is for node ${quoted(nodeName)}`,
    );
  return undefined;
}

function nameOf(namespace: string, name: string): string {
  return quoted(`${namespace}/${name}`);
}

function refuse(code: RefusalCode, message: string): Refused {
  return { kind: 'refused', violations: [violation(code, message)] };
}

/** The management cluster usually mends it within minutes, and the node's next request succeeds. */
function notYet(code: RefusalCode, message: string): Refused {
  return { ...refuse(code, message), transient: true };
}

const notLookedUp =
  'the caller looked up no Machine object, and attestation.machines is clusterApi: only a watch-relay that reads Cluster API can have this request approved, while it is pending';
