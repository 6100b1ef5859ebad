/** The CAs and profiles of a cluster: from the ca function of a deployed one, or from a folder and a countersign.yaml. */
import { CaUnusableError, findEmbeddedCa } from '../../adapters/embedded/authority.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import { decodeDeployment, deploymentOf } from '../../core/rotation/deployment.ts';
import type { Deployment, EncodedDeployment, RotatingCa } from '../../core/rotation/deployment.ts';
import { callCaFunction } from '../aws/deployed-ca.ts';
import type { DeployedFlags } from '../aws/deployed-ca.ts';
import { chooseCluster } from '../cluster/cluster-choice.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

export interface DeploymentFlags extends Partial<DeployedFlags> {
  /** Of the CA. */
  readonly name: string;
  readonly data?: string;
  readonly config?: string;
}

export async function readDeployment(flags: DeploymentFlags, io: Io): Promise<Deployment> {
  const { data, name } = flags;
  if (data === undefined) return deployed(flags, io);
  if (flags.config === undefined)
    throw new CommandFailure(exitCodes.usage, '--data needs --config: the countersign.yaml in use');
  const { cluster } = await chooseCluster(flags, io);
  return deploymentOf(cluster, name, (ca) => findIn(data, ca));
}

async function deployed(flags: DeploymentFlags, io: Io): Promise<Deployment> {
  const cluster = flags.cluster ?? (io.environment['COUNTERSIGN_CLUSTER'] || undefined);
  if (cluster === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      'which CA? --cluster names a deployed cluster, --data a folder of this machine',
    );
  const { deployment } = await callCaFunction({ action: 'rotation', ca: flags.name }, { ...flags, cluster }, io);
  if (!Array.isArray(objectOf(deployment)['cas']))
    throw new CommandFailure(
      exitCodes.configuration,
      `the ca function of ${cluster} is of an earlier version, which knows no rotations`,
      'deploy this version first',
    );
  return decodeDeployment(deployment as EncodedDeployment);
}

export async function findIn(folder: string, name: string): Promise<Pick<RotatingCa, 'record' | 'fault'>> {
  try {
    const found = await findEmbeddedCa(folder, name);
    if (found === undefined) return { fault: `there is no CA ${name} in ${folder} yet` };
    const { authority, chain } = found;
    return { record: { keyId: authority.signer.keyId, certificate: authority.certificate, chain } };
  } catch (error) {
    if (error instanceof CaUnusableError) return { fault: error.message };
    throw error;
  }
}
