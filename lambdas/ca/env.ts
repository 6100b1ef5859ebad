import { readEnvironment } from '../../adapters/lambda/environment.ts';
import type { Environment } from '../../adapters/lambda/environment.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

/** The environment variables of the ca function. The CAs themselves are configured in the bundle. */
export const environmentNames = {
  /** Must be the cluster of the bundled configuration. */
  cluster: 'COUNTERSIGN_CLUSTER',
  certificatesTable: 'COUNTERSIGN_CERTIFICATES_TABLE',
  /** JSON: KMS key ARN by CA name. */
  caKeys: 'COUNTERSIGN_CA_KEYS',
} as const;

export interface CaSettings {
  readonly certificatesTable: string;
  /** A KMS key ARN for each CA of the configuration. */
  readonly caKeys: ReadonlyMap<string, string>;
}

/** Throws MisconfigurationError with every problem. */
export function readSettings(environment: Environment, cluster: ClusterConfiguration): CaSettings {
  return readEnvironment(environment, cluster, environmentNames.cluster, ({ text, caKeys }) => ({
    certificatesTable: text(environmentNames.certificatesTable),
    caKeys: caKeys(environmentNames.caKeys),
  }));
}
