/**
 * The functions of one cluster. Each has a role of its own, a log group made beforehand (so that none may make one), and
 * code that holds only its own rules.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AssetHashType, Duration, RemovalPolicy } from 'aws-cdk-lib';
import type { Stack } from 'aws-cdk-lib';
import { Policy, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Role } from 'aws-cdk-lib/aws-iam';
import { Architecture, Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { functionName } from '../core/configuration/resolve/deployment.ts';
import { bundle } from './bundle.ts';
import type { Bundle } from './bundle.ts';

export type Service = Parameters<typeof functionName>[1];

/** Where functions come from, the same for all of them. */
export interface Sources {
  readonly root: string;
  readonly sourceMaps: boolean;
  /** Entry points by service, relative to the root. */
  readonly entries: Readonly<Record<Service, string>>;
  /** Only for tests: functions that obey AWS_ENDPOINT_URL and its kind, which others refuse (adapters/lambda/redirects.ts). */
  readonly emulatedAws?: true;
}

export interface FunctionOptions {
  readonly cluster: string;
  readonly service: Service;
  readonly description: string;
  readonly role: Role;
  /** What its role may, besides writing its own log. */
  readonly statements: readonly PolicyStatement[];
  readonly environment: Readonly<Record<string, string>>;
  /** What the code finds as `__COUNTERSIGN_CLUSTER__`. */
  readonly rules: string;
  /** Further constants that its code reads, as text. */
  readonly constants?: Readonly<Record<string, string>>;
  readonly reservedConcurrency: number;
  readonly logRetention: RetentionDays;
  readonly sources: Sources;
}

export interface ServiceFunction {
  readonly function: LambdaFunction;
  readonly logGroup: LogGroup;
  /** What its role may, but for what key policies say. */
  readonly policy: Policy;
}

/** Under the lease of 30 s that keeps a second function off a begun request, and under the 29 s of API Gateway. */
const timeout = Duration.seconds(25);

export function createFunction(stack: Stack, id: string, options: FunctionOptions): ServiceFunction {
  const { cluster, service, description, role, environment, reservedConcurrency, sources } = options;
  const logGroup = new LogGroup(stack, `${id}Log`, {
    retention: options.logRetention,
    // Who deletes a cluster's functions may still have to answer for what they did.
    removalPolicy: RemovalPolicy.RETAIN,
  });
  const policy = new Policy(stack, `${id}Policy`, {
    roles: [role],
    statements: [
      new PolicyStatement({
        sid: 'WriteOwnLog',
        actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
        // Ends in `:*`: its streams, whose names Lambda makes up.
        resources: [logGroup.logGroupArn],
      }),
      ...options.statements,
    ],
  });
  const made = withFolder(
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
      new LambdaFunction(stack, id, {
        functionName: functionName(cluster, service),
        description,
        runtime: Runtime.NODEJS_24_X,
        architecture: Architecture.ARM_64,
        handler: 'index.handler',
        code,
        role,
        timeout,
        memorySize: 512,
        reservedConcurrentExecutions: reservedConcurrency,
        environment: { ...environment, ...(sources.sourceMaps ? { NODE_OPTIONS: '--enable-source-maps' } : {}) },
        logGroup,
      }),
  );
  // Nothing calls a function before its role may do what it needs.
  made.node.addDependency(policy);
  return { function: made, logGroup, policy };
}

/** Assets are folders. This one is copied to the cloud assembly while the function is made. */
function withFolder<T>({ files, hash }: Bundle, make: (code: Code) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-bundle-'));
  try {
    for (const [name, contents] of files) writeFileSync(join(folder, name), contents);
    // By content alone: a checkout elsewhere, or on another day, deploys nothing new.
    return make(Code.fromAsset(folder, { assetHash: hash, assetHashType: AssetHashType.CUSTOM }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
