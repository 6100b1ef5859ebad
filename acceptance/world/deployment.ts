/**
 * The stacks of lib/, synthesised here and made through the SDK, so that AWS and the emulators meet the same calls: assets in
 * the bucket of `cdk bootstrap`, stacks by CloudFormation with the role of `cdk bootstrap`.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CreateStackCommand,
  DeleteStackCommand,
  DescribeStackEventsCommand,
  DescribeStackResourcesCommand,
  UpdateTerminationProtectionCommand,
} from '@aws-sdk/client-cloudformation';
import type { Stack, StackResource } from '@aws-sdk/client-cloudformation';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { bootstrapBucket, bootstrapRole } from '../../cli/aws/bootstrap.ts';
import { describeStack } from '../../cli/aws/calls.ts';
import { createApplication } from '../../lib/application.ts';
import { entries } from '../../lib/functions.ts';
import { zip } from '../../test/harness/lambda/zip.ts';
import type { ClusterPlan } from './clusters.ts';
import { removeResource } from './retained.ts';
import type { Place } from './names.ts';
import type { Emulated, Site } from './step.ts';
import type { LeftBehind } from './undo.ts';

export interface PlannedStack {
  readonly name: string;
  readonly cluster: string;
  readonly template: string;
  /** Logical IDs of the resources that outlive the stack. */
  readonly retained: ReadonlySet<string>;
  readonly tags: Readonly<Record<string, string>>;
  readonly terminationProtection: boolean;
}

export interface Assembly {
  /** In the order in which they are made. */
  readonly stacks: readonly PlannedStack[];
  /** By object key. */
  readonly assets: ReadonlyMap<string, Buffer>;
}

interface Resource {
  readonly DeletionPolicy?: string;
}

const root = resolve(import.meta.dirname, '../..');

export function synthesise({ configuration }: ClusterPlan, emulator: Emulated | undefined): Assembly {
  const outdir = mkdtempSync(join(tmpdir(), 'countersign-acceptance-'));
  try {
    const sources = {
      root,
      entries,
      sourceMaps: false,
      ...(emulator === undefined ? {} : { emulatedAws: true as const }),
    };
    const { stacks } = createApplication({ configuration, sources, outdir }).synth();
    const assets = new Map<string, Buffer>();
    const read = (name: string): unknown => JSON.parse(readFileSync(join(outdir, name), 'utf8'));
    const planned = stacks.map(({ stackName, templateFile, tags, terminationProtection, id }) => {
      const template = read(templateFile) as { readonly Resources: Readonly<Record<string, Resource>> };
      const { files } = read(`${id}.assets.json`) as AssetManifest;
      for (const { source, destinations } of Object.values(files))
        for (const { objectKey } of Object.values(destinations))
          if (source.packaging === 'zip') assets.set(objectKey, zip(filesOf(join(outdir, source.path))));
      return {
        name: stackName,
        cluster: tags['countersign:cluster'] ?? '',
        template: JSON.stringify(emulator?.adapt(template) ?? template),
        retained: new Set(
          Object.entries(template.Resources).flatMap(([logical, { DeletionPolicy: policy }]) =>
            policy === 'Retain' ? [logical] : [],
          ),
        ),
        tags,
        terminationProtection: terminationProtection === true,
      };
    });
    return { stacks: planned, assets };
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}

interface AssetManifest {
  readonly files: Readonly<
    Record<
      string,
      {
        readonly source: { readonly path: string; readonly packaging: string };
        readonly destinations: Readonly<Record<string, { readonly objectKey: string }>>;
      }
    >
  >;
}

function filesOf(folder: string): ReadonlyMap<string, Buffer> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

export async function publishAssets({ aws, place }: Site, { assets }: Assembly): Promise<void> {
  for (const [key, body] of assets)
    await aws.s3.send(new PutObjectCommand({ Bucket: bootstrapBucket(place), Key: key, Body: body }));
}

/** Registers its removal first. Resolves to the outputs; throws CloudFormation's reasons if the stack is not made. */
export async function createStack(site: Site, stack: PlannedStack): Promise<Readonly<Record<string, string>>> {
  const { aws, place, undo, emulator } = site;
  const bucket = bootstrapBucket(place);
  const key = `${site.name}/${stack.name}.json`;
  const host = emulator === undefined ? `https://s3.${place.region}.${dnsSuffix(place)}` : emulator.endpoint;
  undo.register({
    what: `stack ${stack.name}`,
    command: `aws cloudformation delete-stack --stack-name ${stack.name} --region ${place.region}`,
    undo: () => deleteStack(site, stack),
  });
  await aws.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: stack.template }));
  await aws.formation.send(
    new CreateStackCommand({
      StackName: stack.name,
      TemplateURL: `${host}/${bucket}/${key}`,
      RoleARN: bootstrapRole(place),
      Capabilities: ['CAPABILITY_NAMED_IAM'],
      EnableTerminationProtection: stack.terminationProtection,
      Tags: Object.entries(stack.tags).map(([Key, Value]) => ({ Key, Value })),
    }),
  );
  const made = await ended(site, stack.name);
  if (made?.StackStatus !== 'CREATE_COMPLETE') throw new Error(await reasons(site, stack.name, made));
  return Object.fromEntries((made.Outputs ?? []).map(({ OutputKey: id = '', OutputValue: value = '' }) => [id, value]));
}

