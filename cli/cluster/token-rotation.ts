/**
 * How long a token made for a Machine or a MachinePool lives (Cluster API's kubelet authentication proposal, "Changes
 * to token rotation"). Where nodes must prove themselves a token may live longer than where it alone makes a node:
 *
 *   Machine       extended until its node is Ready and has a provider ID; then, or when the Machine goes, deleted
 *   MachinePool   extended for as long as the pool is there; then deleted
 *
 * What cannot be found out changes nothing: a token is deleted only when the API says so in so many words, and says of at least one
 * other token that its Machine or MachinePool is there. Otherwise the wrong cluster may have been asked.
 */
import type { ObjectApi } from '../../adapters/kubernetes/objects.ts';
import { ownerLabel, rfc3339, tokenOfSecret, tokenSecretType } from '../../core/kubernetes/bootstrap-token.ts';
import type { TokenOwner, TokenRecord } from '../../core/kubernetes/bootstrap-token.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import { expected, ifFound, listOf, objectOf, textOf } from './object-answers.ts';
import type { Cluster } from './object-answers.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export type TokenFate =
  | { readonly fate: 'extend'; readonly why: string }
  | { readonly fate: 'delete'; readonly why: string }
  /** Nothing is known, or nothing is due. */
  | { readonly fate: 'leave'; readonly why: string };

/** What is known of whom a token is for. `undefined`: it is not there. */
export interface OwnerFacts {
  readonly owner: JsonObject | undefined;
  /** The Node its nodeRef names; only for Machines. */
  readonly node: JsonObject | undefined;
}

/** The proposal's rules, and nothing else. */
export function tokenFate({ kind }: TokenOwner, { owner, node }: OwnerFacts): TokenFate {
  if (owner === undefined) return { fate: 'delete', why: `the ${kind} is gone` };
  if (textOf(objectOf(owner['metadata'])['deletionTimestamp']) !== '')
    return { fate: 'delete', why: `the ${kind} is being deleted` };
  if (kind === 'pool') return { fate: 'extend', why: 'the pool is there' };
  const registered = textOf(objectOf(objectOf(owner['status'])['nodeRef'])['name']) !== '';
  if (!registered) return { fate: 'extend', why: 'the machine has no node yet' };
  // Of a machine without one nobody could say later which machine the node is.
  if (textOf(objectOf(owner['spec'])['providerID']) === '')
    return { fate: 'extend', why: 'the machine has no provider ID yet' };
  const ready = listOf(objectOf(node?.['status'])['conditions']).some(
    (condition) => condition['type'] === 'Ready' && condition['status'] === 'True',
  );
  return ready
    ? { fate: 'delete', why: 'the machine’s node is Ready' }
    : { fate: 'extend', why: 'the machine’s node is not Ready yet' };
}

export interface Reconciled {
  readonly id: string;
  readonly for: string;
  /** `failed`: it could not be looked up or changed; it is as it was. */
  readonly done: 'extended' | 'deleted' | 'left' | 'failed';
  readonly why: string;
  readonly expires?: string;
}

export interface Reconciliation {
  readonly tokens: readonly Reconciled[];
  /** Of the first token that failed; `notFound` where no Machine and no MachinePool of any token is there. */
  readonly exit: ExitCode;
}

export interface ReconcileOptions {
  readonly ttlSeconds: number;
  readonly dryRun: boolean;
  readonly now: Instant;
}

const secretsPath = '/api/v1/namespaces/kube-system/secrets';
const resources = { machine: 'machines', pool: 'machinepools' } as const;

/** A token, and what became of looking up whom it is for. */
interface LookedUp {
  readonly secret: JsonObject;
  readonly record: TokenRecord & { readonly owner: TokenOwner };
  readonly facts: OwnerFacts | CommandFailure | 'no such API';
}

/** `machines` is where Cluster API runs: this cluster, or the one that manages it. Each token succeeds or fails alone. */
export async function reconcileTokens(
  { api, signal }: Cluster,
  machines: ObjectApi,
  options: ReconcileOptions,
): Promise<Reconciliation> {
  const query = { labelSelector: ownerLabel, fieldSelector: `type=${tokenSecretType}` };
  const secrets = expected(await api.list(secretsPath, query, signal), 'bootstrap tokens');
  if (secrets.length === 0) return { tokens: [], exit: exitCodes.ok };
  const known = await clusterApi(machines, signal);

  // All are looked up before the first is deleted: that nothing at all is there says more about the cluster than about the Machines.
  const looked: LookedUp[] = [];
  for (const secret of secrets) {
    const record = tokenOfSecret(secret);
    if ('problem' in record || record.owner === undefined) continue;
    const { owner } = record;
    // A 404 for the object is an answer only where there are such objects: MachinePools may be switched off.
    const facts =
      known?.resources.has(resources[owner.kind]) === true
        ? await failing(() => factsOf(owner, { api, machines, version: known.version, signal }))
        : 'no such API';
    looked.push({ secret, record: { ...record, owner }, facts });
  }
  const isThere = ({ facts }: LookedUp): boolean =>
    typeof facts === 'object' && 'owner' in facts && facts.owner !== undefined;
  const isGone = ({ facts }: LookedUp): boolean =>
    typeof facts === 'object' && 'owner' in facts && facts.owner === undefined;
  const strange = looked.some(isGone) && !looked.some(isThere);

  const tokens: Reconciled[] = [];
  let exit: ExitCode = strange ? exitCodes.notFound : exitCodes.ok;
  for (const each of looked) {
    const { token, owner } = each.record;
    const named = { id: token.id, for: `${owner.kind} ${printable(owner.namespace)}/${printable(owner.name)}` };
    const done =
      each.facts instanceof CommandFailure
        ? each.facts
        : await failing(() => settle(each, strange && isGone(each), { api, signal }, options));
    if (done instanceof CommandFailure) {
      tokens.push({ ...named, done: 'failed', why: done.message });
      if (exit === exitCodes.ok) exit = done.code;
    } else tokens.push({ ...named, ...done });
  }
  return { tokens, exit };
}

