/**
 * Builds the one file that an image runs:
 *
 *   node deploy/image/build.ts --out DIR                      → DIR/watch-relay.cjs, DIR/licenses.txt
 *   node deploy/image/build.ts --out DIR --token-reconcile    → DIR/token-reconcile.cjs, DIR/licenses.txt
 *
 * CommonJS loads a fifth faster than the same bundle as an ES module. Names are not minified, so that stack traces in bug
 * reports are readable.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { contained, licenses, packagesOf, withoutUnusedModels } from '../bundle.ts';

const root = resolve(import.meta.dirname, '../..');
export const bundleName = 'watch-relay.cjs';
export const tokenReconcileName = 'token-reconcile.cjs';

export interface RelayBundle {
  readonly path: string;
  readonly bytes: number;
  /** Files with code in the bundle, relative to the repository. */
  readonly sources: readonly string[];
  /** `name@version` of the packages among them. */
  readonly packages: readonly string[];
}

/** Never in the relay's image: keys in files, the services behind the endpoint, everything for development. */
const forbidden =
  /^(dev|test|bench|cli|lib|deploy)\/|^adapters\/(embedded|dynamodb|aws\/kms-)|^lambdas\/(?!watch-relay\/)|^core\/(issue|x509\/(tbs-certificate|ca-certificate))\.ts$/;

export function intruders(sources: readonly string[]): string[] {
  return sources.filter((source) => forbidden.test(source));
}

/** Only this command of the command line, and the adapters for cluster objects. */
export function tokenReconcileIntruders(sources: readonly string[]): string[] {
  const own =
    /^(core\/|adapters\/(http|kubernetes)\/|cli\/(runtime\/exit|cluster\/(object-answers|token-rotation))\.ts$|deploy\/image\/token-reconcile\.ts$|node_modules\/(?!@aws|@smithy))/;
  return sources.filter((source) => !own.test(source));
}

/** Throws, and writes nothing, if the bundle would hold a file that does not belong there. */
export function buildRelay(out: string): Promise<RelayBundle> {
  return buildProgram(out, { entry: 'lambdas/watch-relay/index.ts', name: bundleName, strangers: intruders });
}

export function buildTokenReconcile(out: string): Promise<RelayBundle> {
  const entry = 'deploy/image/token-reconcile.ts';
  return buildProgram(out, { entry, name: tokenReconcileName, strangers: tokenReconcileIntruders });
}

interface Program {
  readonly entry: string;
  readonly name: string;
  readonly strangers: (sources: readonly string[]) => string[];
}

async function buildProgram(out: string, { entry, name, strangers: strangersOf }: Program): Promise<RelayBundle> {
  const path = join(out, name);
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile: path,
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    // The ES module variants. Unused code in CommonJS variants cannot be removed, which makes the bundle half as large again.
    mainFields: ['module', 'main'],
    minifySyntax: true,
    minifyWhitespace: true,
    plugins: [withoutUnusedModels],
    // licenses.txt has them, with the packages' names.
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  const sources = contained(metafile);
  const strangers = strangersOf(sources);
  if (strangers.length > 0) throw new Error(`these files do not belong in ${name}: ${strangers.join(', ')}`);
  const packages = packagesOf(sources);
  mkdirSync(out, { recursive: true });
  const contents = outputFiles[0]?.contents ?? new Uint8Array();
  writeFileSync(path, contents);
  writeFileSync(join(out, 'licenses.txt'), licenses(packages));
  return { path, bytes: contents.length, sources, packages: [...packages.keys()].toSorted() };
}

if (import.meta.main) {
  const options = { out: { type: 'string' }, 'token-reconcile': { type: 'boolean' } } as const;
  const { out, 'token-reconcile': tokenReconcile } = parseArgs({ options }).values;
  if (out === undefined) {
    process.stderr.write('usage: node deploy/image/build.ts --out DIR [--token-reconcile]\n');
    process.exitCode = 2;
  } else {
    const { path, bytes, packages } = await (tokenReconcile === true ? buildTokenReconcile : buildRelay)(out);
    process.stdout.write(`${path}: ${Math.round(bytes / 1024)} KB, ${packages.length} packages\n`);
  }
}
