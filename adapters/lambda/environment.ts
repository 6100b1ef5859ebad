/** Reads the environment variables of a function and compares them with the configuration in its bundle. */
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { isObject } from '../../core/encoding/json-object.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import { logLevels, readLogLevel } from './log.ts';
import type { LogLevel } from './log.ts';
import { redirects } from './redirects.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Each takes the name of a variable. */
interface EnvironmentReader {
  /** Not empty. */
  readonly text: (name: string) => string;
  readonly logLevel: (name: string) => LogLevel;
  /** JSON: a KMS key ARN for each CA of the cluster, by CA name. */
  readonly caKeys: (name: string) => ReadonlyMap<string, string>;
}

const keyArn = /^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key\/[A-Za-z0-9-]+$/;

/**
 * What `read` gives. `clusterName` is the variable that must name the cluster of the bundle. Throws MisconfigurationError
 * with every problem: a function whose settings do not fit together must not serve.
 */
export function readEnvironment<Settings>(
  environment: Environment,
  cluster: ClusterConfiguration,
  clusterName: string,
  read: (reader: EnvironmentReader) => Settings,
): Settings {
  const problems = [...redirects(environment)];
  const text = (name: string): string => {
    const value = environment[name] ?? '';
    if (value === '') problems.push(`${name} is not set`);
    return value;
  };
  const logLevel = (name: string): LogLevel => {
    const level = readLogLevel(environment[name]);
    if (level === undefined) problems.push(`${name} is none of ${logLevels.join(', ')}`);
    return level ?? 'info';
  };
  const caKeys = (name: string): ReadonlyMap<string, string> => {
    const keys = textsIn(environment[name] ?? '');
    for (const ca of cluster.cas.keys())
      if (!keyArn.test(keys.get(ca) ?? '')) problems.push(`${name} has no KMS key ARN for the CA ${ca}`);
    return keys;
  };
  const name = text(clusterName);
  if (name !== '' && name !== cluster.name)
    problems.push(`${clusterName} is ${name}, and the bundle has the rules of ${cluster.name}`);
  const settings = read({ text, logLevel, caKeys });
  if (problems.length > 0) throw new MisconfigurationError(problems.join('; '));
  return settings;
}

/** The fields of a JSON object that are text; none if it is malformed. */
function textsIn(json: string): ReadonlyMap<string, string> {
  try {
    const parsed: unknown = JSON.parse(json);
    const fields = isObject(parsed) ? Object.entries(parsed) : [];
    return new Map(fields.filter((field): field is [string, string] => typeof field[1] === 'string'));
  } catch {
    return new Map();
  }
}
