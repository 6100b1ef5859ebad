/**
 * Node's own single executable application: a script, as a note in a copy of the Node that the project pins.
 * https://nodejs.org/docs/latest-v24.x/api/single-executable-applications.html
 *
 * The executable of one architecture is made on any other: without V8's code cache, nothing in the note depends on it.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { measured, type Built } from './built.ts';
import { MissingTool } from './command.ts';
import { pinnedNode, type Architecture } from './node.ts';

const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

/** Beside the script: of `program.cjs` comes `program-linux-x64`, with mode 0755. */
export function buildExecutable(script: string, architecture: Architecture): Built {
  if (process.platform !== 'linux') throw new MissingTool('executables are made on Linux');
  const name = executableName(basename(script, '.cjs'), architecture);
  const postject = postjectProgram();
  const work = mkdtempSync(join(tmpdir(), 'countersign-sea-'));
  const made = join(work, name);
  try {
    copyFileSync(script, join(work, basename(script)));
    const configuration = {
      // Relative, since it goes into the executable: another checkout must give the same bytes.
      main: basename(script),
      output: 'blob',
      disableExperimentalSEAWarning: true,
      // V8's code cache would save a few milliseconds, and is another one each time.
      useCodeCache: false,
      // NODE_OPTIONS must not affect the executable: for its users it is not a Node program.
      execArgvExtension: 'none',
    };
    writeFileSync(join(work, 'sea.json'), JSON.stringify(configuration));
    run(pinnedNode(process.arch as Architecture).path, ['--experimental-sea-config', 'sea.json'], work);
    copyFileSync(pinnedNode(architecture).path, made);
    chmodSync(made, 0o755);
    run(process.execPath, [postject, name, 'NODE_SEA_BLOB', 'blob', '--sentinel-fuse', fuse], work);
    // What does not start must not be shipped.
    if (architecture === process.arch) run(made, ['--version'], work);
    const path = join(dirname(script), name);
    // A running program cannot be overwritten, but replaced.
    rmSync(path, { force: true });
    copyFileSync(made, path);
    chmodSync(path, 0o755);
    return measured(path);
  } finally {
    rmSync(work, { recursive: true });
  }
}

export function executableName(program: string, architecture: Architecture): string {
  return `${program}-linux-${architecture}`;
}

function postjectProgram(): string {
  try {
    return join(dirname(createRequire(import.meta.url).resolve('postject')), 'cli.js');
  } catch {
    throw new MissingTool('postject, which puts the script into the executable, is not installed: run npm ci');
  }
}

/** Silent when it went well: postject warns of names in the executable that it does not touch. */
function run(program: string, args: readonly string[], cwd: string): void {
  try {
    execFileSync(program, args, { cwd, env: {}, stdio: ['ignore', 'pipe', 'pipe'], timeout: 120_000 });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: Buffer | string; stderr?: Buffer | string };
    throw new Error(`${program} ${args.join(' ')} failed:\n${String(stdout)}${String(stderr)}`, { cause: error });
  }
}
