/** `countersign status`: does the relay, the endpoint, each CA and each table of a cluster work now. Each part is read on its own. */
import { withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { countOf, rowsText } from '../output/check-rows.ts';
import { formatOutput } from '../output/output.ts';
import { exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { deployedPlace } from '../trace/place.ts';
import type { DeployedPlace, PlaceFlags } from '../trace/place.ts';
import { casOfHealth, lookAtCas, lookAtLogs, lookAtTables } from './deployed.ts';
import { lookAtEndpoint, lookAtRules } from './endpoint.ts';
import type { EndpointFlags } from './endpoint.ts';
import { lookAtEvents, lookAtRelays } from './relays.ts';
import { rowsOr } from './row.ts';
import type { StatusRow } from './row.ts';

export interface StatusFlags extends Omit<PlaceFlags, 'data'>, ClusterAccessFlags, EndpointFlags {
  readonly skipAws?: true;
  readonly skipKubernetes?: true;
  readonly output: string;
}

export async function status(flags: StatusFlags, io: Io): Promise<ExitCode> {
  const place = await deployedPlace(flags, io);
  const [inCluster, deployed] = await Promise.all([
    flags.skipKubernetes === true
      ? [skipped('cluster', 'the relay', '--skip-kubernetes')]
      : lookAtCluster(place, flags, io),
    lookAtDeployment(place, flags, io),
  ]);
  const checks = [...inCluster, ...deployed];
  const [failed, unseen] = [countOf(checks, 'fail'), countOf(checks, 'unknown')];
  const state = failed > 0 ? 'trouble' : unseen > 0 ? 'notAllSeen' : 'healthy';
  io.out(
    formatOutput(
      flags.output,
      { cluster: place.cluster, state, checks },
      () => `cluster ${place.cluster}\n\n${rowsText(checks)}\n${verdict(failed, unseen)}\n`,
    ),
  );
  return { trouble: exitCodes.refused, notAllSeen: exitCodes.temporary, healthy: exitCodes.ok }[state];
}

async function lookAtCluster(
  place: DeployedPlace,
  { kubeconfig, context }: StatusFlags,
  io: Io,
): Promise<readonly StatusRow[]> {
  const name = { id: 'cluster', check: 'the API server answers' } as const;
  return rowsOr(name, () =>
    withCluster({ kubeconfig, context }, io, async (cluster) => {
      const relays = await lookAtRelays(cluster, place.cluster, io.now());
      return [...relays, ...(await lookAtEvents(cluster, io.now()))];
    }),
  );
}

async function lookAtDeployment(place: DeployedPlace, flags: StatusFlags, io: Io): Promise<readonly StatusRow[]> {
  let asked: Promise<Readonly<Record<string, string>>> | undefined;
  const withAws = flags.skipAws !== true;
  const outputs = () => (asked ??= withAws ? io.stackOutputs(place) : Promise.resolve({}));
  if (!withAws && flags.url === undefined)
    return [skipped('stack', 'the endpoint, the CAs and the tables', '--skip-aws, and no --url')];
  // Next to the endpoint, so that its time is not the time of everything.
  const others = withAws ? Promise.all([lookAtTables(place, outputs, io), lookAtLogs(place, io)]) : Promise.resolve([]);
  const { rows, health } = await lookAtEndpoint(place, flags, outputs, io);
  const ofEndpoint = health === undefined ? [] : casOfHealth(place, health, io.now());
  const cas = withAws ? await lookAtCas(place, health, io) : ofEndpoint;
  return [...rows, lookAtRules(place, health), ...cas, ...(await others).flat()];
}

function skipped(id: StatusRow['id'], check: string, flag: string): StatusRow {
  return { id, check, result: 'none', seen: `not looked at (${flag})` };
}

function verdict(failed: number, unseen: number): string {
  const rest = unseen === 0 ? '' : `; ${unseen} could not be seen`;
  if (failed > 0) return `Trouble: ${failed} of these do not hold${rest}`;
  return unseen === 0 ? 'Healthy' : `Healthy as far as could be seen${rest}`;
}
