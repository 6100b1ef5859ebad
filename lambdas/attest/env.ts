import { readEnvironment } from '../../adapters/lambda/environment.ts';
import type { Environment } from '../../adapters/lambda/environment.ts';
import type { LogLevel } from '../../adapters/lambda/log.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

export interface AttestSettings {
  readonly attestationsTable: string;
  readonly logLevel: LogLevel;
}

/** Throws MisconfigurationError with every problem. */
export function readSettings(environment: Environment, cluster: ClusterConfiguration): AttestSettings {
  return readEnvironment(environment, cluster, ({ text, logLevel }) => ({
    attestationsTable: text('attestationsTable'),
    logLevel: logLevel(),
  }));
}
