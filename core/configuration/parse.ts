/**
 * Reads countersign.yaml, the reviewed file that says what is signed. It is read strictly (one document, known keys only, no
 * anchors, tags or merge keys), so that each value means what a reviewer sees at its place.
 */
import type { Configuration, ClusterConfiguration, CaConfiguration } from './model/cluster.ts';
import { isAlias, isMap, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import type { Document, Node, Pair } from 'yaml';
import type { z } from 'zod';
import { checkAudiences } from './resolve/attestation.ts';
import { checkCallerRoles } from './resolve/caller-roles.ts';
import { resolveCa, resolveCluster, withDefaults } from './resolve/cluster.ts';
import type { Path } from './model/report.ts';
import { checkCaShape, checkShape, configurationSchema } from './schema/cluster.ts';
import type { ClusterInput } from './schema/cluster.ts';
import { checkDeployments, resolveDeployment } from './resolve/deployment.ts';
import type { DeploymentConfiguration } from './model/deployment.ts';
import { quoted } from '../outcome/printable-text.ts';
import { suggestion } from './suggestion.ts';

/** `path` reads like `clusters.demo.profiles["k8s.example.com/web"].ca`; line and column count from 1. */
export interface Problem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly path: string;
  readonly message: string;
}

export type ParsedConfiguration =
  | { readonly ok: true; readonly configuration: Configuration; readonly warnings: readonly Problem[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Much more than a reviewer can read, much less than what would slow a parser down. */
const maxFileLength = 1_048_576;

/** All problems at once, in the order of the file; `toDeploy` adds those that only matter on AWS. */
export function parseConfiguration(
  yamlText: string,
  fileName: string,
  { toDeploy = false }: { readonly toDeploy?: boolean } = {},
): ParsedConfiguration {
  if (yamlText.length > maxFileLength)
    return {
      ok: false,
      problems: [{ file: fileName, line: 1, column: 1, path: '', message: 'the file is too large' }],
    };
  const lines = new LineCounter();
  const document = parseDocument(yamlText, { version: '1.2', merge: false, lineCounter: lines, prettyErrors: false });
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const add = (list: Problem[], offset: number, path: Path, message: string): void => {
    const { line, col } = lines.linePos(offset);
    const problem = {
      file: fileName,
      line: Math.max(line, 1),
      column: Math.max(col, 1),
      path: pathText(path),
      message,
    };
    // A mistake in `defaults` shows in every cluster: once is enough.
    const same = (other: Problem): boolean =>
      other.line === problem.line &&
      other.column === problem.column &&
      other.path === problem.path &&
      other.message === message;
    if (!list.some(same)) list.push(problem);
  };

  for (const { pos, message } of [...document.errors, ...document.warnings]) add(problems, pos[0], [], message);
  checkPlain(document, (offset, message) => add(problems, offset, [], message));
  if (problems.length > 0) return { ok: false, problems: inOrder(problems) };

  const shape = checkShape(document.toJS({ maxAliasCount: 0 }));
  if (!shape.success) {
    for (const { path, message, key } of shape.error.issues.flatMap(readable))
      add(problems, offsetOf(document, path, key), path, message);
    return { ok: false, problems: inOrder(problems) };
  }

  const clusters = new Map<string, ClusterConfiguration>();
  const deployments = new Map<string, DeploymentConfiguration>();
  const report = (name: string, severity: 'error' | 'warning', path: Path, message: string): void => {
    // Point at where the value was written: in the cluster, else in the defaults, else where it is missing.
    const written = [
      ['clusters', name, ...path],
      ['defaults', ...path],
    ].find((full) => document.hasIn(full));
    const full = written ?? ['clusters', name, ...path];
    add(severity === 'error' ? problems : warnings, offsetOf(document, full, false), full, message);
  };
  for (const [name, own] of Object.entries(shape.data.clusters)) {
    const input = withDefaults(shape.data.defaults ?? {}, own);
    clusters.set(name, resolveCluster(name, input, report.bind(undefined, name)));
    deployments.set(name, resolveDeployment(input, report.bind(undefined, name)));
    checkCallerRoles(input, report.bind(undefined, name));
  }
  checkAudiences(
    [...clusters].map(([name, { attestation }]) => [name, attestation] as const),
    report,
  );
  if (toDeploy) checkDeployments(clusters, deployments, report);
  if (clusters.size === 0) add(problems, offsetOf(document, ['clusters'], true), ['clusters'], 'no cluster is named');
  if (problems.length > 0) return { ok: false, problems: inOrder(problems) };
  return { ok: true, configuration: { clusters, deployments }, warnings: inOrder(warnings) };
}

/** Refuses syntax that changes the meaning of a value elsewhere in the file, and keys that would be lost. */
function checkPlain(document: Document, problem: (offset: number, message: string) => void): void {
  visit(document, (_, node) => {
    const { range, tag, anchor } = (node ?? {}) as { range?: readonly number[]; tag?: string; anchor?: string };
    const offset = range?.[0] ?? 0;
    if (isAlias(node) || anchor !== undefined)
      problem(offset, 'anchors and aliases are not supported; put what clusters share under defaults');
    else if (tag !== undefined) problem(offset, `tags such as ${tag} are not supported`);
    if (!isMap(node)) return;
    for (const { key } of node.items) {
      const keyOffset = (key as Node).range?.[0] ?? offset;
      if (!isScalar(key) || typeof key.value !== 'string') problem(keyOffset, 'a key must be text; put it in quotes');
      // The one key JavaScript objects treat specially, and the schema library skips.
      else if (key.value === '__proto__') problem(keyOffset, 'unknown key "__proto__"');
    }
  });
}

interface ReadableIssue {
  readonly path: Path;
  readonly message: string;
  /** Whether to point at the key rather than at its value. */
  readonly key: boolean;
}

/** An issue of the schema library as text that an operator can act on. */
function readable(issue: z.core.$ZodIssue): ReadableIssue[] {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      path: [...path, key],
      message: `unknown key ${quoted(key)}${didYouMean(key, keysAt(path))}`,
      key: true,
    }));
  if (issue.code === 'invalid_key') return [{ path, message: issue.issues[0]?.message ?? issue.message, key: true }];
  return [{ path, message: shapeMessage(issue), key: false }];
}

