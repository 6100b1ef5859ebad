/**
 * Names the signers in the InfraCluster, as the kubelet authentication proposal demands of a provider's controller: in its status, where
 * its definition has the two fields, otherwise in annotations. Each round reads the object and writes only what differs.
 */
import { isObject, objectOf } from '../../../core/encoding/json-object.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';
import type { ApiAnswer, JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { InfraClusters, ServedResource } from '../../../adapters/kubernetes/cluster-api.ts';
import { sleep } from '../runtime/clock.ts';
import type { Clock, Random } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';
import type { ObjectReference } from './objects.ts';

/** The signers whose certificates nodes need. Without `serving`: an insecure provider, which signs no serving certificates. */
export interface NamedSigners {
  readonly client: string;
  readonly serving?: string;
}

export type InfraClusterResult = 'status' | 'annotations' | 'unchanged' | 'missing' | 'failed';

export interface InfraClusterPorts {
  readonly objects: InfraClusters;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly count: (result: InfraClusterResult) => void;
  readonly alarmed: () => void;
}

/** A round is at most four calls. */
const roundMilliseconds = 300_000;
/** The copy of the Cluster object is complete moments after the start. */
const waitMilliseconds = 2_000;
/** An API server that has just started refuses calls until it has read its roles. */
const failuresBeforeAlarm = 3;

const statusFields = { client: 'kubeletClientCertificateSigner', serving: 'kubeletServingCertificateSigner' } as const;
export const signerAnnotations = {
  client: 'cluster.x-k8s.io/kubelet-client-certificate-signer',
  serving: 'cluster.x-k8s.io/kubelet-serving-certificate-signer',
} as const;

/** Until `stop`. Never rejects. `reference`: undefined while the Cluster object is unknown or has no InfraCluster. */
export async function nameSigners(
  signers: NamedSigners,
  namespace: string,
  reference: () => ObjectReference | undefined,
  ports: InfraClusterPorts,
  stop: AbortSignal,
): Promise<void> {
  const { clock, random, log, count } = ports;
  let failures = 0;
  // The API server answers 500 for fields that the definition does not have, which its operator may count. A later leader tries again.
  const lacking = new Set<string>();
  while (!stop.aborted) {
    const infrastructure = reference();
    if (infrastructure === undefined) {
      await sleep(clock, waitMilliseconds, stop);
      continue;
    }
    const { kind, name } = infrastructure;
    const result = await nameOnce(signers, namespace, infrastructure, ports.objects, lacking, stop).catch(
      (error: unknown) => ({
        kind: 'failed' as const,
        detail: errorMessage(error),
      }),
    );
    if (stop.aborted) return;
    count(result.kind);
    failures = result.kind === 'failed' ? failures + 1 : 0;
    if (result.kind === 'status' || result.kind === 'annotations')
      log.info({ kind, name, place: result.kind, ...signers }, 'signers named in the InfraCluster');
    if (result.kind === 'failed') {
      const line = { kind, name, rounds: failures, detail: result.detail };
      if (failures < failuresBeforeAlarm)
        log.warn(line, 'signers not named in the InfraCluster; the next round tries again');
      else {
        ports.alarmed();
        log.error(line, 'signers cannot be named in the InfraCluster');
      }
    }
    await sleep(clock, roundMilliseconds * (0.9 + 0.2 * random()), stop);
  }
}

type Round =
  { readonly kind: Exclude<InfraClusterResult, 'failed'> } | { readonly kind: 'failed'; readonly detail: string };

async function nameOnce(
  signers: NamedSigners,
  namespace: string,
  { group, kind, name }: ObjectReference,
  objects: InfraClusters,
  /** The definitions, by version, whose status is known not to have the fields. */
  lacking: Set<string>,
  signal: AbortSignal,
): Promise<Round> {
  const found = await objects.find(group, kind, signal);
  if (!found.ok) return refused(found);
  const resource = found.value;
  const read = await objects.get(resource, namespace, name, signal);
  if (!read.ok) return refused(read);
  if (inStatus(read.value, signers)) return { kind: 'unchanged' };
  const { uid } = objectOf(read.value['metadata']);
  if (typeof uid !== 'string') return { kind: 'failed', detail: 'the object has no UID' };
  const place = { namespace, name, uid };
  const definition = `${resource.plural}.${group}/${resource.version}`;
  if (lacking.has(definition)) return annotateOnce(signers, read.value, resource, place, objects, signal);
  const status = withoutAbsent({ [statusFields.client]: signers.client, [statusFields.serving]: signers.serving });
  const written = await objects.applyStatus(resource, place, status, signal);
  // Written only if it comes back: a definition without a strict schema lets the API server drop fields and answer 200.
  if (written.ok && inStatus(written.value, signers)) return { kind: 'status' };
  if (!written.ok && !['NotFound', 'Invalid'].includes(written.problem.why)) return refused(written);
  lacking.add(definition);
  return annotateOnce(signers, read.value, resource, place, objects, signal);
}

async function annotateOnce(
  signers: NamedSigners,
  object: JsonObject,
  resource: ServedResource,
  place: Parameters<InfraClusters['annotate']>[1],
  objects: InfraClusters,
  signal: AbortSignal,
): Promise<Round> {
  const annotations = objectOf(objectOf(object['metadata'])['annotations']);
  const wanted = { [signerAnnotations.client]: signers.client, [signerAnnotations.serving]: signers.serving ?? null };
  const isCurrent = Object.entries(wanted).every(([key, value]) => (annotations[key] ?? null) === value);
  if (isCurrent) return { kind: 'unchanged' };
  const annotated = await objects.annotate(resource, place, wanted, signal);
  return annotated.ok ? { kind: 'annotations' } : refused(annotated);
}

function inStatus(object: JsonObject, { client, serving }: NamedSigners): boolean {
  const { status } = object;
  return isObject(status) && status[statusFields.client] === client && status[statusFields.serving] === serving;
}

function withoutAbsent(fields: Readonly<Record<string, string | undefined>>): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** An InfraCluster that does not exist yet is no failure: the provider creates it. */
function refused(answer: ApiAnswer<unknown> & { readonly ok: false }): Round {
  const { why, message } = answer.problem;
  return why === 'NotFound' ? { kind: 'missing' } : { kind: 'failed', detail: message };
}
