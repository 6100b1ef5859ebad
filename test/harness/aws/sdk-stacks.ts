/**
 * This project's templates as they are synthesised, made into stacks through the SDK: an emulator that checks permissions
 * refuses what `cdk deploy` does with assets, and takes the same templates this way.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  CloudFormationClient,
  CreateStackCommand,
  DescribeStackEventsCommand,
  DescribeStacksCommand,
} from '@aws-sdk/client-cloudformation';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { PutParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import { stackNames } from '../../../core/configuration/resolve/deployment.ts';
import { createApplication } from '../../../lib/application.ts';
import { entries } from '../../../lib/functions.ts';
import type { Emulator } from './emulator.ts';
import { temporaryFolder } from '../processes/processes.ts';
import { zip } from '../../../acceptance/resources/zip.ts';

const root = resolve(import.meta.dirname, '../../..');
/** What `cdk bootstrap` leaves for every stack to look up. */
const bootstrapVersion = '/cdk-bootstrap/hnb659fds/version';

/** As much of a CloudFormation template as tests look into. */
export interface Template {
  readonly Resources: Readonly<Record<string, TemplateResource>>;
}

export interface TemplateResource {
  readonly Type: string;
  readonly Properties?: Readonly<Record<string, unknown>>;
}

export interface Assembly {
  readonly clusters: readonly string[];
  /** By stack name, in the order in which they are made. */
  readonly templates: ReadonlyMap<string, Template>;
  /** By object key, as zip archives. */
  readonly assets: ReadonlyMap<string, Buffer>;
  /** The files of each, by the same keys. */
  readonly code: ReadonlyMap<string, ReadonlyMap<string, Buffer>>;
  readonly bucket: string;
}

interface AssetManifest {
  readonly files: Readonly<
    Record<
      string,
      {
        readonly source: { readonly path: string; readonly packaging: string };
        readonly destinations: Readonly<Record<string, { readonly bucketName: string; readonly objectKey: string }>>;
      }
    >
  >;
}

/** What `cdk synth` writes for this countersign.yaml, with functions that find an emulator by their environment. */
export function synthesise(configuration: string): Assembly {
  const parsed = parseConfiguration(configuration, 'countersign.yaml', { toDeploy: true });
  if (!parsed.ok) throw new Error(parsed.problem.map(({ message }) => message).join('; '));
  const folder = temporaryFolder('assembly');
  try {
    const sources = { root, entries, sourceMaps: false, emulatedAws: true } as const;
    createApplication({ configuration: parsed.value.configuration, sources, outdir: folder.path }).synth();
    const read = (name: string): unknown => JSON.parse(readFileSync(join(folder.path, name), 'utf8'));
    const clusters = [...parsed.value.configuration.clusters.keys()];
    const names = clusters.flatMap((name) => [stackNames(name).state, stackNames(name).service]);
    const templates = new Map(names.map((name) => [name, read(`${name}.template.json`) as Template]));
    const code = new Map<string, ReadonlyMap<string, Buffer>>();
    let bucket = '';
    for (const name of names)
      for (const { source, destinations } of Object.values((read(`${name}.assets.json`) as AssetManifest).files))
        for (const { bucketName, objectKey } of Object.values(destinations)) {
          if (source.packaging !== 'zip') continue;
          code.set(objectKey, filesOf(join(folder.path, source.path)));
          bucket = bucketName;
        }
    const assets = new Map([...code].map(([key, files]) => [key, zip(files)]));
    return { clusters, templates, assets, code, bucket };
  } finally {
    folder.remove();
  }
}

function filesOf(folder: string): ReadonlyMap<string, Buffer> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

/** Once for each emulator, before stacks: the part of `cdk bootstrap` that templates and `cdk deploy` rely on. */
export async function leaveBootstrap({ client }: Emulator, bucket: string): Promise<void> {
  const [s3, ssm] = [new S3Client({ ...client, forcePathStyle: true }), new SSMClient(client)];
  try {
    await ssm.send(new PutParameterCommand({ Name: bootstrapVersion, Value: '32', Type: 'String', Overwrite: true }));
    await s3.send(new CreateBucketCommand({ Bucket: bucket }));
  } finally {
    s3.destroy();
    ssm.destroy();
  }
}

/** The same, and the part of publishing that `cdk deploy` does. */
export async function publishAssets(emulator: Emulator, { assets, bucket }: Assembly): Promise<void> {
  await leaveBootstrap(emulator, bucket);
  const s3 = new S3Client({ ...emulator.client, forcePathStyle: true });
  try {
    for (const [key, body] of assets) await s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));
  } finally {
    s3.destroy();
  }
}

/** CloudFormation takes larger templates from S3 only; `cdk deploy` puts all of them there. */
const longestBody = 51_200;

/** As CloudFormation takes it: itself, or where it was put. */
async function templateSource(
  { client, url }: Emulator,
  name: string,
  template: Template,
): Promise<{ readonly TemplateBody: string } | { readonly TemplateURL: string }> {
  const body = JSON.stringify(template);
  if (body.length <= longestBody) return { TemplateBody: body };
  const s3 = new S3Client({ ...client, forcePathStyle: true });
  try {
    const bucket = `templates-${name}`;
    await s3.send(new CreateBucketCommand({ Bucket: bucket }));
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'template.json', Body: body }));
    return { TemplateURL: `${url}/${bucket}/template.json` };
  } finally {
    s3.destroy();
  }
}

/** Resolves with the outputs when the stack is whole; throws with the reasons if it cannot be made. */
export async function createStack(
  emulator: Emulator,
  name: string,
  template: Template,
): Promise<Readonly<Record<string, string>>> {
  const cloudFormation = new CloudFormationClient(emulator.client);
  try {
    await cloudFormation.send(
      new CreateStackCommand({
        StackName: name,
        ...(await templateSource(emulator, name, template)),
        Capabilities: ['CAPABILITY_NAMED_IAM'],
        OnFailure: 'DO_NOTHING',
      }),
    );
    for (let tries = 0; tries < 300; tries++) {
      const { Stacks: [stack] = [] } = await cloudFormation.send(new DescribeStacksCommand({ StackName: name }));
      if (stack?.StackStatus === 'CREATE_COMPLETE')
        return Object.fromEntries(
          (stack.Outputs ?? []).map(({ OutputKey: key = '', OutputValue: value = '' }) => [key, value]),
        );
      if (stack?.StackStatus !== 'CREATE_IN_PROGRESS') break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const { StackEvents: events = [] } = await cloudFormation.send(new DescribeStackEventsCommand({ StackName: name }));
    const reasons = events.flatMap(({ LogicalResourceId: id, ResourceStatusReason: reason }) =>
      reason === undefined || reason === '' ? [] : [`${id}: ${reason}`],
    );
    throw new Error(`stack ${name} was not made: ${reasons.join('; ')}`);
  } finally {
    cloudFormation.destroy();
  }
}
