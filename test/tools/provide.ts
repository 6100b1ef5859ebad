import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { buildGoTools } from './build-go.ts';
import { buildNpmTool, buildPythonTool, fetchMavenTool } from './build.ts';
import { withCacheLock } from './cache-lock.ts';
import { copyModuleFiles } from './module-files.ts';
import { pinsDigest } from './pins.ts';
import { inAssets, onPath, systemProgram } from './present.ts';
import { describeLacks, lacking, neededBySuites, neededToInstall, whyNot } from './programs.ts';
import type { GoRecipe, InstalledRecipe, Machine, Recipe, Tool, ToolLocation } from './recipe.ts';
import { download, isReachable, releaseBinary, type ReleaseBinary } from './release.ts';

/**
 * Finds or installs tools. The order: KUBEBUILDER_ASSETS, the cache, PATH, the official release binary whose checksum is
 * committed, and at last a build from the pinned sources. Before the first build it prints what the machine lacks.
 *
 * `forARun`: once ahead of the suites, which includes programs that only the suites call. A suite that asks again for its
 * own tools does not repeat what the machine lacks.
 */
export async function provide(
  tools: readonly Tool[],
  { cache, machine, forARun }: { readonly cache: string; readonly machine: Machine; readonly forARun: boolean },
): Promise<ReadonlyMap<string, ToolLocation>> {
  const found = new Map<string, ToolLocation>();
  const note = forARun ? machine.progress : () => {};
  for (const tool of tools) {
    const path = locate(tool, cache, { ...machine, progress: note });
    if (path !== undefined) found.set(tool.name, { path });
  }
  const absent = tools.filter(({ name }) => !found.has(name));
  const releases = await reachableReleases(absent, machine);
  const toBuild = absent.filter(({ name, recipe }) => !releases.has(name) && forAnotherSystem(recipe) === undefined);
  const needs = [
    ...toBuild.map(({ name, recipe }) => ({ name, programs: neededToInstall(recipe) })),
    ...(forARun ? neededBySuites(tools) : []),
  ];
  const lacks = lacking(needs, machine.env);
  for (const line of describeLacks(lacks)) note(line);
  const installable = absent.filter((tool): tool is Tool<InstalledRecipe> => {
    const reason = forAnotherSystem(tool.recipe) ?? (toBuild.includes(tool) ? whyNot(tool, lacks) : undefined);
    if (reason !== undefined) found.set(tool.name, { missing: `${tool.name}: ${reason}` });
    return reason === undefined && tool.recipe.kind !== 'system';
  });
  if (installable.length === 0) return found;

  await withCacheLock(
    cache,
    () => machine.progress(`waiting for another process that installs tools in ${cache}`),
    async () => {
      // The process that held the lock before may have installed some of them.
      const rest = installable.filter((tool) => !existsSync(pathInCache(tool, cache)));
      const failures = await install(rest, releases, cache, machine);
      for (const tool of installable) {
        const failure = failures.get(tool.name);
        if (failure !== undefined) note(`${tool.name}: ${failure}`);
        found.set(
          tool.name,
          failure === undefined ? { path: pathInCache(tool, cache) } : { missing: `${tool.name}: ${failure}` },
        );
      }
    },
  );
  return found;
}

function locate(tool: Tool, cache: string, machine: Machine): string | undefined {
  const { name, recipe } = tool;
  if (recipe.kind === 'system') return systemProgram({ name, recipe }, machine);
  const cached = pathInCache({ name, recipe }, cache);
  const inCache = existsSync(cached) ? cached : undefined;
  return isGo(tool) ? (inAssets(tool, machine) ?? inCache ?? onPath(tool, machine)) : inCache;
}

function isGo(tool: Tool): tool is Tool<GoRecipe> {
  return tool.recipe.kind === 'go';
}

function entryOf({ recipe }: Tool<InstalledRecipe>, cache: string): string {
  return join(cache, `${recipe.folder}-${pinsDigest(recipe.folder)}`);
}

function pathInCache(tool: Tool<InstalledRecipe>, cache: string): string {
  const entry = entryOf(tool, cache);
  switch (tool.recipe.kind) {
    case 'go':
      return join(entry, tool.name);
    case 'python':
      return join(entry, 'bin', 'python');
    case 'maven':
    case 'go-files':
      return entry;
    case 'npm':
      return join(entry, 'node_modules', tool.recipe.package);
  }
}

async function reachableReleases(
  tools: readonly Tool[],
  machine: Machine,
): Promise<ReadonlyMap<string, ReleaseBinary>> {
  const kubernetes = tools.filter(({ recipe }) => recipe.kind === 'go' && recipe.package.startsWith('k8s.io/'));
  const offered = kubernetes.flatMap(({ name }) => releaseBinary(name) ?? []);
  const first = offered[0];
  if (first === undefined || !(await isReachable(first, machine))) return new Map();
  return new Map(offered.map((binary) => [binary.name, binary]));
}

function forAnotherSystem(recipe: Recipe): string | undefined {
  const platform = 'platform' in recipe ? recipe.platform : undefined;
  return platform === undefined || platform === process.platform ? undefined : `runs on ${platform} only`;
}

/**
 * Go builds run one after the other, because two of them at once need more memory than many laptops have. The other
 * installations wait for the network most of the time, so they run beside the Go builds. Returns the failures.
 */
async function install(
  tools: readonly Tool<InstalledRecipe>[],
  releases: ReadonlyMap<string, ReleaseBinary>,
  cache: string,
  machine: Machine,
): Promise<ReadonlyMap<string, string>> {
  const failures = new Map<string, string>();
  const goLane = async () => {
    const toBuild: Tool<GoRecipe>[] = [];
    for (const tool of tools.filter(isGo)) {
      const release = releases.get(tool.name);
      const refused = release && (await download(release, pathInCache(tool, cache), machine));
      if (refused !== undefined) machine.progress(`${tool.name}: ${refused}; it will be built instead`);
      if (release === undefined || refused !== undefined) toBuild.push(tool);
    }
    for (const [folder, group] of Map.groupBy(toBuild, ({ recipe }) => recipe.folder)) {
      const failure = await buildGoTools(group, entryOf({ name: folder, recipe: group[0]!.recipe }, cache), machine);
      const first = group[0]!.name;
      if (failure !== undefined)
        for (const { name } of group)
          failures.set(name, name === first ? failure : `the \`go build\` that it shares with ${first} failed`);
    }
  };
  const otherLane = async () => {
    for (const tool of tools) {
      const failure = await installOther(tool, entryOf(tool, cache), machine);
      if (failure !== undefined) failures.set(tool.name, failure);
    }
  };
  await Promise.all([goLane(), otherLane()]);
  return failures;
}

async function installOther(
  { name, recipe }: Tool<InstalledRecipe>,
  entry: string,
  machine: Machine,
): Promise<string | undefined> {
  switch (recipe.kind) {
    case 'go':
      return undefined;
    case 'go-files':
      return copyModuleFiles({ name, recipe }, entry, machine);
    case 'python':
      return buildPythonTool({ name, recipe }, entry, machine);
    case 'maven':
      return fetchMavenTool({ name, recipe }, entry, machine);
    case 'npm':
      return buildNpmTool({ name, recipe }, entry, machine);
  }
}
