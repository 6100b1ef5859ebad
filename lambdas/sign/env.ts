import { readEnvironment } from '../../adapters/lambda/environment.ts';
import type { Environment } from '../../adapters/lambda/environment.ts';
import type { LogLevel } from '../../adapters/lambda/log.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

/** The environment variables of the sign function. Policy is in the bundle. */
export const environmentNames = {
  /** Must be the cluster whose rules are in the bundle. */
  cluster: 'COUNTERSIGN_CLUSTER',
  certificatesTable: 'COUNTERSIGN_CERTIFICATES_TABLE',
  /** JSON: KMS key ARN by CA name. */
  caKeys: 'COUNTERSIGN_CA_KEYS',
  /** Locks, verdicts and machines. */
  attestationsTable: 'COUNTERSIGN_ATTESTATIONS_TABLE',
  /** Only if a profile enforces attestation. */
  attestFunction: 'COUNTERSIGN_ATTEST_FUNCTION',
  /** `info` (default), `warn` or `error`. */
  logLevel: 'COUNTERSIGN_LOG_LEVEL',
} as const;

export interface SignSettings {
  readonly certificatesTable: string;
  /** A KMS key ARN for each CA of the configuration. */
  readonly caKeys: ReadonlyMap<string, string>;
  readonly attestationsTable: string;
  /** Present exactly if a profile enforces attestation. */
  readonly attestFunction?: string;
  readonly logLevel: LogLevel;
}

/** Throws MisconfigurationError with every problem. */
export function readSettings(environment: Environment, cluster: ClusterConfiguration): SignSettings {
  return readEnvironment(environment, cluster, environmentNames.cluster, ({ text, caKeys, logLevel }) => ({
    certificatesTable: text(environmentNames.certificatesTable),
    caKeys: caKeys(environmentNames.caKeys),
    attestationsTable: text(environmentNames.attestationsTable),
    ...(needsVerdicts(cluster) ? { attestFunction: text(environmentNames.attestFunction) } : {}),
    logLevel: logLevel(environmentNames.logLevel),
  }));
}

/** In audit mode sign needs no verdict. */
function needsVerdicts({ profiles }: ClusterConfiguration): boolean {
  return [...profiles.values()].some(({ attestation }) => attestation?.mode === 'enforce');
}