/** What ends one token's turn and not the command: no answer, or no right. */
async function failing<T>(work: () => Promise<T>): Promise<T | CommandFailure> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CommandFailure) return error;
    if (error instanceof TypeError || error instanceof RangeError) throw error;
    return new CommandFailure(exitCodes.temporary, errorMessage(error));
  }
}

/** Extends, deletes or leaves one token. */
async function settle(
  { secret, record: { owner, expires }, facts }: LookedUp,
  isStrange: boolean,
  { api, signal }: Cluster,
  { ttlSeconds, dryRun, now }: ReconcileOptions,
): Promise<Omit<Reconciled, 'id' | 'for'>> {
  const { fate, why } = isStrange ? inAnotherCluster : fateOf(owner, facts);
  const { name, uid, resourceVersion } = objectOf(secret['metadata']);
  const path = `${secretsPath}/${encodeURIComponent(textOf(name))}`;
  if (fate === 'delete') {
    // Only as it was read: it may have been made anew for another Machine meanwhile.
    const only = { uid: textOf(uid), resourceVersion: textOf(resourceVersion) };
    const gone = dryRun || settled(await api.remove(path, only, signal), path);
    return { done: gone ? 'deleted' : 'left', why: gone ? why : 'it changed meanwhile' };
  }
  const left = expires === undefined ? Number.POSITIVE_INFINITY : expires - now;
  // At three quarters of its life, so that a run that fails is no accident yet.
  if (fate === 'leave' || left > ttlSeconds * 750)
    return { done: 'left', why, ...(expires === undefined ? {} : { expires: rfc3339(expires) }) };
  const until = rfc3339(now + ttlSeconds * 1_000);
  const data = { ...objectOf(secret['data']), expiration: Buffer.from(until).toString('base64') };
  const kept =
    dryRun || settled(await api.replace(path, { apiVersion: 'v1', kind: 'Secret', ...secret, data }, signal), path);
  return { done: kept ? 'extended' : 'left', why: kept ? why : 'it changed meanwhile', expires: until };
}

function fateOf(owner: TokenOwner, facts: LookedUp['facts']): TokenFate {
  if (facts === 'no such API' || facts instanceof CommandFailure)
    return { fate: 'leave', why: `there is no API cluster.x-k8s.io with ${resources[owner.kind]} to ask` };
  return tokenFate(owner, facts);
}

/** With the wrong cluster asked, every Machine is "gone". The token of the last Machine of a cluster expires by itself. */
const inAnotherCluster: TokenFate = {
  fate: 'leave',
  why: 'no Machine and no MachinePool of any token is there: is it the right management cluster?',
};

/** Another client was faster: the next run sees what came of it. */
function settled(answer: Awaited<ReturnType<ObjectApi['remove']>>, path: string): boolean {
  if (!answer.ok && (answer.why === 'Conflict' || answer.why === 'NotFound')) return false;
  expected(answer, path);
  return true;
}

interface ClusterApi {
  readonly version: string;
  readonly resources: ReadonlySet<string>;
}

async function clusterApi(machines: ObjectApi, signal: AbortSignal): Promise<ClusterApi | undefined> {
  const group = ifFound(await machines.get('/apis/cluster.x-k8s.io', signal), 'the API group cluster.x-k8s.io');
  const version = textOf(objectOf(group?.['preferredVersion'])['version']);
  if (version === '') return undefined;
  const found = ifFound(await machines.get(`/apis/cluster.x-k8s.io/${version}`, signal), 'what cluster.x-k8s.io has');
  return { version, resources: new Set(listOf(found?.['resources']).map(({ name }) => textOf(name))) };
}

async function factsOf(
  { kind, namespace, name }: TokenOwner,
  from: {
    readonly api: ObjectApi;
    readonly machines: ObjectApi;
    readonly version: string;
    readonly signal: AbortSignal;
  },
): Promise<OwnerFacts> {
  const { api, machines, version, signal } = from;
  // Annotations are any text: a `..` in one would ask for something else.
  const path = `/apis/cluster.x-k8s.io/${version}/namespaces/${segment(namespace)}/${resources[kind]}/${segment(name)}`;
  const owner = ifFound(await machines.get(path, signal), `${kind} ${printable(namespace)}/${printable(name)}`);
  const node = textOf(objectOf(objectOf(owner?.['status'])['nodeRef'])['name']);
  if (kind === 'pool' || node === '') return { owner, node: undefined };
  return { owner, node: ifFound(await api.get(`/api/v1/nodes/${encodeURIComponent(node)}`, signal), `node ${node}`) };
}

function segment(name: string): string {
  if (name === '.' || name === '..') throw new CommandFailure(exitCodes.refused, `${name} is no name of an object`);
  return encodeURIComponent(name);
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

/** Seconds of what Go writes as a duration, in whole seconds: `24h0m0s`, `90m`, `0`. */
export function goSeconds(text: string): number | undefined {
  const [whole, hours = 0, minutes = 0, seconds = 0] =
    /^(?=.)(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$/.exec(text === '0' ? '0s' : text) ?? [];
  return whole === undefined ? undefined : Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds);
}

/** A token that expires before the next run is no token. */
export const shortestTtlSeconds = 300;
