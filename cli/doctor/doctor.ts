/** `countersign doctor`: can this set-up work, from where the operator stands. `countersign status` says whether it works now. */
import { withCluster } from '../cluster/cluster-access.ts';
import { countOf, rowsText } from '../output/check-rows.ts';
import type { CheckRow } from '../output/check-rows.ts';
import { formatOutput } from '../output/output.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { lookAtEndpoint } from '../status/endpoint.ts';
import type { StatusFlags } from '../status/status.ts';
import { deployedPlace } from '../trace/place.ts';
import type { DeployedPlace } from '../trace/place.ts';
import { awsRows } from './in-aws.ts';
import { failureRow } from './failure-row.ts';
import { configurationRow, nodeRow } from './here.ts';
import { clusterRows } from './in-cluster.ts';

export async function doctor(flags: StatusFlags, io: Io): Promise<ExitCode> {
  const here = [nodeRow(process.versions.node), await configurationRow(flags.config, io)];
  const place = await placeOf(flags, io, here);
  const [aws, endpoint, cluster] = await Promise.all([
    flags.skipAws === true ? [] : awsRows(place ?? { region: flags.region }, io),
    endpointRows(place, flags, io),
    flags.skipKubernetes === true ? [] : kubernetesRows(place, flags, io),
  ]);
  const checks = [...here, ...aws, ...cluster, ...endpoint];
  const [failed, unseen] = [countOf(checks, 'fail'), countOf(checks, 'unknown')];
  const can = failed > 0 ? 'no' : unseen > 0 ? 'notAllSeen' : 'yes';
  io.out(
    formatOutput(flags.output, { canWork: can, checks }, () => `${rowsText(checks)}\n${verdict(failed, unseen)}\n`),
  );
  return { no: exitCodes.refused, notAllSeen: exitCodes.temporary, yes: exitCodes.ok }[can];
}

/** Undefined if no cluster is named, or the file is wrong; then the rest is checked without it. */
async function placeOf(flags: StatusFlags, io: Io, here: readonly CheckRow[]): Promise<DeployedPlace | undefined> {
  // What is wrong with the file has its row already; warnings too.
  if (here.some(({ id, result }) => id === 'config' && result === 'fail')) return undefined;
  try {
    return await deployedPlace(flags, { ...io, err: () => undefined });
  } catch (error) {
    const unnamed = error instanceof CommandFailure && error.code === exitCodes.usage && flags.cluster === undefined;
    if (!unnamed) throw error;
    return undefined;
  }
}

async function kubernetesRows(
  place: DeployedPlace | undefined,
  { kubeconfig, context }: StatusFlags,
  io: Io,
): Promise<readonly CheckRow[]> {
  try {
    return await withCluster({ kubeconfig, context }, io, (cluster) => clusterRows(cluster, place?.file?.cluster, io));
  } catch (error) {
    const row = failureRow('cluster', 'the API server answers', error);
    return [
      {
        ...row,
        result: 'fail',
        mend: `${row.mend === undefined ? '' : `${row.mend}; `}without a cluster: --skip-kubernetes`,
      },
    ];
  }
}

async function endpointRows(
  place: DeployedPlace | undefined,
  flags: StatusFlags,
  io: Io,
): Promise<readonly CheckRow[]> {
  const none = (seen: string): readonly CheckRow[] => [
    { id: 'endpoint', check: 'the endpoint answers', result: 'none', seen },
  ];
  if (place === undefined) return none('no cluster is named: --cluster, or a countersign.yaml');
  if (flags.skipAws === true && flags.url === undefined) return none('not looked at (--skip-aws, and no --url)');
  const outputs = () => (flags.skipAws === true ? Promise.resolve({}) : io.stackOutputs(place));
  const { rows } = await lookAtEndpoint(place, flags, outputs, io);
  return rows;
}

function verdict(failed: number, unseen: number): string {
  const rest = unseen === 0 ? '' : `; ${unseen} could not be checked`;
  if (failed > 0) return `${failed} of these must be mended${rest}`;
  return unseen === 0
    ? 'This set-up can work; countersign status says whether it does'
    : `This set-up can work as far as could be seen${rest}`;
}
