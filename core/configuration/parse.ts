/**
 * Reads countersign.yaml, the reviewed file that decides what is signed. It is read strictly (one document, known keys only, no
 * anchors, tags or merge keys), so that each value means what a reviewer sees at its place.
 */
import { isAlias, isMap, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import type { Document, Node } from 'yaml';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import type { CaConfiguration, ClusterConfiguration, Configuration } from './model/cluster.ts';
import type { DeploymentConfiguration } from './model/deployment.ts';
import { placeOf } from './fields/place.ts';
import type { Path, Place } from './fields/place.ts';
import { otherFile } from './other-file.ts';
import { offsetOf, pathText, problemList } from './problem-list.ts';
import type { Problem, ProblemList } from './problem-list.ts';
import { readableRest } from './readable-rest.ts';
import { checkClusterObjects } from './providers/cluster-api.ts';
import { checkAudiences } from './resolve/attestation.ts';
import { checkCallerRoles } from './resolve/caller-roles.ts';
import { resolveCa } from './resolve/ca.ts';
import { resolveCluster, withDefaults } from './resolve/cluster.ts';
import { checkDeployments, resolveDeployment } from './resolve/deployment.ts';
import { checkShape } from './schema-issues.ts';
import { fileShape, namedCaShape } from './schema/cluster.ts';
import type { WrittenFile } from './schema/cluster.ts';

export type ParsedConfiguration = Result<
  { readonly configuration: Configuration; readonly warnings: readonly Problem[] },
  readonly Problem[]
>;

/** More than a reviewer can read, and too little to slow the parser down. */
const maxFileLength = 1_048_576;

/** Reports all problems at once, in the order of the file; with `toDeploy` also those that matter only on AWS. */
export function parseConfiguration(
  yamlText: string,
  fileName: string,
  { toDeploy = false }: { readonly toDeploy?: boolean } = {},
): ParsedConfiguration {
  const lines = new LineCounter();
  const problems = problemList(fileName, lines);
  const warnings = problemList(fileName, lines);
  const failed = (): ParsedConfiguration => failure(problems.sorted());

  if (yamlText.length > maxFileLength) {
    problems.add(0, [], 'the file is too large');
    return failed();
  }
  const document = parseDocument(yamlText, { version: '1.2', merge: false, lineCounter: lines, prettyErrors: false });
  const other = otherFile({ text: yamlText, ...contentsOf(document) });
  if (other !== undefined) {
    problems.add(0, [], other);
    return failed();
  }
  checkSyntax(document, problems);
  if (!problems.isEmpty()) return failed();

  const shape = readShape(document, problems);
  if (shape === undefined) return failed();
  const { input, unsure } = shape;

  const atClusters = placeOf((severity, path, message) => {
    const full = writtenPath(document, path);
    if (unsure.some((above) => above.every((part, index) => full[index] === part))) return;
    (severity === 'error' ? problems : warnings).add(offsetOf(document, full, false), full, message);
  });
  const configuration = resolve(input, toDeploy, atClusters);
  if (configuration.clusters.size === 0)
    problems.add(offsetOf(document, ['clusters'], true), ['clusters'], 'no cluster is named');
  return problems.isEmpty() ? success({ configuration, warnings: warnings.sorted() }) : failed();
}

function checkSyntax(document: Document.Parsed, problems: ProblemList): void {
  for (const { pos, message } of [...document.errors, ...document.warnings]) problems.add(pos[0], [], message);
  checkPlainYaml(document, (offset, message) => problems.add(offset, [], message));
}

function contentsOf({ contents, errors }: Document.Parsed): Omit<Parameters<typeof otherFile>[0], 'text'> {
  const hasSyntaxErrors = errors.length > 0;
  if (!isMap(contents)) return { keys: undefined, kind: undefined, hasSyntaxErrors };
  const keys = contents.items.map(({ key }) => (isScalar(key) ? key.value : undefined));
  return { keys, kind: contents.get('kind'), hasSyntaxErrors };
}

/** With problems: the rest of the file, of which `unsure` names the parts that depend on them. */
function readShape(
  document: Document,
  problems: ProblemList,
): { readonly input: WrittenFile; readonly unsure: readonly Path[] } | undefined {
  const value: unknown = document.toJS({ maxAliasCount: 0 });
  const shape = checkShape(fileShape, value);
  if (shape.ok) return { input: shape.value, unsure: [] };
  for (const { path, message, key } of shape.problem) problems.add(offsetOf(document, path, key), path, message);
  const wrong = shape.problem.map(({ path }) => path);
  const rest = readableRest(value, wrong);
  if (rest === undefined) return undefined;
  const again = checkShape(fileShape, rest.value);
  return again.ok ? { input: again.value, unsure: rest.unsure } : undefined;
}

/** `at`: the map of clusters. */
function resolve({ defaults = {}, clusters: written }: WrittenFile, toDeploy: boolean, at: Place): Configuration {
  const clusters = new Map<string, ClusterConfiguration>();
  const deployments = new Map<string, DeploymentConfiguration>();
  for (const [name, own] of Object.entries(written)) {
    const input = withDefaults(defaults, own);
    clusters.set(name, resolveCluster(name, input, at(name)));
    deployments.set(name, resolveDeployment(input, at(name)));
    checkCallerRoles(input, at(name));
  }
  checkAudiences(clusters, at);
  checkClusterObjects(clusters, at);
  if (toDeploy) checkDeployments(clusters, deployments, at);
  return { clusters, deployments };
}

/** The path at which the value was written: in the cluster, otherwise in the defaults. A missing value belongs to the cluster. */
function writtenPath(document: Document, [cluster = '', ...path]: Path): Path {
  const own = ['clusters', cluster, ...path];
  return [own, ['defaults', ...path]].find((full) => document.hasIn(full)) ?? own;
}

/** Refuses syntax that changes the meaning of a value elsewhere in the file, and keys that a parser would drop. */
function checkPlainYaml(document: Document, problem: (offset: number, message: string) => void): void {
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
      // JavaScript objects treat this key specially, and the schema library skips it.
      else if (key.value === '__proto__') problem(keyOffset, 'unknown key "__proto__"');
    }
  });
}

