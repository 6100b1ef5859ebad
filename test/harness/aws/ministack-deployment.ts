/** This project's stacks in a MiniStack that checks signatures and permissions, called as in production: by a role that a relay assumes. */
import { CreateRoleCommand, IAMClient, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { stackNames } from '../../../core/configuration/resolve/deployment.ts';
import { createStack, publishAssets, synthesise } from './sdk-stacks.ts';
import type { Assembly, Template } from './sdk-stacks.ts';
import { emulatedRegion, type Emulator } from './emulator.ts';
import { startMiniStack } from './ministack.ts';

export interface SessionCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
}

export interface MiniStackDeployment {
  readonly emulator: Emulator;
  /** Of the service stacks, by cluster. */
  readonly outputs: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** As the relay of a cluster, whose role is a principal of that cluster's configuration. */
  relay(cluster: string): Promise<SessionCredentials>;
  /** What STS says to these credentials; throws what it refuses. */
  assume(roleArn: string, by: SessionCredentials): Promise<SessionCredentials>;
  /** Whose credentials of `relay`, `caller` and `assume` these are. */
  arnOf(accessKeyId: string): string;
  /** As the relay of a cluster signs its calls: by the caller role, assumed. */
  caller(cluster: string): Promise<SessionCredentials>;
  stop(): Promise<void>;
}

const account = '000000000000';
const relayRole = (cluster: string): string => `relay-${cluster}`;

/** What countersign.yaml says about a cluster, where it is to say something else. */
export type ClusterSettings = Readonly<Record<string, unknown>>;

/** The CAs have the name that the dev server gives its own. The front door is the default one, an HTTP API. */
export function synthesiseClusters(settings: Readonly<Record<string, ClusterSettings>>): Assembly {
  const profile = { ca: 'ca', maxTtl: '1d' };
  const clusters = Object.entries(settings).map(([name, own]) => [
    name,
    {
      cas: { ca: { subject: { commonName: `${name} ca` } } },
      profiles: {
        'kubernetes.io/kube-apiserver-client': profile,
        'kubernetes.io/kube-apiserver-client-kubelet': profile,
        'kubernetes.io/kubelet-serving': profile,
      },
      access: { iam: { principals: [`arn:aws:iam::${account}:role/${relayRole(name)}`] } },
      aws: { account, region: emulatedRegion },
      ...own,
    },
  ]);
  return synthesise(JSON.stringify({ version: 1, clusters: Object.fromEntries(clusters) as unknown }));
}

/**
 * MiniStack does not tell its policies about a KMS call what `kms:` conditions ask for, so that they never hold: such a
 * template would permit no signature. This one is the same without those conditions, and with everything else.
 */
export function withoutKmsConditions<T>(part: T): T {
  if (Array.isArray(part)) return part.map((each: unknown) => withoutKmsConditions(each)) as T;
  if (typeof part !== 'object' || part === null) return part;
  const entries = Object.entries(part).flatMap(([name, value]: [string, unknown]) => {
    if (name !== 'Condition' || typeof value !== 'object' || value === null)
      return [[name, withoutKmsConditions(value)]];
    const operators = Object.entries(value).flatMap(([operator, tests]: [string, object]) => {
      const kept = Object.entries(tests).filter(([key]) => !key.startsWith('kms:'));
      return kept.length === 0 ? [] : [[operator, Object.fromEntries(kept)]];
    });
    return operators.length === 0 ? [] : [[name, Object.fromEntries(operators)]];
  });
  return Object.fromEntries(entries) as T;
}

/**
 * MiniStack does not tell its policies which function calls, so that each of ours would be refused as another one. The denials are tried in
 * state-stack.test.ts.
 */
export function withoutFunctionDenials(template: Template): Template {
  const kept = Object.entries(template.Resources).filter(([id]) => !/^[A-Z][a-z]+OnlyInItsFunction/.test(id));
  return { ...template, Resources: Object.fromEntries(kept) };
}

/** MiniStack does not tell policies the region that is asked, so that a condition on it never holds. */
export function withoutRegions(template: Template): Template {
  const text = JSON.stringify(template);
  return JSON.parse(
    text.replaceAll(/,"Condition":\{"StringEquals":\{"aws:RequestedRegion":[^}]*\}\}/g, ''),
  ) as Template;
}

