import { homedir } from 'node:os';
import { join } from 'node:path';
import { provide } from './provide.ts';
import type { GoRecipe, Machine, Recipe, ToolLocation } from './recipe.ts';

/** The real components that the tests run against, and how each is installed (provide.ts has the order of search). */
const RECIPES = {
  etcd: go('kubernetes', 'go.etcd.io/etcd/server/v3', 20, ['--version']),
  'kube-apiserver': go('kubernetes', 'k8s.io/kubernetes/cmd/kube-apiserver', 180, ['--version']),
  'kube-controller-manager': go('kubernetes', 'k8s.io/kubernetes/cmd/kube-controller-manager', 70, ['--version']),
  kubectl: go('kubernetes', 'k8s.io/kubernetes/cmd/kubectl', 30, ['version', '--client']),
  kubeadm: go('kubernetes', 'k8s.io/kubernetes/cmd/kubeadm', 15, ['version', '-o', 'short']),
  // The next minor version, for the suites that hold against both.
  'kubeadm-1.37': go('kubeadm-next', 'k8s.io/kubernetes/cmd/kubeadm', 55),
  kubelet: go('kubernetes', 'k8s.io/kubernetes/cmd/kubelet', 35, ['--version']),
  // CustomResourceDefinitions: the core of Cluster API, its kubeadm providers, its AWS provider.
  'cluster-api': {
    kind: 'go-files',
    folder: 'cluster-api',
    modules: [
      {
        module: 'sigs.k8s.io/cluster-api',
        folders: ['core', 'bootstrap/kubeadm', 'controlplane/kubeadm'].map((part) => `${part}/config/crd/bases`),
      },
      { module: 'sigs.k8s.io/cluster-api-provider-aws/v2', folders: ['config/crd/bases'] },
    ],
    suffix: '.yaml',
    seconds: 3,
  },
  zlint: go('zlint', 'github.com/zmap/zlint/v3/cmd/zlint', 20),
  helm: go('helm', 'helm.sh/helm/v4/cmd/helm', 90, ['version', '--template', '{{.Version}}']),
  // Without Prometheus' service discoveries, whose libraries would take most of the build.
  promtool: { ...go('promtool', 'github.com/prometheus/prometheus/cmd/promtool', 120), tags: 'remove_all_sd' },
  // The path of this tool is the Python interpreter that can import it: scripts in a venv contain absolute paths.
  pkilint: { kind: 'python', folder: 'pkilint', seconds: 15 },
  // As that of pkilint, a Python interpreter.
  cyclonedx: { kind: 'python', folder: 'cyclonedx', seconds: 15 },
  localstack: { kind: 'python', folder: 'localstack', seconds: 60, python: '3.13' },
  ministack: { kind: 'python', folder: 'ministack', seconds: 20 },
  'aws-cli': { kind: 'python', folder: 'aws-cli', seconds: 30, platform: 'linux' },
  // The path of this tool is the folder of its jars. They run on the machine's own Java.
  'dynamodb-local': { kind: 'maven', folder: 'dynamodb-local', seconds: 30 },
  // AWS publishes both for Linux only. The path of the first is its interpreter, of the second its package folder.
  'lambda-rie': { kind: 'python', folder: 'lambda-rie', seconds: 10, platform: 'linux' },
  'lambda-ric': {
    kind: 'npm',
    folder: 'lambda-ric',
    package: 'aws-lambda-ric',
    compilers: ['c++', 'make', 'cmake', 'python3', 'xz'],
    seconds: 60,
    platform: 'linux',
  },
  shells: { kind: 'system', programs: ['zsh', 'fish'] },
  // A software TPM, and the programs that use it.
  swtpm: { kind: 'system', programs: ['swtpm', 'swtpm_setup', 'tpm2', 'libtss2-tcti-swtpm'], platform: 'linux' },
  // A registry of images and charts on loopback, and a check of what is in it.
  crane: go('crane', 'github.com/google/go-containerregistry/cmd/crane', 20),
  skopeo: { kind: 'system', programs: ['skopeo'], platform: 'linux' },
  containerd: { kind: 'system', programs: ['containerd'], platform: 'linux' },
  'qemu-aarch64': { kind: 'system', programs: ['qemu-aarch64'], platform: 'linux' },
  // A browser, and the rules of accessibility that run in it.
  chromium: { kind: 'system', programs: ['chromium'], platform: 'linux' },
  'axe-core': { kind: 'npm', folder: 'axe-core', package: 'axe-core', seconds: 3 },
} as const satisfies Record<string, Recipe>;