/** A cluster with the four kubernetes.io signers on one CA, as in kube-controller-manager: used without a file, and in tests. */
export function defaultCluster(
  name: string,
  { maxTtlSeconds, ca = 'ca' }: { readonly maxTtlSeconds?: number; readonly ca?: string } = {},
): ClusterConfiguration {
  const profile = { ca, ...(maxTtlSeconds === undefined ? {} : { maxTtl: `${maxTtlSeconds}s` }) };
  const written = {
    cas: { [ca]: { subject: { commonName: `${name} ${ca}` } } },
    profiles: {
      'kubernetes.io/kube-apiserver-client': profile,
      'kubernetes.io/kube-apiserver-client-kubelet': profile,
      'kubernetes.io/kubelet-serving': profile,
      'kubernetes.io/legacy-unknown': profile,
    },
  };
  const at = placeOf((severity, path, message) => {
    if (severity === 'error') throw new RangeError(`${pathText(path)}: ${message}`);
  });
  return resolveCluster(name, withDefaults({}, written), at);
}

/** A problem of a cluster that was written as a value: `path` is inside the cluster, empty for its name. */
export interface ClusterProblem {
  readonly path: string;
  readonly message: string;
}

/** A cluster that was written as a value instead of a file: the same schema and the same checks, to deploy it. */
export function checkCluster(
  name: string,
  value: unknown,
): Result<
  {
    readonly cluster: ClusterConfiguration;
    readonly deployment: DeploymentConfiguration;
    readonly warnings: readonly ClusterProblem[];
  },
  readonly ClusterProblem[]
> {
  const shape = checkShape(fileShape, { version: 1, clusters: { [name]: value } });
  // The path of a problem is `clusters`, the name, and a path inside the cluster.
  if (!shape.ok) return failure(shape.problem.map(({ path, message }) => ({ path: pathText(path.slice(2)), message })));
  const problems: ClusterProblem[] = [];
  const warnings: ClusterProblem[] = [];
  const atClusters = placeOf((severity, [, ...path], message) => {
    (severity === 'error' ? problems : warnings).push({ path: pathText(path), message });
  });
  const { clusters, deployments } = resolve(shape.value, true, atClusters);
  const [cluster, deployment] = [clusters.get(name), deployments.get(name)];
  if (problems.length > 0 || cluster === undefined || deployment === undefined) return failure(problems);
  return success({ cluster, deployment, warnings });
}

/** The CA that the flags of `countersign ca init` describe, checked by the same rules as a CA in a file. */
export function caConfiguration(
  name: string,
  input: Readonly<Record<string, unknown>>,
): Result<CaConfiguration, readonly { readonly key: string; readonly message: string }[]> {
  const written = { name, ca: input };
  const shape = checkShape(namedCaShape, written);
  // The path of a problem is `name`, or `ca` and a key of the CA.
  if (!shape.ok)
    return failure(shape.problem.map(({ path, message }) => ({ key: String(path[1] ?? path[0]), message })));
  const problems: { key: string; message: string }[] = [];
  const at = placeOf((_, [key = ''], message) => problems.push({ key: String(key), message }));
  const ca = resolveCa(name, namedCaShape.parse(written).ca, at);
  return problems.length === 0 ? success(ca) : failure(problems);
}

export { configurationSchema } from './schema/cluster.ts';
