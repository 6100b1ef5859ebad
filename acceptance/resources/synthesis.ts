/** The stacks of lib/, synthesised here, with their code as objects of the bucket of `cdk bootstrap`. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DeleteObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { bootstrapBucket } from '../../cli/aws/bootstrap.ts';
import type { Configuration } from '../../core/configuration/model/cluster.ts';
import { createApplication } from '../../lib/application.ts';
import { entries } from '../../lib/functions.ts';
import type { Site } from '../world/step.ts';
import { zip } from './zip.ts';

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
  /** By object key, without the name of the run. */
  readonly assets: ReadonlyMap<string, Buffer>;
}

interface Resource {
  readonly DeletionPolicy?: string;
}

const root = resolve(import.meta.dirname, '../..');

/**
 * Everything that is put into the bucket has keys that begin with the name of the run, so that the login may write and remove
 * nothing else there.
 */
export function synthesise({ name, emulator }: Site, configuration: Configuration): Assembly {
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
      const adapted = JSON.stringify(emulator?.adapt(template) ?? template);
      return {
        name: stackName,
        cluster: tags['countersign:cluster'] ?? '',
        template: [...assets.keys()].reduce((text, key) => text.replaceAll(key, `${name}/${key}`), adapted),
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

export function alarmsIn({ template }: PlannedStack): readonly string[] {
  const { Resources: resources } = JSON.parse(template) as {
    readonly Resources: Readonly<Record<string, { readonly Properties?: { readonly AlarmName?: string } }>>;
  };
  return Object.values(resources).flatMap(({ Properties: properties }) => properties?.AlarmName ?? []);
}

export function templateKey(run: string, stack: string): string {
  return `${run}/${stack}.json`;
}

/** Registers the removal of the code and of the templates first. */
export async function publishAssets({ aws, place, name, undo }: Site, { assets, stacks }: Assembly): Promise<void> {
  const Bucket = bootstrapBucket(place);
  const code = [...assets].map(([key, body]) => [`${name}/${key}`, body] as const);
  const keys = [...code.map(([key]) => key), ...stacks.map((stack) => templateKey(name, stack.name))];
  undo.register({
    what: `${keys.length} objects under ${Bucket}/${name}/`,
    command: `aws s3 rm --recursive s3://${Bucket}/${name}/`,
    async undo() {
      for (const Key of keys) await aws.s3.send(new DeleteObjectCommand({ Bucket, Key }));
      return [];
    },
  });
  for (const [Key, Body] of code) await aws.s3.send(new PutObjectCommand({ Bucket, Key, Body }));
}
