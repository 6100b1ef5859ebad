/**
 * Lifetime of tokens for Machines and MachinePools (Cluster API's kubelet authentication proposal, "Changes to token
 * rotation"). With attestation a token may live longer, since the token alone gives no certificate:
 *
 *   Machine       extended; deleted when its node is Ready and has a provider ID, or when the Machine is deleted
 *   MachinePool   extended; deleted when the pool is deleted
 *
 * A token whose owner cannot be looked up is left as it is. A token is deleted for a missing owner only if the owner of at
 * least one other token exists. Otherwise the command may be looking at the wrong cluster.
 */
import type { V1Node, V1Secret } from '@kubernetes/client-node';
import type { ClusterClients } from '../../adapters/kubernetes/clients.ts';
import { ownerLabel, rfc3339, tokenOfSecret, tokenSecretType } from '../../core/kubernetes/bootstrap-token.ts';
import type { TokenOwner, TokenRecord } from '../../core/kubernetes/bootstrap-token.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import { allPages, failIfRefused, ifFound, unlessRefused } from './object-answers.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

interface TokenFate {
  /** `leave`: whether the owner exists is unknown. */
  readonly fate: 'extend' | 'delete' | 'leave';
  readonly why: string;
}

/** The fields of a Machine or a MachinePool that matter here. */
interface OwnerObject {
  readonly metadata?: { readonly deletionTimestamp?: string };
  readonly spec?: { readonly providerID?: string };
  readonly status?: { readonly nodeRef?: { readonly name?: string } };
}

/** The owner of a token and its Node. `undefined`: the object does not exist. */
export interface OwnerFacts {
  readonly owner: OwnerObject | undefined;
  /** The Node its nodeRef names; only for Machines. */
  readonly node: Pick<V1Node, 'status'> | undefined;
}

export function tokenFate({ kind }: TokenOwner, { owner, node }: OwnerFacts): TokenFate {
  if (owner === undefined) return { fate: 'delete', why: `the ${kind} is gone` };
  if (owner.metadata?.deletionTimestamp) return { fate: 'delete', why: `the ${kind} is being deleted` };
  if (kind === 'pool') return { fate: 'extend', why: 'the pool exists' };
  if (!owner.status?.nodeRef?.name) return { fate: 'extend', why: 'the machine has no node yet' };
  // Only the provider ID shows later which machine the node is.
  if (!owner.spec?.providerID) return { fate: 'extend', why: 'the machine has no provider ID yet' };
  const ready = node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
  return ready
    ? { fate: 'delete', why: 'the machine’s node is Ready' }
    : { fate: 'extend', why: 'the machine’s node is not Ready yet' };
}

interface Reconciled {
  readonly id: string;
  readonly for: string;
  /** `failed`: the lookup of the owner or the change of the token failed; the token is unchanged. */
  readonly done: 'extended' | 'deleted' | 'left' | 'failed';
  readonly why: string;
  readonly expires?: string;
}

interface Reconciliation {
  readonly tokens: readonly Reconciled[];
  /** Exit code of the first token that failed; `notFound` if no Machine and no MachinePool of any token exists. */
  readonly exit: ExitCode;
}

interface ReconcileOptions {
  readonly ttlSeconds: number;
  readonly dryRun: boolean;
  readonly now: Instant;
}

const namespace = 'kube-system';
const group = 'cluster.x-k8s.io';
const resources = { machine: 'machines', pool: 'machinepools' } as const;

/** A token, and the result of looking up its owner. */
interface TokenWithOwner {
  readonly secret: V1Secret;
  readonly record: TokenRecord & { readonly owner: TokenOwner };
  /** Undefined: the API does not serve the owner's resource. */
  readonly facts: OwnerFacts | CommandFailure | undefined;
}

/** `machines`: the cluster in which Cluster API runs, often the same. If one token fails, the others are still reconciled. */
export async function reconcileTokens(
  cluster: ClusterClients,
  machines: ClusterClients,
  options: ReconcileOptions,
): Promise<Reconciliation> {
  const query = { labelSelector: ownerLabel, fieldSelector: `type=${tokenSecretType}` };
  const secrets = await allPages(
    (page) => cluster.core.listNamespacedSecret({ namespace, ...query, ...page }),
    'bootstrap tokens',
  );
  if (secrets.length === 0) return { tokens: [], exit: exitCodes.ok };
  const served = await clusterApi(machines);

  // All owners are looked up before the first deletion: if none exists, this is probably the wrong cluster.
  const tokensWithOwner: TokenWithOwner[] = [];
  for (const secret of secrets) {
    const record = tokenOfSecret(secret);
    const owner = record.ok ? record.value.owner : undefined;
    if (!record.ok || owner === undefined) continue;
    // A 404 means "deleted" only if the API serves the resource: MachinePools may be switched off.
    const facts =
      served?.resources.has(resources[owner.kind]) === true
        ? await orFailure(() => factsOf(owner, cluster, machines, served.version))
        : undefined;
    tokensWithOwner.push({ secret, record: { ...record.value, owner }, facts });
  }
  const owners = tokensWithOwner.flatMap(({ facts }) =>
    facts === undefined || facts instanceof CommandFailure ? [] : [facts.owner],
  );
  const noneExists = owners.length > 0 && owners.every((owner) => owner === undefined);

  const tokens: Reconciled[] = [];
  let exit: ExitCode = noneExists ? exitCodes.notFound : exitCodes.ok;
  for (const { secret, record, facts } of tokensWithOwner) {
    const { token, owner } = record;
    const named = { id: token.id, for: `${owner.kind} ${printable(owner.namespace)}/${printable(owner.name)}` };
    const done =
      facts instanceof CommandFailure
        ? facts
        : await orFailure(() => applyFate(secret, record, fateOf(owner, facts, noneExists), cluster, options));
    if (done instanceof CommandFailure) {
      tokens.push({ ...named, done: 'failed', why: done.message });
      if (exit === exitCodes.ok) exit = done.code;
    } else tokens.push({ ...named, ...done });
  }
  return { tokens, exit };
}

