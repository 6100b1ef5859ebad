import { readEnvironment } from '../../adapters/lambda/environment.ts';
import type { Environment } from '../../adapters/lambda/environment.ts';
import type { LogLevel } from '../../adapters/lambda/log.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

export interface SignSettings {
  readonly certificatesTable: string;
  /** A KMS key ARN for each CA of the configuration. */
  readonly caKeys: ReadonlyMap<string, string>;
  readonly attestationsTable: string;
  /** Set only if a profile enforces attestation. */
  readonly attestFunction?: string;
  readonly logLevel: LogLevel;
}

/** Throws MisconfigurationError with every problem. */
export function readSettings(environment: Environment, cluster: ClusterConfiguration): SignSettings {
  return readEnvironment(environment, cluster, ({ text, caKeys, logLevel }) => ({
    certificatesTable: text('certificatesTable'),
    caKeys: caKeys(),
    attestationsTable: text('attestationsTable'),
    ...(needsVerdicts(cluster) ? { attestFunction: text('attestFunction') } : {}),
    logLevel: logLevel(),
  }));
}

/** In audit mode sign does not read verdicts. */
function needsVerdicts({ profiles }: ClusterConfiguration): boolean {
  return [...profiles.values()].some(({ attestation }) => attestation?.mode === 'enforce');
}