function dnsSuffix({ partition }: Place): string {
  return { 'aws-cn': 'amazonaws.com.cn', 'aws-eusc': 'amazonaws.eu' }[partition] ?? 'amazonaws.com';
}

/** When nothing is in progress any more. */
async function ended(site: Site, name: string): Promise<Stack | undefined> {
  for (;;) {
    const stack = await describeStack(site.aws.formation, name);
    if (!(stack?.StackStatus ?? '').endsWith('_IN_PROGRESS')) return stack;
    await sleep(site.pollMilliseconds);
  }
}

async function reasons({ aws }: Site, name: string, stack: Stack | undefined): Promise<string> {
  const { StackEvents: events = [] } = await aws.formation.send(new DescribeStackEventsCommand({ StackName: name }));
  const failed = events.flatMap(
    ({ LogicalResourceId: id, ResourceStatus: status = '', ResourceStatusReason: reason }) =>
      status.endsWith('_FAILED') && reason !== undefined ? [`${id}: ${reason}`] : [],
  );
  return `stack ${name} was not made (${stack?.StackStatus ?? 'it is gone'}): ${failed.toReversed().join('; ')}`;
}

async function deleteStack(site: Site, { name, retained, terminationProtection }: PlannedStack): Promise<LeftBehind[]> {
  const { aws } = site;
  const stack = await ended(site, name);
  if (stack === undefined) return [];
  const { StackResources: resources = [] } = await aws.formation.send(
    new DescribeStackResourcesCommand({ StackName: name }),
  );
  if (terminationProtection)
    await aws.formation.send(
      new UpdateTerminationProtectionCommand({ StackName: name, EnableTerminationProtection: false }),
    );
  await aws.formation.send(new DeleteStackCommand({ StackName: name }));
  // By its ID, since a deleted stack has no name. An emulator may forget it at once.
  const after = await ended(site, stack.StackId ?? name);
  if (after !== undefined && after.StackStatus !== 'DELETE_COMPLETE')
    throw new Error(`${after.StackStatus}: ${after.StackStatusReason ?? ''}`);
  const left: LeftBehind[] = [];
  for (const resource of resources.filter(({ LogicalResourceId: id = '' }) => retained.has(id)))
    left.push(...(await removeRetained(site, resource)));
  return left;
}

async function removeRetained(site: Site, resource: StackResource): Promise<readonly LeftBehind[]> {
  const { ResourceType: type = '', PhysicalResourceId: id = '' } = resource;
  return id === '' ? [] : removeResource(site, type, id);
}