function shapeMessage(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type')
    return issue.input === undefined ? 'is required' : `must be ${nouns[issue.expected] ?? issue.expected}`;
  if (issue.code !== 'invalid_value') return issue.message;
  const values = issue.values.map(String);
  const meant = typeof issue.input === 'string' ? suggestion(issue.input, values) : undefined;
  if (meant !== undefined) return `${quoted(String(issue.input))} is not known here; did you mean ${quoted(meant)}?`;
  return `must be ${values.length === 1 ? '' : 'one of '}${values.join(', ')}`;
}

const nouns: Readonly<Record<string, string>> = {
  object: 'a map of keys to values ({} for an empty one)',
  record: 'a map of names to values ({} for an empty one)',
  array: 'a list',
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
};

function didYouMean(word: string, candidates: readonly string[]): string {
  const meant = suggestion(word, candidates);
  if (meant !== undefined) return `; did you mean ${quoted(meant)}?`;
  return candidates.length === 0 ? '' : ` (known: ${candidates.join(', ')})`;
}

/** The keys the schema knows in the map at that path. */
function keysAt(path: Path): readonly string[] {
  type Schema = { properties?: Record<string, Schema>; additionalProperties?: Schema };
  let schema: Schema | undefined = configurationSchema();
  for (const part of path) schema = schema?.properties?.[part] ?? schema?.additionalProperties;
  return Object.keys(schema?.properties ?? {});
}

/** The position of the value or its key; for a missing value, of the key of the map that lacks it. */
function offsetOf(document: Document, path: Path, atKey: boolean): number {
  let node: unknown = document.contents;
  let offset = rangeStart(node) ?? 0;
  for (const [depth, part] of path.entries()) {
    if (isMap(node)) {
      const pair: Pair | undefined = node.items.find(({ key }) => isScalar(key) && key.value === part);
      if (pair === undefined) return offset;
      node = pair.value;
      const keyStart = rangeStart(pair.key) ?? offset;
      const last = depth === path.length - 1;
      offset = last && !atKey && isScalar(node) ? (rangeStart(node) ?? keyStart) : keyStart;
    } else {
      node = document.getIn(path.slice(0, depth + 1), true);
      offset = rangeStart(node) ?? offset;
    }
  }
  return offset;
}

function rangeStart(node: unknown): number | undefined {
  return (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0];
}

function pathText(path: Path): string {
  return path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`;
      if (/^[A-Za-z0-9_-]+$/.test(part)) return index === 0 ? part : `.${part}`;
      return `[${quoted(part)}]`;
    })
    .join('');
}

function inOrder(problems: readonly Problem[]): Problem[] {
  return [...problems].sort((a, b) => a.line - b.line || a.column - b.column);
}

/** The four kubernetes.io signers on one CA, as the in-tree signer has them: for the demo and the dev server. */
export function defaultCluster(
  name: string,
  { maxTtlSeconds, ca = 'ca' }: { readonly maxTtlSeconds: number; readonly ca?: string },
): ClusterConfiguration {
  const profile = { ca, maxTtl: `${maxTtlSeconds}s` };
  const input: ClusterInput = {
    cas: { [ca]: { subject: { commonName: `${name} ${ca}` } } },
    profiles: {
      'kubernetes.io/kube-apiserver-client': profile,
      'kubernetes.io/kube-apiserver-client-kubelet': profile,
      'kubernetes.io/kubelet-serving': profile,
      'kubernetes.io/legacy-unknown': profile,
    },
  };
  return resolveCluster(name, input, (severity, path, message) => {
    if (severity === 'error') throw new RangeError(`${pathText(path)}: ${message}`);
  });
}

/** A CA described by flags instead of a file, checked by the same rules: for `countersign ca init`. */
export function caConfiguration(
  name: string,
  input: Readonly<Record<string, unknown>>,
):
  | { readonly ok: true; readonly ca: CaConfiguration }
  | { readonly ok: false; readonly problems: readonly { readonly key: string; readonly message: string }[] } {
  const problems: { key: string; message: string }[] = [];
  // Paths are `name`, or `ca` and then the key of the CA.
  const add = (path: Path, message: string): void => void problems.push({ key: String(path[1] ?? path[0]), message });
  const shape = checkCaShape(name, input);
  if (!shape.success) {
    for (const { path, message } of shape.error.issues.flatMap(readable)) add(path, message);
    return { ok: false, problems };
  }
  const ca = resolveCa(name, shape.data.ca, (_, [, ...path], message) => add(path, message));
  return problems.length === 0 ? { ok: true, ca } : { ok: false, problems };
}

export { configurationSchema };
