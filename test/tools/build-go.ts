import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { minorOf, pinnedVersion } from './pins.ts';
import type { GoRecipe, Machine, Tool } from './recipe.ts';
import { run, temporaryName } from './run.ts';

/**
 * Builds programs of one module with one `go build`, so that the compiler works on shared packages once and the linker of
 * one program runs beside the compiler of the next. Each program gets its final name, in `entry`, by a rename at the end:
 * a program with its final name is complete. Returns the reason on failure.
 */
export async function buildGoTools(
  tools: readonly Tool<GoRecipe>[],
  entry: string,
  { env, progress }: Machine,
): Promise<string | undefined> {
  const [first] = tools;
  if (first === undefined) return undefined;
  const { folder, tags } = first.recipe;
  const temporary = temporaryName(join(entry, 'build'));
  mkdirSync(temporary);
  const names = tools.map(({ name }) => name).join(', ');
  const seconds = tools.reduce((sum, { recipe }) => sum + recipe.seconds, 0);
  const packages = tools.map(({ recipe }) => recipe.package);
  const failure = await run(
    { title: `go build of ${names}`, seconds, progress },
    'go',
    [
      'build',
      COMPILER_FLAGS,
      ...(tags === undefined ? [] : ['-tags', tags]),
      '-ldflags',
      linkerFlags(tools),
      '-o',
      `${temporary}/`,
      ...packages,
    ],
    {
      cwd: join(import.meta.dirname, folder),
      // The user's settings for other projects must not change or break this build. Without cgo no C compiler is needed.
      env: { ...env, GOFLAGS: '-mod=readonly -buildvcs=false', GOWORK: 'off', CGO_ENABLED: '0' },
    },
  );
  if (failure === undefined)
    for (const { name, recipe } of tools)
      renameSync(join(temporary, executableName(recipe.package)), join(entry, name));
  rmSync(temporary, { recursive: true, force: true });
  return failure;
}

/** The linker drops debugging data (-w). Without writing it the compiler needs a seventh less processor time. */
const COMPILER_FLAGS = '-gcflags=all=-dwarf=false';

/** The name that `go build` gives: the last element of the package path that is not a major version. */
function executableName(goPackage: string): string {
  return basename(goPackage.replace(/\/v\d+$/, ''));
}

/** Kubernetes takes its version from the linker. Without it /version is v0.0.0-master, and clients act on that. */
function linkerFlags(tools: readonly Tool<GoRecipe>[]): string {
  const ofKubernetes = tools.find(({ recipe }) => recipe.package.startsWith('k8s.io/'))?.recipe;
  if (ofKubernetes === undefined) return '-s -w';
  const version = pinnedVersion(ofKubernetes.folder, ofKubernetes.package);
  const [major = '', minor = ''] = minorOf(version).split('.');
  const stamp = (variable: string, value: string) => `-X k8s.io/component-base/version.${variable}=${value}`;
  return ['-s -w', stamp('gitVersion', `v${version}`), stamp('gitMajor', major), stamp('gitMinor', minor)].join(' ');
}
