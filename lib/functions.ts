/**
 * The functions of one cluster. Each has its own role, a log group that exists before it runs (so that it needs no right to
 * create one), and code that holds only its cluster's rules.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { AssetHashType, Duration, RemovalPolicy } from 'aws-cdk-lib';
import { Policy, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Role } from 'aws-cdk-lib/aws-iam';
import { Architecture, Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type { ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import type { DeploymentConfiguration } from '../core/configuration/model/deployment.ts';
import { functionName } from '../core/configuration/resolve/deployment.ts';
import { bundle } from './bundle.ts';
import type { Bundle } from './bundle.ts';

export type Service = Parameters<typeof functionName>[1];

/** The source of the functions, the same for all. */
export interface Sources {
  readonly root: string;
  readonly sourceMaps: boolean;
  /** Entry points by service, relative to the root. */
  readonly entries: Readonly<Record<Service, string>>;
  /** Only for tests: functions that follow AWS_ENDPOINT_URL…, which others refuse (adapters/lambda/redirects.ts). */
  readonly emulatedAws?: true;
}

export const entries: Sources['entries'] = {
  sign: 'lambdas/sign/index.ts',
  attest: 'lambdas/attest/index.ts',
  ca: 'lambdas/ca/index.ts',
  kubeadm: 'lambdas/kubeadm/index.ts',
  authorizer: 'lambdas/authorizer/index.ts',
};

/** The functions of this checkout, as they are deployed. */
export const ownSources: Sources = { root: resolve(import.meta.dirname, '..'), entries, sourceMaps: false };

/** What all functions of a cluster share. */
export interface Site {
  readonly cluster: ClusterConfiguration;
  readonly deployment: DeploymentConfiguration;
  readonly sources: Sources;
}

export interface FunctionOptions {
  readonly description: string;
  readonly role: Role;
  /** Rights of its role, besides writing its own log. */
  readonly statements: readonly PolicyStatement[];
  readonly environment: Readonly<Record<string, string>>;
  /** The value of `__COUNTERSIGN_CLUSTER__` in the code. */
  readonly rules: string;
  /** Further constants of its code, as JavaScript text. */
  readonly constants?: Readonly<Record<string, string>>;
  /** Default: less than the lease of 30 s on a request, and less than API Gateway's limit of 29 s. */
  readonly timeout?: Duration;
  /** Whether it runs as often as sign, and so reserves as much. */
  readonly reserves: boolean;
}

export interface ServiceFunction {
  readonly function: LambdaFunction;
  readonly logGroup: LogGroup;
  /** Rights of its role, except those in key policies. */
  readonly policy: Policy;
}

export function createFunction(
  scope: Construct,
  service: Service,
  site: Site,
  options: FunctionOptions,
): ServiceFunction {
  const { cluster, deployment, sources } = site;
  const { description, role, environment, timeout = Duration.seconds(25) } = options;
  const { reservedConcurrency } = deployment.limits;
  const id = `${service.charAt(0).toUpperCase()}${service.slice(1)}`;
  const logGroup = new LogGroup(scope, `${id}Log`, {
    retention: deployment.logRetentionDays,
    // The log is kept for audits after the functions are deleted.
    removalPolicy: RemovalPolicy.RETAIN,
  });
  const policy = new Policy(scope, `${id}Policy`, {
    roles: [role],
    statements: [
      new PolicyStatement({
        sid: 'WriteOwnLog',
        actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
        // The ARN ends in `:*`: the streams of the group, which Lambda names.
        resources: [logGroup.logGroupArn],
      }),
      ...options.statements,
    ],
  });
  const lambdaFunction = withFolder(
    bundle({
      root: sources.root,
      entry: sources.entries[service],
      constants: {
        __COUNTERSIGN_CLUSTER__: options.rules,
        ...options.constants,
        ...(sources.emulatedAws === true ? { __COUNTERSIGN_EMULATED_AWS__: 'by a test' } : {}),
      },
      sourceMap: sources.sourceMaps,
    }),
    (code) =>
      new LambdaFunction(scope, id, {
        functionName: functionName(cluster.name, service),
        description,
        runtime: Runtime.NODEJS_24_X,
        architecture: Architecture.ARM_64,
        handler: 'index.handler',
        code,
        role,
        timeout,
        memorySize: 512,
        ...(options.reserves && reservedConcurrency !== 'none'
          ? { reservedConcurrentExecutions: reservedConcurrency }
          : {}),
        environment: { ...environment, ...(sources.sourceMaps ? { NODE_OPTIONS: '--enable-source-maps' } : {}) },
        logGroup,
      }),
  );
  // No invocation before the role has its rights.
  lambdaFunction.node.addDependency(policy);
  return { function: lambdaFunction, logGroup, policy };
}

/** CDK assets are folders. CDK copies this one to the cloud assembly when the function is created. */
function withFolder<T>({ files, hash }: Bundle, make: (code: Code) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-bundle-'));
  try {
    for (const [name, contents] of files) writeFileSync(join(folder, name), contents);
    // The hash covers the content only, so that another checkout of the same sources deploys nothing new.
    return make(Code.fromAsset(folder, { assetHash: hash, assetHashType: AssetHashType.CUSTOM }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
