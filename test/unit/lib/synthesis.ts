/** Templates as CloudFormation will get them, and a way to read them that does not depend on logical IDs. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import type { Configuration } from '../../../core/configuration/model/cluster.ts';
import { Validations } from 'aws-cdk-lib';
import { createApplication } from '../../../lib/application.ts';
import type { Sources } from '../../../lib/functions.ts';

export const root = resolve(import.meta.dirname, '../../..');

/** Functions of three lines: these tests are about what stands around them. */
export const smallSources: Sources = {
  root,
  sourceMaps: false,
  entries: {
    sign: 'test/unit/lib/entry.ts',
    attest: 'test/unit/lib/entry.ts',
    ca: 'test/unit/lib/entry.ts',
    kubeadm: 'test/unit/lib/entry.ts',
    authorizer: 'test/unit/lib/entry.ts',
  },
};

export interface Resource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
  readonly DependsOn?: readonly string[];
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
}

export interface Template {
  readonly Resources: Readonly<Record<string, Resource>>;
  readonly Outputs?: Readonly<Record<string, { readonly Value: unknown; readonly Export?: { readonly Name: string } }>>;
}

export function configuration(yaml: string): Configuration {
  const parsed = parseConfiguration(yaml, 'countersign.yaml', { toDeploy: true });
  if (!parsed.ok) throw new Error(parsed.problem.map(({ path, message }) => `${path}: ${message}`).join('\n'));
  return parsed.value.configuration;
}

export interface Synthesis {
  readonly templates: ReadonlyMap<string, Template>;
  readonly texts: ReadonlyMap<string, string>;
  /** By stack: what the deployment is told beside the template. */
  readonly manifest: {
    readonly artifacts: Readonly<
      Record<
        string,
        {
          readonly type: string;
          readonly environment?: string;
          readonly dependencies?: readonly string[];
          readonly properties?: Readonly<Record<string, unknown>>;
        }
      >
    >;
  };
  readonly validation: { readonly pluginReports: readonly unknown[] };
  /** What cdk-nag found and was told not to mind: construct and rule. */
  readonly acknowledged: readonly string[];
}

const made = new Map<string, Synthesis>();

/** Of the small sources; once for each text within the process, which several files share. */
export function synthesise(yaml: string): Synthesis {
  const synthesis = made.get(yaml) ?? synthesiseNew(yaml);
  made.set(yaml, synthesis);
  return synthesis;
}

function synthesiseNew(yaml: string): Synthesis {
  const outdir = mkdtempSync(join(tmpdir(), 'countersign-synth-'));
  try {
    const app = createApplication({ configuration: configuration(yaml), sources: smallSources, outdir });
    const assembly = app.synth();
    const read = (file: string): string => readFileSync(join(outdir, file), 'utf8');
    const texts = new Map(assembly.stacks.map(({ stackName, templateFile }) => [stackName, read(templateFile)]));
    return {
      texts,
      templates: new Map([...texts].map(([name, text]) => [name, JSON.parse(text) as Template])),
      manifest: JSON.parse(read('manifest.json')) as Synthesis['manifest'],
      validation: JSON.parse(read('validation-report.json')) as Synthesis['validation'],
      acknowledged: app.node
        .findAll()
        .flatMap(({ node }) =>
          node.metadata
            .filter(({ type }) => type === Validations.ACKNOWLEDGED_RULES_METADATA_KEY)
            .map(({ data }) => `${node.path}: ${JSON.stringify(data)}`),
        ),
    };
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}

export interface Statement {
  readonly Sid?: string;
  readonly Effect: 'Allow' | 'Deny';
  readonly Principal?: unknown;
  readonly Action: string | readonly string[];
  readonly Resource?: unknown;
  readonly Condition?: unknown;
}

export function template({ templates }: Synthesis, stack: string): Template {
  const found = templates.get(stack);
  if (found === undefined) throw new Error(`no stack ${stack}`);
  return found;
}

export function ofType({ Resources: resources }: Template, type: string): [string, Resource][] {
  return Object.entries(resources).filter(([, resource]) => resource.Type === type);
}

/** The only one of its type, or the one whose logical ID begins so. */
export function resource(of: Template, type: string, prefix = ''): [string, Resource] {
  const found = ofType(of, type).filter(([id]) => id.startsWith(prefix));
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} of ${type} ${prefix}*`);
  return found[0];
}

export function statementsOf({ Properties }: Resource, property = 'PolicyDocument'): readonly Statement[] {
  return (Properties[property] as { readonly Statement: readonly Statement[] }).Statement;
}

/**
 * Values as people say them: `{Ref: X}` is `<X>`, GetAtt `<X.Arn>`, an import what the other stack exports under that
 * name, Join and Sub their text; logical IDs without their hash.
 */
export function plain(value: unknown, { templates }: Synthesis): unknown {
  const exported = new Map(
    [...templates.values()].flatMap(({ Outputs: outputs = {} }) =>
      Object.values(outputs).flatMap(({ Value, Export }) =>
        Export === undefined ? [] : [[Export.Name, Value] as const],
      ),
    ),
  );
  const id = (logical: string): string => logical.replace(/[0-9A-F]{8}$/, '');
  const walk = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(walk);
    if (typeof node !== 'object' || node === null) return node;
    const [[key, inner] = ['', undefined], ...more] = Object.entries(node);
    if (more.length === 0) {
      if (key === 'Ref') return `<${id(inner as string)}>`;
      if (key === 'Fn::GetAtt') return `<${id((inner as string[])[0] ?? '')}.${(inner as string[])[1] ?? ''}>`;
      if (key === 'Fn::Join') {
        const [glue, parts] = inner as [string, unknown[]];
        return parts.map(walk).join(glue);
      }
      if (key === 'Fn::ImportValue') {
        const name = String(walk(inner));
        if (!exported.has(name)) throw new Error(`no stack exports ${name}`);
        return `${name.split(':')[0]}${String(walk(exported.get(name)))}`;
      }
      if (key === 'Fn::Select')
        return `<${String((inner as unknown[])[0])} of ${JSON.stringify(walk((inner as unknown[])[1]))}>`;
    }
    return Object.fromEntries(Object.entries(node).map(([name, child]) => [name, walk(child)]));
  };
  return walk(value);
}
