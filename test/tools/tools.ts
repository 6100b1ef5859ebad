import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { buildGoTool, buildNpmTool, buildPythonTool, fetchMavenTool, firstLine } from './build.ts';
import type { GoRecipe, MavenRecipe, NpmRecipe, PythonRecipe } from './build.ts';
import { withCacheLock } from './cache-lock.ts';
import { kubernetesMinor, pinsDigest } from './pins.ts';

/**
 * The real components the tests run against, and how each gets onto this machine.
 *
 * Order of search: KUBEBUILDER_ASSETS (the envtest convention), our cache folder, and at last a build from the pinned
 * sources beside this file. Versions are in the go.mod, requirements.txt, pom.xml and package.json files only.
 */
const RECIPES = {
  etcd: go('kubernetes', 'go.etcd.io/etcd/server/v3', '1 min', ['--version']),
  'kube-apiserver': go('kubernetes', 'k8s.io/kubernetes/cmd/kube-apiserver', '3 min', ['--version']),
  'kube-controller-manager': go('kubernetes', 'k8s.io/kubernetes/cmd/kube-controller-manager', '1 min'),
  kubectl: go('kubernetes', 'k8s.io/kubernetes/cmd/kubectl', '1 min', ['version', '--client']),
  kubeadm: go('kubernetes', 'k8s.io/kubernetes/cmd/kubeadm', '1 min'),
  kubelet: go('kubernetes', 'k8s.io/kubernetes/cmd/kubelet', '1 min'),
  zlint: go('zlint', 'github.com/zmap/zlint/v3/cmd/zlint', '1 min'),
  helm: go('helm', 'helm.sh/helm/v4/cmd/helm', '2 min'),
  // `path` of this one is the Python interpreter that can import it: scripts in a venv hold absolute paths.
  pkilint: { kind: 'python', folder: 'pkilint', roughly: '15 s' },
  localstack: { kind: 'python', folder: 'localstack', roughly: '1 min', python: '3.13' },
  ministack: { kind: 'python', folder: 'ministack', roughly: '20 s' },
  'aws-cli': { kind: 'python', folder: 'aws-cli', roughly: '30 s', platform: 'linux' },
  // `path` of this one is the folder of its jars; Java itself is the machine's.
  'dynamodb-local': { kind: 'maven', folder: 'dynamodb-local', roughly: '30 s' },
  // AWS builds both for Linux only. `path` of the first is the interpreter beside it, of the second its own folder.
  'lambda-rie': { kind: 'python', folder: 'lambda-rie', roughly: '10 s', platform: 'linux' },
  'lambda-ric': { kind: 'npm', folder: 'lambda-ric', package: 'aws-lambda-ric', roughly: '1 min', platform: 'linux' },
} as const satisfies Record<string, Recipe>;

export type ToolName = keyof typeof RECIPES;
export const toolNames = Object.keys(RECIPES) as ToolName[];

/** Where a tool is, or, in a sentence for the user, why it cannot be had here. */
export type ToolLocation = { path: string } | { missing: string };

type Recipe = GoRecipe | PythonRecipe | MavenRecipe | NpmRecipe;

function go(folder: string, goPackage: string, roughly: string, versionArgs?: readonly string[]): GoRecipe {
  return { kind: 'go', folder, package: goPackage, roughly, versionArgs };
}

const located = new Map<ToolName, Promise<ToolLocation>>();

/** Finds or builds one tool. The first build of the Kubernetes tools takes minutes and says so on standard error. */
export function ensureTool(name: ToolName): Promise<ToolLocation> {
  const known = located.get(name) ?? locate(name);
  located.set(name, known);
  return known;
}

/** The same for code that cannot do without. */
export async function toolPath(name: ToolName): Promise<string> {
  const location = await ensureTool(name);
  if ('missing' in location) throw new Error(location.missing);
  return location.path;
}

/**
 * For the top of a suite: `const { skip } = await requireTools('etcd', 'kube-apiserver')`, then
 * `describe.skipIf(skip)(…)`. In CI a missing tool is an error: a suite that quietly stopped running looks green.
 */
export async function requireTools(...names: ToolName[]): Promise<{ skip: boolean }> {
  const missing: string[] = [];
  for (const name of names) {
    const location = await ensureTool(name); // one after the other: builds are heavy
    if ('missing' in location) missing.push(location.missing);
  }
  if (missing.length === 0) return { skip: false };
  if (inContinuousIntegration()) throw new Error(`CI must have every test tool:\n${missing.join('\n')}`);
  console.warn(`Skipped, because a tool is missing:\n${missing.join('\n')}`);
  return { skip: true };
}

export function inContinuousIntegration(): boolean {
  return !['', '0', 'false'].includes(process.env['CI'] ?? '');
}

/** Outside the repository, so that a fresh clone does not build everything again. */
export function cacheFolder(): string {
  const configured = process.env['COUNTERSIGN_TOOLS_CACHE'];
  if (configured) return configured;
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'countersign', 'tools');
}

async function locate(name: ToolName): Promise<ToolLocation> {
  const recipe: Recipe = RECIPES[name];
  const asset = recipe.kind === 'go' ? kubebuilderAsset(name, recipe) : undefined;
  if (asset !== undefined) return { path: asset };

  const entry = join(cacheFolder(), `${recipe.folder}-${pinsDigest(recipe.folder)}`);
  const path = pathIn(entry, name, recipe);
  if (existsSync(path)) return { path };

  return withCacheLock(
    cacheFolder(),
    () => progress(`${name}: another process is building tools in ${cacheFolder()}, waiting for it`),
    async () => {
      if (existsSync(path)) return { path }; // built by the process we waited for
      const failure = await build(name, recipe, entry, path);
      return failure === undefined ? { path } : { missing: `${name}: ${failure}` };
    },
  );
}

function pathIn(entry: string, name: ToolName, recipe: Recipe): string {
  switch (recipe.kind) {
    case 'go':
      return join(entry, name);
    case 'python':
      return join(entry, 'bin', 'python');
    case 'maven':
      return entry;
    case 'npm':
      return join(entry, 'node_modules', recipe.package);
  }
}

function build(name: ToolName, recipe: Recipe, entry: string, path: string): Promise<string | undefined> {
  switch (recipe.kind) {
    case 'go':
      return buildGoTool(name, recipe, path, progress);
    case 'python':
      return buildPythonTool(name, recipe, entry, progress);
    case 'maven':
      return fetchMavenTool(name, recipe, entry, progress);
    case 'npm':
      return buildNpmTool(name, recipe, entry, progress);
  }
}

/** A binary of KUBEBUILDER_ASSETS, if it is of the minor version the tests are written for. */
function kubebuilderAsset(name: ToolName, recipe: GoRecipe): string | undefined {
  const assets = process.env['KUBEBUILDER_ASSETS'];
  if (!assets || recipe.versionArgs === undefined) return undefined;
  const path = join(assets, name);
  const version = firstLine(path, recipe.versionArgs);
  const wanted = name === 'etcd' ? 'etcd Version: 3.' : `v${kubernetesMinor}.`;
  if (version?.includes(wanted)) return path;
  progress(`${name}: KUBEBUILDER_ASSETS has ${version ?? 'none that runs'}, need ${wanted}*: looking further`);
  return undefined;
}

function progress(line: string): void {
  process.stderr.write(`tools: ${line}\n`);
}