/** The template without what MiniStack cannot judge. */
export function judgedByMiniStack(template: Template): Template {
  return withoutFunctionDenials(withoutKmsConditions(template));
}

/** Each cluster's stacks, after `change`; throws CloudFormation's reasons when one is not made. */
export async function deployOnMiniStack(
  assembly: Assembly,
  options: {
    readonly change?: (template: Template, stack: string) => Template;
    /** What MiniStack gets of the synthesised template. */
    readonly judged?: (template: Template) => Template;
    /** Its stop is the deployment's. */
    readonly emulator?: Emulator;
  } = {},
): Promise<MiniStackDeployment> {
  const {
    change = (template) => template,
    judged = judgedByMiniStack,
    emulator = await startMiniStack({ auth: true }),
  } = options;
  const { client } = emulator;
  try {
    await publishAssets(emulator, assembly);
    // As a cluster gives its relay's pods one. It may assume whatever lets it: who is let in is the other side's to say.
    for (const cluster of assembly.clusters)
      await createRole(emulator, relayRole(cluster), 'sts:AssumeRole', 'sts:TagSession');
    const made: Record<string, Readonly<Record<string, string>>> = {};
    for (const [name, template] of assembly.templates)
      made[name] = await createStack(emulator, name, change(judged(template), name));
    const outputs = Object.fromEntries(
      assembly.clusters.map((cluster) => [cluster, made[stackNames(cluster).service] ?? {}]),
    );

    const arns = new Map<string, string>();
    const session = async (...asked: Parameters<typeof assumeSession>): Promise<SessionCredentials> => {
      const { credentials, arn } = await assumeSession(...asked);
      arns.set(credentials.accessKeyId, arn);
      return credentials;
    };
    const relay = (cluster: string) => session(client, `arn:aws:iam::${account}:role/${relayRole(cluster)}`);
    const assume = (roleArn: string, credentials: SessionCredentials) => session({ ...client, credentials }, roleArn);
    return {
      emulator,
      outputs,
      relay,
      assume,
      arnOf: (accessKeyId) => arns.get(accessKeyId) ?? '',
      async caller(cluster) {
        const roleArn = outputs[cluster]?.['CallerRoleArn'] ?? '';
        // With session tags, which a relay with EKS Pod Identity cannot help bringing.
        return session({ ...client, credentials: await relay(cluster) }, roleArn, { cluster });
      },
      stop: () => emulator.stop(),
    };
  } catch (error) {
    await emulator.stop();
    throw error;
  }
}

/** A role with these permissions that every principal of this account may assume. */
export async function createRole({ client }: Emulator, name: string, ...actions: readonly string[]): Promise<string> {
  const iam = new IAMClient(client);
  const policy = (statement: object): string =>
    JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', ...statement }] });
  try {
    const trust = policy({ Action: 'sts:AssumeRole', Principal: { AWS: `arn:aws:iam::${account}:root` } });
    await iam.send(new CreateRoleCommand({ RoleName: name, AssumeRolePolicyDocument: trust }));
    if (actions.length > 0) {
      const document = policy({ Action: actions, Resource: '*' });
      await iam.send(new PutRolePolicyCommand({ RoleName: name, PolicyName: 'own', PolicyDocument: document }));
    }
    return `arn:aws:iam::${account}:role/${name}`;
  } finally {
    iam.destroy();
  }
}

/** Throws what STS refuses. */
export async function assumeRole(...asked: Parameters<typeof assumeSession>): Promise<SessionCredentials> {
  return (await assumeSession(...asked)).credentials;
}

async function assumeSession(
  client: ConstructorParameters<typeof STSClient>[0],
  roleArn: string,
  tags: Readonly<Record<string, string>> = {},
): Promise<{ readonly credentials: SessionCredentials; readonly arn: string }> {
  const sts = new STSClient(client ?? {});
  try {
    const { Credentials: made, AssumedRoleUser: user } = await sts.send(
      new AssumeRoleCommand({
        RoleArn: roleArn,
        RoleSessionName: 'suite',
        Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })),
      }),
    );
    return {
      credentials: {
        accessKeyId: made?.AccessKeyId ?? '',
        secretAccessKey: made?.SecretAccessKey ?? '',
        sessionToken: made?.SessionToken ?? '',
      },
      arn: user?.Arn ?? '',
    };
  } finally {
    sts.destroy();
  }
}