/** Catches failures that concern only one token: no answer, or a missing right. */
async function orFailure<T>(work: () => Promise<T>): Promise<T | CommandFailure> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CommandFailure) return error;
    if (error instanceof TypeError || error instanceof RangeError) throw error;
    return new CommandFailure(exitCodes.temporary, errorMessage(error));
  }
}

async function applyFate(
  secret: V1Secret,
  { expires }: TokenRecord,
  { fate, why }: TokenFate,
  { core }: ClusterClients,
  { ttlSeconds, dryRun, now }: ReconcileOptions,
): Promise<Omit<Reconciled, 'id' | 'for'>> {
  const { name = '', uid = '', resourceVersion = '' } = secret.metadata ?? {};
  if (fate === 'delete') {
    // Deletes only the Secret that was read: another client may have created the token again for another Machine.
    const body = { preconditions: { uid, resourceVersion } };
    const deleted = dryRun || (await unlessChanged(core.deleteNamespacedSecret({ namespace, name, body }), name));
    return { done: deleted ? 'deleted' : 'left', why: deleted ? why : 'it changed meanwhile' };
  }
  const remaining = expires === undefined ? Number.POSITIVE_INFINITY : expires - now;
  // A token is extended after a quarter of its lifetime, so that one failed run does not let it expire.
  if (fate === 'leave' || remaining > ttlSeconds * 750)
    return { done: 'left', why, ...(expires === undefined ? {} : { expires: rfc3339(expires) }) };
  const until = rfc3339(now + ttlSeconds * 1_000);
  secret.data = { ...secret.data, expiration: Buffer.from(until).toString('base64') };
  const stored = dryRun || (await unlessChanged(core.replaceNamespacedSecret({ namespace, name, body: secret }), name));
  return { done: stored ? 'extended' : 'left', why: stored ? why : 'it changed meanwhile', expires: until };
}

function fateOf(owner: TokenOwner, facts: OwnerFacts | undefined, noneExists: boolean): TokenFate {
  if (facts === undefined)
    return { fate: 'leave', why: `the cluster does not serve ${resources[owner.kind]} of cluster.x-k8s.io` };
  return noneExists ? noOwnerExists : tokenFate(owner, facts);
}

/** The reason may also be that the cluster's last Machine was deleted; then its token expires. */
const noOwnerExists: TokenFate = {
  fate: 'leave',
  why: 'no Machine and no MachinePool of any token exists: is it the right management cluster?',
};

/** Whether the write took place. If another client changed the Secret first, the next run sees that change. */
async function unlessChanged(write: Promise<object>, name: string): Promise<boolean> {
  return (await failIfRefused(unlessRefused(write, 'Conflict', 'NotFound'), name)) !== undefined;
}

/** The version of Cluster API that the cluster serves, and its resources. */
async function clusterApi({ apis, custom }: ClusterClients) {
  const { groups } = await failIfRefused(apis.getAPIVersions(), 'the API groups');
  const version = groups.find(({ name }) => name === group)?.preferredVersion?.version;
  if (version === undefined) return undefined;
  const found = await ifFound(custom.getAPIResources({ group, version }), `what ${group} has`);
  return { version, resources: new Set((found?.resources ?? []).map(({ name }) => name)) };
}

async function factsOf(
  { kind, ...object }: TokenOwner,
  { core }: ClusterClients,
  { custom }: ClusterClients,
  version: string,
): Promise<OwnerFacts> {
  // Annotations may hold any text: `..` would change the URL to that of another object.
  const found = custom.getNamespacedCustomObject({
    group,
    version,
    namespace: segment(object.namespace),
    plural: resources[kind],
    name: segment(object.name),
  }) as Promise<OwnerObject>;
  const owner = await ifFound(found, `${kind} ${printable(object.namespace)}/${printable(object.name)}`);
  const node = owner?.status?.nodeRef?.name;
  if (kind === 'pool' || !node) return { owner, node: undefined };
  return { owner, node: await ifFound(core.readNode({ name: segment(node) }), `node ${node}`) };
}

function segment(name: string): string {
  if (name === '.' || name === '..')
    throw new CommandFailure(exitCodes.refused, `${name} is not the name of an object`);
  return name;
}

export function reconciledText({ tokens }: Reconciliation): string {
  if (tokens.length === 0) return 'no token is for a Machine or a MachinePool\n';
  return tokens
    .map(({ id, for: owner, done: what, why, expires }) => {
      const until = expires === undefined || what === 'deleted' ? '' : ` until ${expires}`;
      return `${id} (${owner}): ${what}${until}: ${why}\n`;
    })
    .join('');
}

/** Seconds of a Go duration in whole seconds: `24h0m0s`, `90m`, `0`. */
export function goSeconds(text: string): number | undefined {
  const [whole, hours = 0, minutes = 0, seconds = 0] =
    /^(?=.)(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$/.exec(text === '0' ? '0s' : text) ?? [];
  return whole === undefined ? undefined : Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds);
}

/** A token with a shorter lifetime would expire before the next run. */
export const shortestTtlSeconds = 300;
