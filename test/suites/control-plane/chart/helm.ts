import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { kubernetesVersion } from '../../../tools/pins.ts';
import { toolPath } from '../../../tools/tools.ts';

const root = resolve(import.meta.dirname, '../../../..');
export const chart = join(root, 'deploy/chart');
export const examples: readonly string[] = readdirSync(join(chart, 'examples'))
  .filter((file) => file.endsWith('.yaml'))
  .toSorted();
export const example = (file: string): string => join(chart, 'examples', file);

export interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
  };
  readonly spec?: Record<string, unknown>;
  readonly rules?: readonly { readonly resources: string[]; readonly resourceNames?: string[]; verbs: string[] }[];
}

/** Runs helm with nothing of the user's own configuration; the error of a failed one carries its standard error. */
export async function helm(args: readonly string[], environment: Record<string, string> = {}): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), 'countersign-helm-'));
  try {
    const { stdout } = await promisify(execFile)(await toolPath('helm'), [...args], {
      timeout: 60_000,
      maxBuffer: 16 * 1024 * 1024,
      env: { PATH: process.env['PATH'], HOME: home, ...environment },
    });
    return stdout;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

export const release = 'countersign-watch-relay';
export const namespace = 'countersign-system';

interface TemplateOptions {
  readonly release?: string;
  readonly namespace?: string;
  readonly show?: readonly string[];
  /** With the objects of `helm test`. */
  readonly tests?: true;
  readonly values?: object;
}

const rendered = new Map<string, Promise<string>>();

/** What `helm template` prints. The same question is asked by many tests: helm answers it once. */
export function template(valuesFile: string, options: TemplateOptions = {}): Promise<string> {
  const key = JSON.stringify([valuesFile, options]);
  const text = rendered.get(key) ?? render(valuesFile, options);
  rendered.set(key, text);
  return text;
}

function render(valuesFile: string, options: TemplateOptions): Promise<string> {
  return withValues(options.values, (more) =>
    helm([
      'template',
      options.release ?? release,
      chart,
      '--namespace',
      options.namespace ?? namespace,
      '--kube-version',
      kubernetesVersion,
      '--values',
      valuesFile,
      ...more,
      ...(options.tests === true ? [] : ['--skip-tests']),
      ...(options.show ?? []).flatMap((name) => ['--show-only', `templates/${name}`]),
    ]),
  );
}

/** Further values as a file: what `--set` makes of commas and dots is its own affair. */
async function withValues<T>(values: object | undefined, use: (args: string[]) => Promise<T>): Promise<T> {
  if (values === undefined) return use([]);
  const folder = mkdtempSync(join(tmpdir(), 'countersign-values-'));
  try {
    const file = join(folder, 'values.json');
    writeFileSync(file, JSON.stringify(values));
    return await use(['--values', file]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function objects(text: string): Rendered[] {
  return parseAllDocuments(text)
    .map((document) => {
      const [problem] = document.errors;
      if (problem !== undefined) throw problem;
      return document.toJS() as Rendered | null;
    })
    .filter((object) => object !== null);
}

export interface PodTemplate {
  readonly metadata: { readonly labels: Record<string, string>; readonly annotations?: Record<string, string> };
  readonly spec: PodSpec;
}
export interface PodSpec {
  readonly serviceAccountName: string;
  readonly hostNetwork?: boolean;
  readonly securityContext: Record<string, unknown>;
  readonly containers: readonly {
    readonly image: string;
    readonly args: readonly string[];
    readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: unknown }[];
    readonly resources: { readonly limits: { readonly memory: string } };
    readonly securityContext: Record<string, unknown>;
    readonly [key: string]: unknown;
  }[];
  readonly [key: string]: unknown;
}

export function podTemplate(rendered: readonly Rendered[]): PodTemplate {
  const deployment = rendered.find(({ kind }) => kind === 'Deployment');
  if (deployment === undefined) throw new Error('no Deployment rendered');
  return deployment.spec?.['template'] as PodTemplate;
}
