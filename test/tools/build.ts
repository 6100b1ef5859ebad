import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { kubernetesVersion } from './pins.ts';

/*
 * The builders are called under the cache lock, make the result under a temporary name and rename it at the end:
 * whatever bears the final name is complete, even if a build was killed. They return a sentence on failure.
 */
type Progress = (line: string) => void;

export interface GoRecipe {
  kind: 'go';
  /** Folder beside this file that holds go.mod and go.sum. */
  folder: string;
  package: string;
  /** How long the first build takes, for the progress line. */
  roughly: string;
  /** How the binary tells its version; present for those we also take from KUBEBUILDER_ASSETS. */
  versionArgs?: readonly string[] | undefined;
}

export interface PythonRecipe {
  kind: 'python';
  /** Folder beside this file that holds requirements.txt. */
  folder: string;
  roughly: string;
  /** The only Python it runs on, such as `3.13`; any from 3.10 on when absent. */
  python?: string;
  /** The only system it is made for. */
  platform?: NodeJS.Platform;
}

/** Java programs, as the folder of their jars. */
export interface MavenRecipe {
  kind: 'maven';
  /** Folder beside this file that holds pom.xml. */
  folder: string;
  roughly: string;
}

/** A package that brings sources to compile: it must not be among what every clone of the project installs. */
export interface NpmRecipe {
  kind: 'npm';
  /** Folder beside this file that holds package.json and package-lock.json. */
  folder: string;
  package: string;
  roughly: string;
  /** The only system it is made for. */
  platform?: NodeJS.Platform;
}

const MINIMUM_GO = [1, 26] as const;

export async function buildGoTool(
  name: string,
  recipe: GoRecipe,
  path: string,
  progress: Progress,
): Promise<string | undefined> {
  const version = goVersion();
  if (version === undefined || !atLeast(version, MINIMUM_GO)) {
    const found = version === undefined ? 'no `go` on PATH' : `found go${version}`;
    return `to be built, it needs Go ${MINIMUM_GO.join('.')} or newer (${found}): see https://go.dev/dl`;
  }
  const temporary = temporaryName(path);
  const args = ['build', '-ldflags', linkerFlags(), '-o', temporary, recipe.package];
  const failure = await run(
    `${name}: building ${recipe.package} with go${version}`,
    recipe.roughly,
    progress,
    'go',
    args,
    {
      cwd: join(import.meta.dirname, recipe.folder),
      // What the user set for other projects must not change or break this build. Without cgo no C compiler is needed.
      env: { ...process.env, GOFLAGS: '-mod=readonly -buildvcs=false', GOWORK: 'off', CGO_ENABLED: '0' },
    },
  );
  if (failure === undefined) renameSync(temporary, path);
  return failure;
}

/** Kubernetes takes its version from the linker; unstamped, /version says v0.0.0-master and clients act on that. */
function linkerFlags(): string {
  const [major, minor] = kubernetesVersion.split('.');
  const stamp = (variable: string, value = '') => `-X k8s.io/component-base/version.${variable}=${value}`;
  return [
    '-s -w',
    stamp('gitVersion', `v${kubernetesVersion}`),
    stamp('gitMajor', major),
    stamp('gitMinor', minor),
  ].join(' ');
}

function goVersion(): string | undefined {
  const result = spawnSync('go', ['env', 'GOVERSION'], {
    cwd: '/',
    encoding: 'utf8',
    env: { ...process.env, GOTOOLCHAIN: 'local' },
  });
  return /^go(\d+\.\d+\S*)/.exec(result.status === 0 ? result.stdout : '')?.[1];
}

function atLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [haveMajor = 0, haveMinor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  return haveMajor > major || (haveMajor === major && haveMinor >= minor);
}

export async function buildPythonTool(
  name: string,
  recipe: PythonRecipe,
  entry: string,
  progress: Progress,
): Promise<string | undefined> {
  if (madeForOthers(recipe)) return `is made for ${recipe.platform} only`;
  const python = usablePython(recipe.python);
  if (python === undefined)
    return recipe.python === undefined
      ? 'needs Python 3.10 or newer with venv (Debian: python3-venv)'
      : `needs Python ${recipe.python}, no other, on PATH or from pyenv (pyenv install ${recipe.python})`;
  const temporary = temporaryName(entry);
  const options = { env: { ...process.env, PIP_DISABLE_PIP_VERSION_CHECK: '1', PYTHONPATH: '' } };
  const requirements = join(import.meta.dirname, recipe.folder, 'requirements.txt');
  // A venv may be renamed as long as it is used by bin/python only: its scripts would name the old place.
  const failure =
    (await run(
      `${name}: creating a virtual environment with ${python}`,
      '5 s',
      progress,
      python,
      ['-m', 'venv', temporary],
      options,
    )) ??
    (await run(
      `${name}: installing its pinned requirements`,
      recipe.roughly,
      progress,
      join(temporary, 'bin', 'python'),
      ['-m', 'pip', 'install', '--quiet', '--no-deps', '-r', requirements],
      options,
    ));
  if (failure === undefined) renameSync(temporary, entry);
  return failure;
}

/**
 * By exit code, not by presence: a version manager's shim is on PATH and fails when that version is not selected. Then
 * pyenv has it all the same, in a folder of its own.
 */
