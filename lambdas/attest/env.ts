import { readEnvironment } from '../../adapters/lambda/environment.ts';
import type { Environment } from '../../adapters/lambda/environment.ts';
import type { LogLevel } from '../../adapters/lambda/log.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

/** The environment variables of the attest function. Policy is in the bundle. */
export const environmentNames = {
  /** Must be the cluster whose rules are in the bundle. */
  cluster: 'COUNTERSIGN_CLUSTER',
  attestationsTable: 'COUNTERSIGN_ATTESTATIONS_TABLE',
  /** `info` (default), `warn` or `error`. */
  logLevel: 'COUNTERSIGN_LOG_LEVEL',
} as const;

export interface AttestSettings {
  readonly attestationsTable: string;
  readonly logLevel: LogLevel;
}

/** Throws MisconfigurationError with every problem. */
export function readSettings(environment: Environment, cluster: ClusterConfiguration): AttestSettings {
  return readEnvironment(environment, cluster, environmentNames.cluster, ({ text, logLevel }) => ({
    attestationsTable: text(environmentNames.attestationsTable),
    logLevel: logLevel(environmentNames.logLevel),
  }));
}