export type ToolName = keyof typeof RECIPES;
export const toolNames = Object.keys(RECIPES) as ToolName[];

function go(folder: string, goPackage: string, seconds: number, versionArgs?: readonly string[]): GoRecipe {
  return { kind: 'go', folder, package: goPackage, seconds, ...(versionArgs && { versionArgs }) };
}

export const thisMachine: Machine = {
  env: process.env,
  fetch,
  progress: (line) => process.stderr.write(`tools: ${line}\n`),
};

/** Finds or installs tools, those of one Go module by one build. `forARun`: ahead of the suites, not inside one. */
export async function ensureTools(
  names: readonly ToolName[],
  { machine, forARun }: { readonly machine: Machine; readonly forARun: boolean },
): Promise<ReadonlyMap<ToolName, ToolLocation>> {
  const tools = names.map((name) => ({ name, recipe: RECIPES[name] }));
  const found = await provide(tools, { cache: cacheFolder(machine.env), machine, forARun });
  return new Map(names.map((name) => [name, found.get(name)!]));
}

const located = new Map<ToolName, Promise<ToolLocation>>();

/** As `ensureTools`, but each tool is looked for once in a process. */
function ensureOnce(names: readonly ToolName[]): Promise<readonly ToolLocation[]> {
  const fresh = names.filter((name) => !located.has(name));
  if (fresh.length > 0) {
    const batch = ensureTools(fresh, { machine: thisMachine, forARun: false });
    for (const name of fresh)
      located.set(
        name,
        batch.then((found) => found.get(name)!),
      );
  }
  return Promise.all(names.map((name) => located.get(name)!));
}

export async function ensureTool(name: ToolName): Promise<ToolLocation> {
  const [location] = await ensureOnce([name]);
  return location!;
}

/** For code that cannot work without the tool. */
export async function toolPath(name: ToolName): Promise<string> {
  const location = await ensureTool(name);
  if ('missing' in location) throw new Error(location.missing);
  return location.path;
}

/**
 * For the top of a suite: `const { skip } = await requireTools('etcd', 'kube-apiserver')`, then
 * `describe.skipIf(skip)(…)`. In CI a missing tool is an error, because a suite that stopped running would look green.
 */
export async function requireTools(...names: ToolName[]): Promise<{ skip: boolean }> {
  const missing = (await ensureOnce(names)).flatMap((location) => ('missing' in location ? [location.missing] : []));
  if (missing.length === 0) return { skip: false };
  if (inContinuousIntegration()) throw new Error(`CI must have every test tool:\n${missing.join('\n')}`);
  const how = 'node dev/run.mjs test/tools/install.ts';
  console.warn(`Skipped, because a tool is missing (\`${how}\` prints how to get it):\n${missing.join('\n')}`);
  return { skip: true };
}

export function inContinuousIntegration(env: NodeJS.ProcessEnv = process.env): boolean {
  return !['', '0', 'false'].includes((env['CI'] ?? '').toLowerCase());
}

/** Outside the repository, so that a new clone does not build everything again. */
function cacheFolder(env: NodeJS.ProcessEnv): string {
  const configured = env['COUNTERSIGN_TOOLS_CACHE'];
  if (configured) return configured;
  return join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'countersign', 'tools');
}
