import { existsSync, realpathSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { minorOf, pinnedVersion } from './pins.ts';
import type { GoRecipe, Machine, SystemRecipe, Tool } from './recipe.ts';
import { lacking } from './programs.ts';
import { firstLine } from './run.ts';

/**
 * A program from the KUBEBUILDER_ASSETS folder (the convention of envtest), if its minor version is the pinned one. A
 * program of another version is refused, because its rules for certificates may differ; the progress line says so.
 */
export function inAssets(tool: Tool<GoRecipe>, machine: Machine): string | undefined {
  const folder = machine.env['KUBEBUILDER_ASSETS'];
  return folder ? fitting(tool, [folder], 'KUBEBUILDER_ASSETS', machine) : undefined;
}

/** The same for PATH. */
export function onPath(tool: Tool<GoRecipe>, machine: Machine): string | undefined {
  return fitting(tool, foldersOf(machine), 'PATH', machine);
}

/** The first program of the tool, if the machine has all of them. */
export function systemProgram({ name, recipe }: Tool<SystemRecipe>, machine: Machine): string | undefined {
  const { programs } = recipe;
  if (lacking([{ name, programs }], machine.env).length > 0) return undefined;
  return foldersOf(machine)
    .map((folder) => join(folder, programs[0]))
    .find((path) => existsSync(path));
}

function foldersOf({ env }: Machine): readonly string[] {
  // A relative folder would mean another program in each working directory.
  return (env['PATH'] ?? '').split(delimiter).filter(isAbsolute);
}

function fitting(
  { name, recipe }: Tool<GoRecipe>,
  folders: readonly string[],
  where: string,
  { env, progress }: Machine,
): string | undefined {
  if (recipe.versionArgs === undefined) return undefined;
  const wanted = minorOf(pinnedVersion(recipe.folder, recipe.package));
  const seen = new Set<string>(); // /bin is a link to /usr/bin on many systems
  for (const path of folders.map((folder) => join(folder, name))) {
    if (!existsSync(path) || seen.has(realpathSync(path))) continue;
    seen.add(realpathSync(path));
    const answer = firstLine(path, recipe.versionArgs, env);
    const version = /\bv?(\d+\.\d+\.\d+)/.exec(answer ?? '')?.[1];
    if (version !== undefined && minorOf(version) === wanted) return path;
    const reason =
      answer === undefined
        ? `\`${name} ${recipe.versionArgs.join(' ')}\` fails`
        : version === undefined
          ? `its version is unreadable: ${answer}`
          : `its version is ${version}`;
    progress(`${name}: ${path} from ${where} is refused: ${reason}, the tests need ${wanted}`);
  }
  return undefined;
}
