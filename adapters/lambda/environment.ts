/** Reads what the infrastructure tells a function, and holds it against the rules in its bundle. */
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { logLevels, readLogLevel } from './log.ts';
import type { LogLevel } from './log.ts';

export interface EnvironmentReader {
  /** What does not fit together must not serve: everything that is wrong, in the order read. */
  readonly problems: string[];
  /** Empty, and a problem, when it is not set. */
  readonly text: (name: string) => string;
  /** Nothing, and a problem, when it is none. */
  readonly logLevel: (name: string) => LogLevel | undefined;
}

/** `clusterName` is the variable that must name the cluster whose rules are in the bundle. */
export function readEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  cluster: ClusterConfiguration,
  clusterName: string,
): EnvironmentReader {
  const problems: string[] = [];
  const text = (name: string): string => {
    const value = environment[name] ?? '';
    if (value === '') problems.push(`${name} is not set`);
    return value;
  };
  const name = text(clusterName);
  if (name !== '' && name !== cluster.name)
    problems.push(`${clusterName} is ${name}, and the bundle has the rules of ${cluster.name}`);
  const logLevel = (variable: string): LogLevel | undefined => {
    const level = readLogLevel(environment[variable]);
    if (level === undefined) problems.push(`${variable} is none of ${logLevels.join(', ')}`);
    return level;
  };
  return { problems, text, logLevel };
}
