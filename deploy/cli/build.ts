/**
 * Makes the npm package of the command line (`npm run package:cli`):
 *
 *   dist/countersign-cli/          package.json, bin/, licenses.txt, README.md, LICENSE
 *   dist/countersign-VERSION.tgz   the same, as npm packs it
 *   dist/countersign-linux-x64, -arm64   with --executables: single executables with a Node in them
 *
 * Everything is bundled: the package has no dependencies and no scripts that run at its installation. Programs that are loaded on
 * demand, such as the AWS clients, are files of their own, so that `--help` reads a tenth of the package.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { shown } from '../built.ts';
import { buildScript, bundle, licenses, root, type Contents, type Script } from '../bundle.ts';
import { buildCommand } from '../command.ts';
import { buildExecutable } from '../executable.ts';
import { architectures } from '../node.ts';

/** The oldest that undici takes, the HTTP client of the Kubernetes library. `node:sqlite` needs 22.13. */
export const oldestNode = '22.19.0';

/**
 * What an operator's machine never runs: the plugin of the nodes, the deployment, tests, demos. Of the services only what
 * `countersign dev` serves.
 */
const forbidden =
  /^((acceptance|bench|kubelet-authenticator|lib|test)\/|dev\/(?!serve\/|csr-api\/)|lambdas\/(?!sign\/|attest\/|watch-relay\/))/;

export function intruders(sources: readonly string[]): string[] {
  return sources.filter((source) => forbidden.test(source));
}

export interface CliPackage extends Contents {
  /** The folder of the package. */
  readonly folder: string;
}

/** Throws, and writes nothing, if the package would hold a file that does not belong there. */
export async function buildCli(out: string): Promise<CliPackage> {
  const folder = join(out, 'countersign-cli');
  const { files, ...contents } = await bundle({
    // `@peculiar/x509` needs the first one before it is loaded. In a bundle the order of imports is not that of the sources.
    entryPoints: { metadata: 'reflect-metadata', program: 'cli/countersign.ts' },
    outdir: join(folder, 'bin'),
    chunkNames: '[name]-[hash]',
    splitting: true,
    format: 'esm',
    target: 'node22',
    // Some packages are CommonJS, and call `require` for modules of Node.
    banner: {
      js: "import { createRequire as nodeRequire } from 'node:module'; const require = nodeRequire(import.meta.url);",
    },
    define: commitDefinition(),
    intruders,
  });
  rmSync(folder, { recursive: true, force: true });
  for (const { path, contents: code } of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, code);
  }
  writeFileSync(join(folder, 'bin/countersign.mjs'), starter, { mode: 0o755 });
  writeFileSync(join(folder, 'bin/kubectl_complete.mjs'), completer, { mode: 0o755 });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest(), undefined, 2)}\n`);
  writeFileSync(join(folder, 'licenses.txt'), licenses(contents.packages));
  copyFileSync(join(import.meta.dirname, 'README.md'), join(folder, 'README.md'));
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  return { folder, ...contents };
}

/** The same program in one file, for the single executables and the image. */
export function buildCliScript(out: string): Promise<Script> {
  return buildScript(out, {
    entry: 'cli/countersign.ts',
    name: 'countersign.cjs',
    inject: ['reflect-metadata'],
    define: commitDefinition(),
    intruders,
  });
}

/** What `countersign version` prints; nothing outside a checkout. `-dirty`: with changes that no commit has. */
function commitDefinition(): Readonly<Record<string, string>> {
  const args = ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'];
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? { COUNTERSIGN_COMMIT: JSON.stringify(stdout.trim()) } : {};
}

/** kubectl calls the program of this name for completions of its plugin, with the words that were typed. */
const completer = `#!/usr/bin/env node
import process from 'node:process';
process.argv.splice(2, 0, '__complete', '--');
await import('./countersign.mjs');
`;

/** Plain JavaScript without syntax of this decade, so that an old Node can say what is wrong. */
const starter = `#!/usr/bin/env node
import process from 'node:process';
const [major, minor] = process.versions.node.split('.').map(Number);
const [needed, since] = [${oldestNode.split('.').slice(0, 2).join(', ')}];
if (major < needed || (major === needed && minor < since)) {
  process.stderr.write('countersign: needs Node ${oldestNode} or newer, this is ' + process.version + '\\n');
  process.exit(3);
}
// On Node 22 the first use of node:sqlite, by the embedded stores, warns that it is experimental.
process.removeAllListeners('warning');
process.on('warning', ({ name, message }) => {
  if (name !== 'ExperimentalWarning') process.stderr.write(name + ': ' + message + '\\n');
});
await import('./metadata.js');
await import('./program.js');
`;

function packageManifest(): Readonly<Record<'name' | 'version' | 'description' | 'license', string>> {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as ReturnType<typeof packageManifest>;
}

function manifest(): object {
  const { name, version, description, license } = packageManifest();
  return {
    name,
    version,
    description,
    license,
    type: 'module',
    engines: { node: `>=${oldestNode}` },
    // kubectl finds a plugin by its name: \`kubectl countersign …\`.
    bin: {
      countersign: 'bin/countersign.mjs',
      'kubectl-countersign': 'bin/countersign.mjs',
      'kubectl_complete-countersign': 'bin/kubectl_complete.mjs',
    },
    files: ['bin', 'licenses.txt'],
  };
}

/** The path of the tarball, which `npm install` takes. */
export function packCli({ folder }: Pick<CliPackage, 'folder'>, out: string): string {
  const answer = execFileSync('npm', ['pack', folder, '--pack-destination', out, '--json', '--ignore-scripts'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [packed] = JSON.parse(answer) as readonly { readonly filename: string }[];
  if (packed === undefined) throw new Error('npm pack named no file');
  return join(out, packed.filename);
}

const help = `usage: npm run package:cli [-- [--out DIR] [--executables]]

Makes the npm package of the command line in dist/ or DIR: a folder, and the tarball that npm installs. With --executables
also one file for each of Linux x64 and arm64, for machines without Node.

Examples:
  npm run package:cli
  npm install --global ./dist/countersign-${packageManifest().version}.tgz
  npm run package:cli -- --executables && ./dist/countersign-linux-x64 --help

Exit codes: 0 made, 1 failed, 2 usage, 3 a tool is missing
`;

if (import.meta.main)
  process.exitCode = await buildCommand(process.argv.slice(2), {
    name: 'package:cli',
    help,
    options: { executables: { type: 'boolean' } },
    run: async (out, { executables }) => {
      process.stdout.write(`${packCli(await buildCli(out), out)}\n`);
      if (executables !== true) return;
      const script = await buildCliScript(out);
      for (const architecture of architectures) process.stdout.write(shown(buildExecutable(script.path, architecture)));
    },
  });
