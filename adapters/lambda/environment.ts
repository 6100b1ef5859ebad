/** The environment variables of the functions, compared with the configuration in their bundle. Policy is in the bundle. */
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { parsedObject } from '../../core/encoding/json-object.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import { logLevels, readLogLevel } from './log.ts';
import type { LogLevel } from './log.ts';
import { redirects } from './redirects.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export const environmentNames = {
  /** Must be the cluster of the bundle. */
  cluster: 'COUNTERSIGN_CLUSTER',
  certificatesTable: 'COUNTERSIGN_CERTIFICATES_TABLE',
  /** JSON: KMS key ARN by CA name. */
  caKeys: 'COUNTERSIGN_CA_KEYS',
  /** Locks, verdicts and machines. */
  attestationsTable: 'COUNTERSIGN_ATTESTATIONS_TABLE',
  /** Only if a profile enforces attestation. */
  attestFunction: 'COUNTERSIGN_ATTEST_FUNCTION',
  /** ARN of the KMS key of challenges; only if a provider of the cluster sends them. */
  challengeKey: 'COUNTERSIGN_CHALLENGE_KEY',
  /** `info` (default), `warn` or `error`. */
  logLevel: 'COUNTERSIGN_LOG_LEVEL',
} as const;

interface EnvironmentReader {
  /** Not empty. */
  readonly text: (name: 'certificatesTable' | 'attestationsTable' | 'attestFunction') => string;
  readonly keyArn: (name: 'challengeKey') => string;
  readonly logLevel: () => LogLevel;
  /** A KMS key ARN for each CA of the cluster, by CA name. */
  readonly caKeys: () => ReadonlyMap<string, string>;
}

const keyArnPattern = /^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key\/[A-Za-z0-9-]+$/;

/** Throws MisconfigurationError with every problem: a function whose settings do not fit together must not serve. */
export function readEnvironment<Settings>(
  environment: Environment,
  cluster: ClusterConfiguration,
  read: (reader: EnvironmentReader) => Settings,
): Settings {
  const problems = [...redirects(environment)];
  const text = (name: keyof typeof environmentNames): string => {
    const value = environment[environmentNames[name]] ?? '';
    if (value === '') problems.push(`${environmentNames[name]} is not set`);
    return value;
  };
  const logLevel = (): LogLevel => {
    const level = readLogLevel(environment[environmentNames.logLevel]);
    if (level === undefined) problems.push(`${environmentNames.logLevel} is not one of ${logLevels.join(', ')}`);
    return level ?? 'info';
  };
  const keyArn = (name: keyof typeof environmentNames): string => {
    const value = environment[environmentNames[name]] ?? '';
    if (!keyArnPattern.test(value)) problems.push(`${environmentNames[name]} is not the ARN of a KMS key`);
    return value;
  };
  const caKeys = (): ReadonlyMap<string, string> => {
    const keys = textsIn(environment[environmentNames.caKeys] ?? '');
    for (const ca of cluster.cas.keys())
      if (!keyArnPattern.test(keys.get(ca) ?? ''))
        problems.push(`${environmentNames.caKeys} has no KMS key ARN for the CA ${ca}`);
    return keys;
  };
  const name = text('cluster');
  if (name !== '' && name !== cluster.name)
    problems.push(`${environmentNames.cluster} is ${name}, and the bundle has the rules of ${cluster.name}`);
  const settings = read({ text, keyArn, logLevel, caKeys });
  if (problems.length > 0) throw new MisconfigurationError(problems.join('; '));
  return settings;
}

/** The string fields of a JSON object; empty if the JSON is malformed. */
function textsIn(json: string): ReadonlyMap<string, string> {
  const fields = Object.entries(parsedObject(json) ?? {});
  return new Map(fields.filter((field): field is [string, string] => typeof field[1] === 'string'));
}
