/** The flags for `attestation.machines: clusterApi`. Without this key in the file of --config they are refused. */
import { InvalidArgumentError, Option } from 'commander';
import { file } from './flag-values.ts';

export interface ClusterApiFlags {
  readonly config?: string;
  readonly machinesKubeconfig?: string;
  readonly infraClusterSigners?: true;
}

export interface ClusterApiSettings {
  /** Path of the login to the management cluster; undefined: it is the cluster of the requests. */
  readonly kubeconfig: string | undefined;
  /** Whether the relay names the signers in the InfraCluster. */
  readonly namesSigners: boolean;
}

export const clusterApiFlags: readonly Option[] = [
  new Option(
    '--machines-kubeconfig <FILE>',
    'log in to the management cluster of Cluster API with this, if the Machines are not in this cluster',
  ).argParser(file),
  new Option(
    '--infra-cluster-signers',
    'name the signers in the InfraCluster (AWSCluster …): status, or annotations where the status has no such fields',
  ),
];

export function clusterApiOf({ config, machinesKubeconfig, infraClusterSigners }: ClusterApiFlags): ClusterApiSettings {
  if (config === undefined && machinesKubeconfig !== undefined)
    throw new InvalidArgumentError('--machines-kubeconfig needs --config with attestation.machines: clusterApi');
  if (config === undefined && infraClusterSigners === true)
    throw new InvalidArgumentError('--infra-cluster-signers needs --config with attestation.machines: clusterApi');
  return { kubeconfig: machinesKubeconfig, namesSigners: infraClusterSigners === true };
}
