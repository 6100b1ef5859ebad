import { readEnvironment } from '../../adapters/lambda/environment.ts';
import type { LogLevel } from '../../adapters/lambda/log.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

/** What the infrastructure tells the attest function. Policy is not among it: that is in the bundle. */
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

export type ParsedSettings =
  | { readonly ok: true; readonly settings: AttestSettings }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Reads the environment and holds it against the rules in the bundle: what does not fit together must not serve. */
export function parseSettings(
  environment: Readonly<Record<string, string | undefined>>,
  cluster: ClusterConfiguration,
): ParsedSettings {
  const { problems, text, logLevel: level } = readEnvironment(environment, cluster, environmentNames.cluster);
  if (cluster.attestation === undefined) problems.push('the bundle has no rules about attestation');
  const attestationsTable = text(environmentNames.attestationsTable);
  const logLevel = level(environmentNames.logLevel);
  if (logLevel === undefined || problems.length > 0) return { ok: false, problems };
  return { ok: true, settings: { attestationsTable, logLevel } };
}
