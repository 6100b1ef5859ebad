/**
 * Keeps the CA certificates of each signer where the cluster finds them (docs/ca/trust.md). Each round reads the endpoint's answer
 * and each object, and writes the objects that hold something else. Nothing is stored between rounds, so a crash loses nothing.
 *
 * The relay deletes no object, and writes only what a complete answer of the endpoint says: consumers of an empty bundle refuse every certificate,
 * and those of a shorter one refuse valid ones.
 */
import { errorMessage } from '../../../core/outcome/error-message.ts';
import { failure, success } from '../../../core/outcome/result.ts';
import type { Result } from '../../../core/outcome/result.ts';
import type { TrustObjects } from '../../../adapters/kubernetes/trust-objects.ts';
import type { TrustSource } from '../../../adapters/signing-api/trust-bundles.ts';
import { sleep } from '../runtime/clock.ts';
import type { Clock, Random } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';
import { keptClusterTrustBundle, keptConfigMap, keptFor } from './kept-objects.ts';
import type { KeptObject, KeptTrust } from './kept-objects.ts';

/** Where the certificates come from, and the objects. */
export interface TrustPorts {
  readonly source: TrustSource;
  readonly objects: TrustObjects;
}

export interface KeepTrustPorts extends TrustPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: TrustMetrics;
}

export interface TrustMetrics {
  readonly trust: (subject: TrustSubject, result: TrustResult) => void;
  /** An operator has to act. */
  readonly trustAlarmed: () => void;
}

export const trustSubjects = ['Endpoint', 'Discovery', 'ConfigMap', 'ClusterTrustBundle'] as const;
export type TrustSubject = (typeof trustSubjects)[number];
/** `missing`: the endpoint has no certificates of the signer. */
export type TrustResult = 'unchanged' | 'written' | 'missing' | 'failed';

/** A round is one call of the endpoint and one read of each object. */
const roundMilliseconds = 60_000;
/** An API server that has just started refuses calls until it has read its roles, and an endpoint may be down for minutes. */
const failuresBeforeAlarm = 5;

/** Until `stop`. Never rejects. */
export async function keepTrust(
  kept: KeptTrust,
  signerNames: readonly string[],
  ports: KeepTrustPorts,
  stop: AbortSignal,
): Promise<void> {
  const { clock, random } = ports;
  const troubles = createTroubles(ports);
  while (!stop.aborted) {
    await keepOnce(kept, signerNames, ports, troubles, stop);
    await sleep(clock, roundMilliseconds * (0.9 + 0.2 * random()), stop);
  }
}

async function keepOnce(
  kept: KeptTrust,
  signerNames: readonly string[],
  { source, objects, log, metrics }: KeepTrustPorts,
  troubles: Troubles,
  signal: AbortSignal,
): Promise<void> {
  const bundles = await troubles.told('Endpoint', '', signal, async () => success(await source.read(signal)));
  if (bundles === undefined) return;
  const all = kept.configMaps.map((place) => keptConfigMap(place, objects));
  const suffix = kept.clusterTrustBundleSuffix;
  if (suffix !== undefined) {
    const version = await troubles.told('Discovery', '', signal, async () => {
      const found = await objects.clusterTrustBundleVersion(signal);
      return found.ok ? found : failure(found.problem.message);
    });
    if (version !== undefined)
      all.push(...signerNames.map((signerName) => keptClusterTrustBundle(signerName, suffix, version, objects)));
    else troubles.once('not served', () => log.info({}, 'this API server serves no ClusterTrustBundles'));
  }
  for (const object of all) {
    const { kind, name, signerName } = object;
    const pem = bundles.get(signerName);
    if (pem === undefined) {
      metrics.trust(kind, 'missing');
      troubles.once(`missing ${signerName}`, () =>
        log.warn({ signerName }, 'the endpoint has no CA certificates of this signer'),
      );
      continue;
    }
    const result = await troubles.told(kind, name, signal, () => keep(object, pem, signal));
    if (result !== undefined) metrics.trust(kind, result);
    if (result === 'written') log.info({ kind, name, signerName }, 'trust bundle written');
  }
}

/** A problem is text for the operator. */
async function keep(
  { kind, signerName, calls, holding, holds }: KeptObject,
  pem: string,
  signal: AbortSignal,
): Promise<Result<'unchanged' | 'written', string>> {
  const read = await calls.get(signal);
  if (read.ok && keptFor(read.value) !== signerName)
    return failure(`this ${kind} exists, and has no mark that it is the relay's for this signer: choose another name`);
  if (read.ok && holds(read.value, pem)) return success('unchanged');
  if (!read.ok && read.problem.why !== 'NotFound') return failure(read.problem.message);
  const written = read.ok
    ? await calls.update(holding(pem, read.value), signal)
    : await calls.create(holding(pem), signal);
  if (written.ok) return success('written');
  // Another writer was faster; the next round reads what it wrote.
  return failure(written.problem.message);
}

type Troubles = ReturnType<typeof createTroubles>;

/** Logs and counts what fails, by subject. */
function createTroubles({ log, metrics }: KeepTrustPorts) {
  /** Rounds in a row that a subject has failed. */
  const failures = new Map<string, number>();
  const said = new Set<string>();
  return {
    /** Undefined after a failure, which is then logged. */
    async told<T>(
      subject: TrustSubject,
      name: string,
      signal: AbortSignal,
      run: () => Promise<Result<T, string>>,
    ): Promise<T | undefined> {
      const result = await run().catch((error: unknown) => failure(errorMessage(error)));
      const key = `${subject} ${name}`;
      if (signal.aborted && !result.ok) return undefined;
      if (result.ok) {
        failures.delete(key);
        return result.value;
      }
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      metrics.trust(subject, 'failed');
      const line = { subject, ...(name === '' ? {} : { name }), rounds: count, detail: result.problem };
      if (count < failuresBeforeAlarm) log.warn(line, 'trust bundle not kept; the next round tries again');
      else {
        metrics.trustAlarmed();
        log.error(line, 'trust bundle cannot be kept');
      }
      return undefined;
    },

    /** At most once while this replica leads. */
    once(what: string, say: () => void): void {
      if (said.has(what)) return;
      said.add(what);
      say();
    },
  };
}
