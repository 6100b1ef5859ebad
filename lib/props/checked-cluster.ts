/** The cluster that a construct gets, by the schema and the checks of countersign.yaml. */
import { readFileSync } from 'node:fs';
import { Annotations, Stack, Token } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { DeploymentConfiguration } from '../../core/configuration/model/deployment.ts';
import { checkCluster, parseConfiguration } from '../../core/configuration/parse.ts';
import type { ClusterProblem } from '../../core/configuration/parse.ts';
import type { ClusterProps } from './cluster-props.ts';

/** One cluster of a countersign.yaml, checked. `clusterOfFile` reads it. */
export interface ParsedCluster {
  /** What is signed. */
  readonly cluster: ClusterConfiguration;
  /** How it runs on AWS. */
  readonly deployment: DeploymentConfiguration;
}

/**
 * Reads one cluster of a countersign.yaml. All clusters of the file are checked.
 *
 * @param file path of the file
 * @param cluster name of the cluster
 */
export function clusterOfFile(file: string, cluster: string): ParsedCluster {
  const parsed = parseConfiguration(readFileSync(file, 'utf8'), file, { toDeploy: true });
  if (!parsed.ok) {
    const lines = parsed.problem.map(({ line, column, path, message }) =>
      text({ path, message }, `${file}:${line}:${column}`),
    );
    throw new Error(lines.join('\n'));
  }
  const { clusters, deployments } = parsed.value.configuration;
  const [found, deployment] = [clusters.get(cluster), deployments.get(cluster)];
  if (found === undefined || deployment === undefined)
    throw new Error(`${file} has no cluster ${cluster} (it has ${[...clusters.keys()].join(', ')})`);
  return { cluster: found, deployment };
}

/** Throws an error with all problems, each with its property. Warnings become annotations of the construct. */
export function checkedCluster(scope: Construct, given: ClusterProps | ParsedCluster): ParsedCluster {
  const stack = Stack.of(scope);
  const parsed = 'deployment' in given ? given : checkedProps(scope, given);
  const { deployment } = parsed;
  for (const key of ['account', 'region'] as const) {
    const wanted = deployment[key];
    const has = stack[key];
    if (wanted !== undefined && wanted !== has)
      throw new Error(
        `cluster ${parsed.cluster.name}: aws.${key}: is ${wanted}, but stack ${stack.stackName} is in ${Token.isUnresolved(has) ? `no fixed ${key}: give it env.${key}` : has}`,
      );
  }
  return parsed;
}

function checkedProps(scope: Construct, { name, ...props }: ClusterProps): ParsedCluster {
  const { account, region } = Stack.of(scope);
  const known = (value: string): string | undefined => (Token.isUnresolved(value) ? undefined : value);
  const aws = { account: known(account), region: known(region), ...props.aws };
  const written = withoutUndefined({ ...props, aws });
  const problems = tokens(written, '');
  const checked = problems.length > 0 ? undefined : checkCluster(name, written);
  if (checked?.ok === true) {
    for (const warning of checked.value.warnings)
      Annotations.of(scope).addWarningV2(`countersign:${warning.path}`, text(warning, `cluster ${name}`));
    return checked.value;
  }
  const all = checked === undefined ? problems : checked.problem;
  throw new Error(all.map((problem) => text(problem, `cluster ${name}`)).join('\n'));
}

/** A problem without a path is one of the name. */
function text({ path, message }: ClusterProblem, where: string): string {
  return `${where}: ${path === '' ? 'name' : path}: ${message}`;
}

/** In CDK a property that is undefined is one that is not given. */
function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => (inner === undefined ? [] : [[key, withoutUndefined(inner)]])),
  );
}

/** The checks read what is signed and who may ask. They cannot read what only CloudFormation will know. */
function tokens(value: unknown, path: string): readonly ClusterProblem[] {
  if (Token.isUnresolved(value))
    return [{ path, message: 'is known only at deployment (a CDK token); write the value itself' }];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = Array.isArray(value) ? `${path}[${key}]` : `${path}${path === '' ? '' : '.'}${key}`;
    return Token.isUnresolved(key)
      ? [{ path, message: 'has a key that is known only at deployment (a CDK token)' }]
      : tokens(inner, at);
  });
}
