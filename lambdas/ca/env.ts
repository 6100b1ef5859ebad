import { readEnvironment } from '../../adapters/lambda/environment.ts';
import type { Environment } from '../../adapters/lambda/environment.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

export interface CaSettings {
  readonly certificatesTable: string;
  /** A KMS key ARN for each CA of the configuration. */
  readonly caKeys: ReadonlyMap<string, string>;
}

/** Throws MisconfigurationError with every problem. */
export function readSettings(environment: Environment, cluster: ClusterConfiguration): CaSettings {
  return readEnvironment(environment, cluster, ({ text, caKeys }) => ({
    certificatesTable: text('certificatesTable'),
    caKeys: caKeys(),
  }));
}
