/** `countersign ca rotate`: reads the deployment, the ledger and the cluster, and shows what comes next. It changes nothing. */
import { countLeaves } from '../../core/rotation/leaves.ts';
import type { Leaves } from '../../core/rotation/leaves.ts';
import type { Consumer } from '../../core/rotation/consumers.ts';
import type { Deployment, RotatingCa } from '../../core/rotation/deployment.ts';
import { rotationOf } from '../../core/rotation/phase.ts';
import { certificateFacts } from '../../core/x509/read-certificate.ts';
import { announce, withCluster } from '../cluster/cluster-access.ts';
import { formatOutput } from '../output/output.ts';
import { withRevocations } from '../revocation/place.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { readConsumers } from './cluster-consumers.ts';
import { readDeployment } from './read-deployment.ts';
import type { DeploymentFlags } from './read-deployment.ts';
import { rotationText, shownRotation } from './report.ts';

export interface RotateFlags extends DeploymentFlags {
  readonly days?: number;
  readonly limit: number;
  readonly skipKubernetes?: true;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly output: string;
}

const day = 86_400_000;
/** As for other commands. A profile may permit more. */
const leastDays = 366;

export async function rotate(flags: RotateFlags, io: Io): Promise<ExitCode> {
  const { name, output, kubeconfig, context } = flags;
  // In this order: once no deployed profile names the old CA, it issues nothing that the ledger does not show.
  const deployment = await readDeployment(flags, io);
  const old = deployment.cas.find((ca) => ca.name === name);
  if (old === undefined)
    throw new CommandFailure(
      exitCodes.notFound,
      `cluster ${deployment.cluster} has no CA ${name}, and never had one`,
      `--name is one of ${deployment.cas.map((ca) => ca.name).join(', ')}`,
    );
  const now = io.now();
  const until = now + (flags.days ?? daysOf(deployment)) * day;
  const leaves = await readLeaves(old, { now, until }, flags, io);
  const consumers =
    flags.skipKubernetes === true
      ? undefined
      : await withCluster({ kubeconfig, context }, io, async (cluster): Promise<readonly Consumer[]> => {
          await announce(cluster, io);
          return readConsumers(cluster);
        });
  const rotation = rotationOf(old, { deployment, leaves, now, ...(consumers === undefined ? {} : { consumers }) });
  const shown = shownRotation(rotation, { cluster: deployment.cluster, until, embedded: flags.data !== undefined });
  io.out(formatOutput(output, shown, () => rotationText(shown)));
  if (rotation.findings.length > 0) return exitCodes.refused;
  return rotation.consumers.some(({ unread }) => unread !== undefined) ? exitCodes.temporary : exitCodes.ok;
}

/** Certificates of earlier configurations may live longer than today's permit: --days. */
export function daysOf({ profiles }: Deployment): number {
  return Math.max(leastDays, ...profiles.map(({ maxTtlSeconds }) => Math.ceil((maxTtlSeconds * 1_000) / day)));
}

async function readLeaves(
  { record }: RotatingCa,
  { now, until }: { readonly now: number; readonly until: number },
  flags: RotateFlags,
  io: Io,
): Promise<Leaves> {
  const none: Leaves = { certificates: 0, signers: [], holders: [], more: false, revoked: 0 };
  if (record === undefined) return none;
  // No certificate outlives its CA.
  if (certificateFacts(record.certificate).notAfter <= now) return none;
  return withRevocations(flags, io, async ({ reads, revocations }) => {
    const revoked = new Set<string>();
    for await (const { serial } of revocations.list(record.keyId, now)) revoked.add(serial);
    // Those of other CAs are read too: they tell which holders have renewed.
    return countLeaves(reads.listByExpiry({ from: now, to: until }), {
      keyId: record.keyId,
      revoked,
      now,
      limit: flags.limit,
    });
  });
}
