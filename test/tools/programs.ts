import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Recipe, Tool } from './recipe.ts';
import { firstLine } from './run.ts';

/*
 * What the machine itself must have: compilers and language runtimes to build the test tools, and programs that the suites
 * call. Debian's packages are those of test/debian-packages.txt; a unit test compares the two lists.
 */

interface Program {
  readonly what: string;
  /** Debian's package, or another way to install it. */
  readonly debian?: string;
  readonly how?: string;
  /** Undefined when the machine has it, else what was found instead. */
  readonly problem: (env: NodeJS.ProcessEnv) => string | undefined;
}

const MINIMUM_GO = [1, 26] as const;

const command = (what: string, debian: string, ...args: string[]): Program => ({
  what,
  debian,
  problem: (env) => (firstLine(what, args, env) === undefined ? `\`${[what, ...args].join(' ')}\` fails` : undefined),
});

export const PROGRAMS = {
  go: { what: `Go ${MINIMUM_GO.join('.')} or newer`, how: 'see https://go.dev/dl', problem: goProblem },
  python: {
    what: 'Python 3.10 or newer with venv',
    debian: 'python3-venv',
    problem: (env) => (findPython(undefined, env) === undefined ? 'not found' : undefined),
  },
  'python3.13': {
    what: 'Python 3.13',
    how: 'pyenv install 3.13',
    problem: (env) => (findPython('3.13', env) === undefined ? 'not found on PATH or in pyenv' : undefined),
  },
  java: { ...command('java', 'openjdk-17-jre-headless', '-version'), what: 'Java 17 or newer' },
  mvn: { ...command('mvn', 'maven', '-version'), what: 'Maven' },
  'c++': { ...command('c++', 'g++', '--version'), what: 'a C++ compiler' },
  make: command('make', 'make', '--version'),
  cmake: command('cmake', 'cmake', '--version'),
  python3: command('python3', 'python3', '--version'),
  xz: command('xz', 'xz-utils', '--version'),
  zsh: command('zsh', 'zsh', '--version'),
  fish: command('fish', 'fish', '--version'),
  openssl: command('openssl', 'openssl', 'version'),
  curl: command('curl', 'curl', '--version'),
  containerd: command('containerd', 'containerd', '--version'),
  ip: command('ip', 'iproute2', '-Version'),
  'qemu-aarch64': command('qemu-aarch64', 'qemu-user', '--version'),
  skopeo: command('skopeo', 'skopeo', '--version'),
  swtpm: command('swtpm', 'swtpm', '--version'),
  swtpm_setup: command('swtpm_setup', 'swtpm-tools', '--help'),
  tpm2: command('tpm2', 'tpm2-tools', '--version'),
  chromium: command('chromium', 'chromium', '--version'),
  'libtss2-tcti-swtpm': {
    what: 'the library with which tpm2-tools reach swtpm',
    debian: 'libtss2-tcti-swtpm0',
    problem: tctiProblem,
  },
} as const satisfies Record<string, Program>;

export type ProgramName = keyof typeof PROGRAMS;

/** The programs that install a tool. */
export function neededToInstall(recipe: Recipe): readonly ProgramName[] {
  switch (recipe.kind) {
    case 'go':
    case 'go-files':
      return ['go'];
    case 'python':
      return [recipe.python === undefined ? 'python' : `python${recipe.python}`];
    case 'maven':
      return ['java', 'mvn'];
    case 'npm':
      return recipe.compilers ?? [];
    case 'system':
      return recipe.programs;
  }
}

export interface Need {
  /** What needs the programs: a tool, or the suites that use it. */
  readonly name: string;
  readonly programs: readonly ProgramName[];
}

/** What the suites that use these tools call beside them. */
export function neededBySuites(tools: readonly Tool[]): readonly Need[] {
  const needs: readonly (Need & { readonly tool?: string })[] = [
    { name: 'the certificate suites', programs: ['openssl'] },
    { name: 'the LocalStack suites', programs: ['java'], tool: 'dynamodb-local' },
    { name: 'the MiniStack suites', programs: ['curl'], tool: 'ministack' },
    { name: 'the kubelet suites', programs: ['containerd', 'ip'], tool: 'kubelet' },
  ];
  return needs.filter(({ tool }) => tools.some(({ name }) => tool === undefined || tool === name));
}

export interface Lack {
  readonly program: ProgramName;
  /** `Go 1.26 or newer (found go1.25.9)` */
  readonly what: string;
  /** The names of the needs. */
  readonly neededBy: readonly string[];
}

