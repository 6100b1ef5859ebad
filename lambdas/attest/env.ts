import { logLevels, readLogLevel } from '../../adapters/lambda-log.ts';
import type { LogLevel } from '../../adapters/lambda-log.ts';
import type { ClusterConfiguration } from '../../core/configuration.ts';

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
  const problems: string[] = [];
  const text = (name: string): string => {
    const value = environment[name] ?? '';
    if (value === '') problems.push(`${name} is not set`);
    return value;
  };
  const name = text(environmentNames.cluster);
  if (name !== '' && name !== cluster.name)
    problems.push(`${environmentNames.cluster} is ${name}, and the bundle has the rules of ${cluster.name}`);
  if (cluster.attestation === undefined) problems.push('the bundle has no rules about attestation');
  const attestationsTable = text(environmentNames.attestationsTable);
  const logLevel = readLogLevel(environment[environmentNames.logLevel]);
  if (logLevel === undefined) problems.push(`${environmentNames.logLevel} is none of ${logLevels.join(', ')}`);
  if (logLevel === undefined || problems.length > 0) return { ok: false, problems };
  return { ok: true, settings: { attestationsTable, logLevel } };
}