function usablePython(only?: string): string | undefined {
  const holds = only === undefined ? '(3, 10) <= v' : `v == (${only.replace('.', ', ')})`;
  const probe = `import sys, venv, ensurepip; v = sys.version_info[:2]; sys.exit(not (${holds}))`;
  const minors = only === undefined ? ['3.13', '3.12', '3.11', '3.10'] : [only];
  const onPath = [...minors.map((minor) => `python${minor}`), 'python3'];
  const ofPyenv = minors.flatMap((minor) => pyenvFolders(minor).map((folder) => join(folder, 'bin', 'python3')));
  return [...onPath, ...ofPyenv].find((python) => spawnSync(python, ['-c', probe]).status === 0);
}

function pyenvFolders(minor: string): string[] {
  const versions = join(process.env['PYENV_ROOT'] || join(homedir(), '.pyenv'), 'versions');
  if (!existsSync(versions)) return [];
  return readdirSync(versions)
    .filter((name) => name.startsWith(`${minor}.`))
    .map((name) => join(versions, name));
}

export async function fetchMavenTool(
  name: string,
  recipe: MavenRecipe,
  entry: string,
  progress: Progress,
): Promise<string | undefined> {
  if (firstLine('java', ['-version']) === undefined) return 'needs Java 17 or newer (Debian: default-jre-headless)';
  if (firstLine('mvn', ['-version']) === undefined) return 'needs Maven to be fetched (Debian: maven)';
  const temporary = temporaryName(entry);
  const pom = join(import.meta.dirname, recipe.folder, 'pom.xml');
  const failure = await run(
    `${name}: fetching its pinned jars`,
    recipe.roughly,
    progress,
    'mvn',
    ['dependency:copy-dependencies', '-B', '-ntp', '-q', '-f', pom, `-DoutputDirectory=${temporary}`],
    { env: process.env },
  );
  if (failure === undefined) renameSync(temporary, entry);
  return failure;
}

export async function buildNpmTool(
  name: string,
  recipe: NpmRecipe,
  entry: string,
  progress: Progress,
): Promise<string | undefined> {
  if (madeForOthers(recipe)) return `is made for ${recipe.platform} only`;
  const needed = ['npm', 'python3', 'cmake', 'make', 'c++'].filter(
    (tool) => firstLine(tool, ['--version']) === undefined,
  );
  if (needed.length > 0) return `needs ${needed.join(', ')} to be compiled (Debian: g++ make cmake python3)`;
  const temporary = temporaryName(entry);
  mkdirSync(temporary);
  for (const file of ['package.json', 'package-lock.json'])
    copyFileSync(join(import.meta.dirname, recipe.folder, file), join(temporary, file));
  const failure = await run(
    `${name}: installing its pinned packages and compiling`,
    recipe.roughly,
    progress,
    'npm',
    // Its scripts are the compiling; `ci` holds every package against the hash in the lock file.
    ['ci', '--prefix', temporary, '--ignore-scripts=false', '--no-audit', '--no-fund', '--loglevel=error'],
    { cwd: temporary, env: { ...process.env, ...nodeHeaders() } },
  );
  if (failure === undefined) renameSync(temporary, entry);
  return failure;
}

/** The pinned Node brings the headers it was built with; without them node-gyp would fetch some. */
function nodeHeaders(): NodeJS.ProcessEnv {
  const home = dirname(dirname(process.execPath));
  return existsSync(join(home, 'include', 'node', 'node_api.h')) ? { npm_config_nodedir: home } : {};
}

function madeForOthers({ platform }: { readonly platform?: NodeJS.Platform }): boolean {
  return platform !== undefined && platform !== process.platform;
}

/** The first line a program prints, or nothing if it does not run. */
export function firstLine(command: string, args: readonly string[]): string | undefined {
  const result = spawnSync(command, args, { encoding: 'utf8', timeout: 10_000 });
  return result.status === 0 ? result.stdout.split('\n', 1)[0] : undefined;
}

/**
 * A fresh name beside the final one, hence on the same file system. What killed builds left is removed; the process
 * id keeps us apart from a compiler that has outlived such a build and will still write its result.
 */
function temporaryName(path: string): string {
  const folder = dirname(path);
  const prefix = `.${basename(path)}.part-`;
  mkdirSync(folder, { recursive: true });
  for (const entry of readdirSync(folder)) {
    if (entry.startsWith(prefix)) rmSync(join(folder, entry), { recursive: true, force: true });
  }
  return join(folder, `${prefix}${process.pid}`);
}

const HEARTBEAT_MS = 15_000;
const OUTPUT_LINES = 20;

async function run(
  title: string,
  roughly: string,
  progress: Progress,
  command: string,
  args: string[],
  options: { cwd?: string; env: NodeJS.ProcessEnv },
): Promise<string | undefined> {
  const started = performance.now();
  const elapsed = () => `${Math.round((performance.now() - started) / 1000)} s`;
  progress(`${title} (the first time roughly ${roughly})`);
  const heartbeat = setInterval(() => progress(`  … ${elapsed()}`), HEARTBEAT_MS);
  try {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const keep = (chunk: Buffer) => (output = (output + chunk.toString()).slice(-10_000));
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    if (code === 0) {
      progress(`  done in ${elapsed()}`);
      return undefined;
    }
    const tail = output.trimEnd().split('\n').slice(-OUTPUT_LINES).join('\n  ');
    return `\`${basename(command)} ${args[0]}\` failed (exit code ${code}):\n  ${tail}`;
  } finally {
    clearInterval(heartbeat);
  }
}
