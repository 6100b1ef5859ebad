import { copyFileSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { pinnedVersion } from './pins.ts';
import type { GoFilesRecipe, Machine, Tool } from './recipe.ts';
import { firstLine, run, temporaryName } from './run.ts';

/**
 * Copies files out of Go modules into one folder, `entry`. `go mod download` compares each module with the hash in go.sum.
 * envtest's users take CustomResourceDefinitions from the module cache in the same way. Returns the reason on failure.
 */
export async function copyModuleFiles(
  { name, recipe }: Tool<GoFilesRecipe>,
  entry: string,
  machine: Machine,
): Promise<string | undefined> {
  const cwd = join(import.meta.dirname, recipe.folder);
  // The user's settings for other projects must not change this download.
  const env = { ...machine.env, GOFLAGS: '-mod=readonly', GOWORK: 'off' };
  const modules = recipe.modules.map(({ module, folders }) => ({
    module: `${module}@v${pinnedVersion(recipe.folder, module)}`,
    folders,
  }));
  const failure = await run(
    { title: `download of the modules of ${name}`, seconds: recipe.seconds, progress: machine.progress },
    'go',
    ['mod', 'download', ...modules.map(({ module }) => module)],
    { cwd, env },
  );
  if (failure !== undefined) return failure;
  const cache = firstLine('go', ['env', 'GOMODCACHE'], env);
  if (cache === undefined) return '`go env GOMODCACHE` fails';
  const temporary = temporaryName(entry);
  mkdirSync(temporary);
  for (const { module, folders } of modules)
    for (const folder of folders.map((each) => join(cache, module, each)))
      for (const file of readdirSync(folder).filter((each) => each.endsWith(recipe.suffix)))
        copyFileSync(join(folder, file), join(temporary, file));
  renameSync(temporary, entry);
  return undefined;
}