/** Each program is looked for once. */
export function lacking(needs: readonly Need[], env: NodeJS.ProcessEnv): readonly Lack[] {
  return (Object.keys(PROGRAMS) as ProgramName[]).flatMap((program) => {
    const neededBy = needs.filter(({ programs }) => programs.includes(program)).map(({ name }) => name);
    const { what, problem }: Program = PROGRAMS[program];
    const found = neededBy.length === 0 ? undefined : problem(env);
    return found === undefined ? [] : [{ program, what: `${what} (${found})`, neededBy }];
  });
}

/** The list that is printed before the first build, with the commands that install what is missing. */
export function describeLacks(lacks: readonly Lack[]): readonly string[] {
  if (lacks.length === 0) return [];
  const programs = lacks.map(({ program }): Program => PROGRAMS[program]);
  const packages = aptLine(lacks);
  return [
    'this machine lacks:',
    ...lacks.map(({ what, neededBy }) => `  ${what}, for ${neededBy.join(', ')}`),
    ...(packages === undefined ? [] : [`to install them on Debian: ${packages}`]),
    ...programs.flatMap(({ what, how }) => (how === undefined ? [] : [`to install ${what}: ${how}`])),
  ];
}

function aptLine(lacks: readonly Lack[]): string | undefined {
  const packages = lacks.flatMap(({ program }) => (PROGRAMS[program] as Program).debian ?? []);
  return packages.length === 0 ? undefined : `apt-get install ${packages.join(' ')}`;
}

/** Why a tool cannot be installed. */
export function whyNot(tool: Tool, lacks: readonly Lack[]): string | undefined {
  const missing = lacks.filter(({ program }) => neededToInstall(tool.recipe).includes(program));
  if (missing.length === 0) return undefined;
  const list = missing.map(({ what }) => what).join(', ');
  // No installer of ours has such a tool, so the reason of the skipped suite says what does.
  return tool.recipe.kind === 'system'
    ? `this machine lacks ${list}; on Debian: ${aptLine(missing)}`
    : `its installation needs ${list}`;
}

function goProblem(env: NodeJS.ProcessEnv): string | undefined {
  const version = /^go(\d+)\.(\d+)\S*/.exec(
    firstLine('go', ['env', 'GOVERSION'], { ...env, GOTOOLCHAIN: 'local' }) ?? '',
  );
  if (version === null) return 'no `go` on PATH';
  const [found, major, minor] = [version[0], Number(version[1]), Number(version[2])];
  const enough = major > MINIMUM_GO[0] || (major === MINIMUM_GO[0] && minor >= MINIMUM_GO[1]);
  return enough ? undefined : `found ${found}`;
}

/** `tpm2` loads the library by its name. `ldconfig` is not on every user's PATH. */
function tctiProblem(env: NodeJS.ProcessEnv): string | undefined {
  const PATH = `${env['PATH'] ?? ''}:/sbin:/usr/sbin`;
  const { status, stdout } = spawnSync('ldconfig', ['-p'], { env: { ...env, PATH }, encoding: 'utf8' });
  if (status !== 0) return '`ldconfig -p` fails';
  return stdout.includes('libtss2-tcti-swtpm.so') ? undefined : 'not found by `ldconfig -p`';
}

/**
 * A Python that runs. The exit code decides, because the shim of a version manager is on PATH even when it fails. pyenv
 * keeps each version in its own folder, which is used when the shim does not select it.
 */
export function findPython(only: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  const holds = only === undefined ? '(3, 10) <= v' : `v == (${only.replace('.', ', ')})`;
  const probe = `import sys, venv, ensurepip; v = sys.version_info[:2]; sys.exit(not (${holds}))`;
  const minors = only === undefined ? ['3.13', '3.12', '3.11', '3.10'] : [only];
  const onPath = [...minors.map((minor) => `python${minor}`), 'python3'];
  const ofPyenv = minors.flatMap((minor) => pyenvFolders(minor, env).map((folder) => join(folder, 'bin', 'python3')));
  return [...onPath, ...ofPyenv].find((python) => spawnSync(python, ['-c', probe], { env }).status === 0);
}

function pyenvFolders(minor: string, env: NodeJS.ProcessEnv): string[] {
  const versions = join(env['PYENV_ROOT'] || join(env['HOME'] || homedir(), '.pyenv'), 'versions');
  if (!existsSync(versions)) return [];
  return readdirSync(versions)
    .filter((name) => name.startsWith(`${minor}.`))
    .map((name) => join(versions, name));
}
