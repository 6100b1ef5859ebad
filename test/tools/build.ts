import { copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findPython } from './programs.ts';
import type { Machine, MavenRecipe, NpmRecipe, PythonRecipe, Tool } from './recipe.ts';
import { run, temporaryName } from './run.ts';

/*
 * The builders make `entry` under a temporary name and rename it at the end: an entry with its final name is complete,
 * even if an earlier build was killed. They return the reason on failure.
 */

export async function buildPythonTool(
  { name, recipe }: Tool<PythonRecipe>,
  entry: string,
  { env, progress }: Machine,
): Promise<string | undefined> {
  const python = findPython(recipe.python, env) ?? `python${recipe.python ?? 3}`;
  const temporary = temporaryName(entry);
  const options = { env: { ...env, PIP_DISABLE_PIP_VERSION_CHECK: '1', PYTHONPATH: '' } };
  const requirements = join(import.meta.dirname, recipe.folder, 'requirements.txt');
  // The scripts of a virtual environment contain its first path, so that only bin/python works after the rename.
  const failure =
    (await run(
      { title: `virtual environment of ${name}`, seconds: 5, progress },
      python,
      ['-m', 'venv', temporary],
      options,
    )) ??
    (await run(
      { title: `pip install of ${name}`, seconds: recipe.seconds, progress },
      join(temporary, 'bin', 'python'),
      ['-m', 'pip', 'install', '--quiet', '--no-deps', '-r', requirements],
      options,
    ));
  if (failure === undefined) renameSync(temporary, entry);
  return failure;
}

export async function fetchMavenTool(
  { name, recipe }: Tool<MavenRecipe>,
  entry: string,
  { env, progress }: Machine,
): Promise<string | undefined> {
  const temporary = temporaryName(entry);
  const pom = join(import.meta.dirname, recipe.folder, 'pom.xml');
  const failure = await run(
    { title: `download of the jars of ${name}`, seconds: recipe.seconds, progress },
    'mvn',
    ['dependency:copy-dependencies', '-B', '-ntp', '-q', '-f', pom, `-DoutputDirectory=${temporary}`],
    { env },
  );
  if (failure === undefined) renameSync(temporary, entry);
  return failure;
}

export async function buildNpmTool(
  { name, recipe }: Tool<NpmRecipe>,
  entry: string,
  { env, progress }: Machine,
): Promise<string | undefined> {
  const temporary = temporaryName(entry);
  mkdirSync(temporary);
  for (const file of ['package.json', 'package-lock.json'])
    copyFileSync(join(import.meta.dirname, recipe.folder, file), join(temporary, file));
  const failure = await run(
    { title: `npm ci of ${name}`, seconds: recipe.seconds, progress },
    'npm',
    // The install scripts compile the package. `ci` compares every package with the hash in the lock file.
    ['ci', '--prefix', temporary, '--ignore-scripts=false', '--no-audit', '--no-fund', '--loglevel=error'],
    { cwd: temporary, env: { ...env, ...nodeHeaders() } },
  );
  if (failure === undefined) renameSync(temporary, entry);
  return failure;
}

/** The pinned Node includes its own headers. Without this setting node-gyp would download headers. */
function nodeHeaders(): NodeJS.ProcessEnv {
  const home = dirname(dirname(process.execPath));
  return existsSync(join(home, 'include', 'node', 'node_api.h')) ? { npm_config_nodedir: home } : {};
}
