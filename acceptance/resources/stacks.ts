/** Makes, changes, examines and removes stacks through the SDK, with the bucket and the role of `cdk bootstrap`. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CreateStackCommand,
  DeleteStackCommand,
  DescribeStackDriftDetectionStatusCommand,
  DescribeStackEventsCommand,
  DescribeStackResourceDriftsCommand,
  DescribeStackResourcesCommand,
  DetectStackDriftCommand,
  UpdateStackCommand,
  UpdateTerminationProtectionCommand,
} from '@aws-sdk/client-cloudformation';
import type { Stack, StackResource } from '@aws-sdk/client-cloudformation';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { bootstrapBucket, bootstrapRole } from '../../cli/aws/bootstrap.ts';
import { describeStack } from '../../cli/aws/calls.ts';
import { namespaceOf } from '../../lib/observability/metric-names.ts';
import { removeResource } from './retained.ts';
import { alarmsIn, templateKey } from './synthesis.ts';
import type { PlannedStack } from './synthesis.ts';
import type { Place } from '../world/names.ts';
import type { Site } from '../world/step.ts';
import { eventually } from '../world/wait.ts';
import type { LeftBehind } from '../world/undo.ts';

/** Registers its removal first. Resolves to the outputs; throws CloudFormation's reasons if the stack is not made. */
export async function createStack(site: Site, stack: PlannedStack): Promise<Readonly<Record<string, string>>> {
  site.undo.register({
    what: `stack ${stack.name}`,
    command: `aws cloudformation delete-stack --stack-name ${stack.name} --region ${site.place.region}`,
    undo: () => deleteStack(site, stack),
  });
  const input = await inputOf(site, stack);
  await site.aws.formation.send(
    new CreateStackCommand({ ...input, EnableTerminationProtection: stack.terminationProtection }),
  );
  const made = await ended(site, stack.name);
  if (made?.StackStatus !== 'CREATE_COMPLETE') throw new Error(await reasons(site, stack.name, made));
  return Object.fromEntries((made.Outputs ?? []).map(({ OutputKey: id = '', OutputValue: value = '' }) => [id, value]));
}

/** Throws CloudFormation's reasons if the change is rolled back. */
export async function updateStack(site: Site, stack: PlannedStack): Promise<'changed' | 'unchanged'> {
  const input = await inputOf(site, stack);
  site.undo.checkOpen();
  const asked = site.aws.formation.send(new UpdateStackCommand(input)).then(
    () => 'changed' as const,
    (error: unknown) => {
      // CloudFormation has no error code of its own for it.
      if (error instanceof Error && error.message.includes('No updates are to be performed'))
        return 'unchanged' as const;
      throw error;
    },
  );
  const outcome = await asked;
  if (outcome === 'unchanged') return outcome;
  const made = await ended(site, stack.name);
  if (made?.StackStatus !== 'UPDATE_COMPLETE') throw new Error(await reasons(site, stack.name, made));
  return outcome;
}

/** What creating and updating a stack have in common. Puts the template into the bucket. */
async function inputOf({ aws, name, place, emulator }: Site, stack: PlannedStack) {
  const bucket = bootstrapBucket(place);
  const key = templateKey(name, stack.name);
  const host = emulator === undefined ? `https://s3.${place.region}.${dnsSuffix(place)}` : emulator.endpoint;
  await aws.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: stack.template }));
  return {
    StackName: stack.name,
    TemplateURL: `${host}/${bucket}/${key}`,
    RoleARN: bootstrapRole(place),
    Capabilities: ['CAPABILITY_NAMED_IAM' as const],
    Tags: Object.entries(stack.tags).map(([Key, Value]) => ({ Key, Value })),
  };
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

/** Throws what differs from the template, if something does. */
export async function checkDrift(site: Site, StackName: string): Promise<string> {
  const { formation } = site.aws;
  const { StackDriftDetectionId } = await formation.send(new DetectStackDriftCommand({ StackName }));
  const looked = await eventually(site, 10, async () => {
    const status = await formation.send(new DescribeStackDriftDetectionStatusCommand({ StackDriftDetectionId }));
    return status.DetectionStatus === 'DETECTION_IN_PROGRESS' ? undefined : status;
  });
  const { DetectionStatus: ended = 'in progress', StackDriftStatus: drift, DetectionStatusReason: why } = looked ?? {};
  if (ended !== 'DETECTION_COMPLETE') throw new Error(`${ended}: ${why ?? ''}`);
  const { StackResourceDrifts: found = [] } = await formation.send(
    new DescribeStackResourceDriftsCommand({ StackName }),
  );
  if (drift === 'IN_SYNC') {
    const checked = found.filter(({ StackResourceDriftStatus: status }) => status === 'IN_SYNC');
    return `IN_SYNC, ${checked.length} resources compared`;
  }
  const differing = found.filter(
    ({ StackResourceDriftStatus: status }) => status === 'MODIFIED' || status === 'DELETED',
  );
  throw new Error(
    `${drift}: ${differing.map(({ LogicalResourceId: id, StackResourceDriftStatus: status, PropertyDifferences: all = [] }) => `${id} ${status} ${all.map(({ PropertyPath: path }) => path).join(' ')}`).join('; ')}`,
  );
}

/** Physical IDs of the resources of a stack, by logical ID; empty if there is no such stack. */
export async function resourcesOf({ aws }: Site, StackName: string): Promise<ReadonlyMap<string, string>> {
  if ((await describeStack(aws.formation, StackName)) === undefined) return new Map();
  const { StackResources: all = [] } = await aws.formation.send(new DescribeStackResourcesCommand({ StackName }));
  return new Map(all.map(({ LogicalResourceId: id = '', PhysicalResourceId: physical = '' }) => [id, physical]));
}

async function reasons({ aws }: Site, name: string, stack: Stack | undefined): Promise<string> {
  const { StackEvents: events = [] } = await aws.formation.send(new DescribeStackEventsCommand({ StackName: name }));
  const failed = events.flatMap(
    ({ LogicalResourceId: id, ResourceStatus: status = '', ResourceStatusReason: reason }) =>
      status.endsWith('_FAILED') && reason !== undefined ? [`${id}: ${reason}`] : [],
  );
  return `stack ${name} was not made or changed (${stack?.StackStatus ?? 'it is gone'}): ${failed.toReversed().join('; ')}`;
}

async function deleteStack(site: Site, planned: PlannedStack): Promise<LeftBehind[]> {
  const { aws } = site;
  const { name, cluster, retained, terminationProtection } = planned;
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
  if (alarmsIn(planned).length > 0)
    left.push({
      what: `metrics in the namespace ${namespaceOf(cluster)}`,
      why: 'CloudWatch drops them after 15 months, and has no call that removes them; without new data they cost nothing',
      command: '',
      expected: true,
    });
  return left;
}

async function removeRetained(site: Site, resource: StackResource): Promise<readonly LeftBehind[]> {
  const { ResourceType: type = '', PhysicalResourceId: id = '' } = resource;
  return id === '' ? [] : removeResource(site, type, id);
}
