import { readEnvironment } from '../../adapters/lambda/environment.ts';
import type { Environment } from '../../adapters/lambda/environment.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

export interface KubeadmSettings {
  readonly certificatesTable: string;
  /** For locks. */
  readonly attestationsTable: string;
  /** A KMS key ARN for each CA of the bundle: those that sign for kubeadm's control plane. */
  readonly caKeys: ReadonlyMap<string, string>;
}

/** Throws MisconfigurationError with every problem. */
export function readSettings(environment: Environment, cluster: ClusterConfiguration): KubeadmSettings {
  return readEnvironment(environment, cluster, ({ text, caKeys }) => ({
    certificatesTable: text('certificatesTable'),
    attestationsTable: text('attestationsTable'),
    caKeys: caKeys(),
  }));
}
