/** Every bundle of the product: made with the same options, with a list of what is inside, and with the licences of it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { build, type BuildOptions, type Metafile, type OutputFile, type Plugin } from 'esbuild';
import { measured, type Built } from './built.ts';

export const root = resolve(import.meta.dirname, '..');

export interface Contents {
  /** Files with code in the bundle, relative to the repository. */
  readonly sources: readonly string[];
  /** `name@version` of the packages among them → the folder. */
  readonly packages: ReadonlyMap<string, string>;
}

export interface Bundle extends Contents {
  /** Not written yet. */
  readonly files: readonly OutputFile[];
}

interface BundleOptions extends Pick<
  BuildOptions,
  | 'entryPoints'
  | 'outfile'
  | 'outdir'
  | 'format'
  | 'target'
  | 'banner'
  | 'chunkNames'
  | 'define'
  | 'inject'
  | 'minify'
  | 'splitting'
> {
  /** The sources that must not be in this bundle. */
  readonly intruders: (sources: readonly string[]) => readonly string[];
}

/** Throws if the bundle would hold a file that does not belong there. */
export async function bundle({ intruders, ...options }: BundleOptions): Promise<Bundle> {
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    bundle: true,
    write: false,
    platform: 'node',
    // The ES module variants. Unused code in CommonJS variants cannot be removed, which makes a bundle half as large again.
    mainFields: ['module', 'main'],
    // Names stay, so that stack traces in bug reports are readable.
    minifySyntax: true,
    minifyWhitespace: true,
    plugins: [withoutUnusedModels],
    // licenses.txt has them, with the packages' names.
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
    ...options,
  });
  const sources = contained(metafile);
  const strangers = intruders(sources);
  if (strangers.length > 0) throw new Error(`these files do not belong in this bundle: ${strangers.join(', ')}`);
  return { files: outputFiles, sources, packages: packagesOf(sources) };
}

/** A program in one file. */
export interface Script extends Built, Contents {}

interface Program extends Pick<BundleOptions, 'define' | 'inject' | 'minify' | 'intruders'> {
  readonly entry: string;
  readonly name: string;
}

/**
 * Writes the program and licenses.txt into `out`; nothing if the bundle would hold a file that does not belong there. CommonJS,
 * because Node's single executables need it, it loads a fifth faster, and esbuild then keeps each `import()` of the sources what it
 * is: code that has not run yet.
 */
export async function buildScript(out: string, { entry, name, ...options }: Program): Promise<Script> {
  const path = join(out, name);
  const { files, ...contents } = await bundle({
    entryPoints: [entry],
    outfile: path,
    format: 'cjs',
    target: 'node24',
    ...options,
  });
  mkdirSync(out, { recursive: true });
  writeFileSync(path, files[0]?.contents ?? new Uint8Array(), { mode: 0o755 });
  writeFileSync(join(out, 'licenses.txt'), licenses(contents.packages));
  return { ...measured(path), ...contents };
}

/**
 * The Kubernetes library has a thousand modules, one per object type and API; a program uses few of them.
 * The library does not declare its modules free of side effects. With that declared here, the bundler leaves unused modules
 * out of the relay: 0.5 MB, and 12 MB of memory per process. token-reconcile uses the typed clients and so contains them.
 */
const withoutUnusedModels: Plugin = {
  name: 'without unused models',
  setup(build) {
    const ours = 'resolved by this plugin';
    build.onResolve(
      { filter: /^@kubernetes\/client-node$/ },
      async ({ path, kind, importer, resolveDir, pluginData }) => {
        if (pluginData === ours || kind !== 'import-statement') return undefined;
        return { ...(await build.resolve(path, { kind, importer, resolveDir, pluginData: ours })), sideEffects: false };
      },
    );
    // The library's modules import each other by file name. To let esbuild resolve these names takes 20 seconds.
    build.onResolve({ filter: /^\.\.?\/.*\.js$/ }, ({ path, kind, importer, resolveDir }) =>
      kind === 'import-statement' && importer.includes('/node_modules/@kubernetes/client-node/dist/')
        ? { path: join(resolveDir, path), sideEffects: false }
        : undefined,
    );
  },
};

/** The inputs that contributed code, without types and unused modules. */
function contained(metafile: Metafile): string[] {
  const inputs = Object.values(metafile.outputs).flatMap((output) => Object.entries(output.inputs));
  return inputs
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([file]) => file)
    .toSorted();
}

function packagesOf(sources: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const source of sources) {
    if (!source.includes('node_modules/')) continue;
    let folder = dirname(join(root, source));
    // Inner package.json files only set the module type. The package's own one has a version.
    for (; relative(root, folder) !== ''; folder = dirname(folder)) {
      const { name, version } = manifest(folder);
      if (name === undefined || version === undefined) continue;
      found.set(`${name}@${version}`, folder);
      break;
    }
  }
  return found;
}

function manifest(folder: string): { name?: string; version?: string; license?: string } {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: string; version?: string };
  } catch {
    return {};
  }
}

/** The licences require that their text is distributed with the code. */
export function licenses(packages: ReadonlyMap<string, string>): string {
  return [...packages]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, folder]) => {
      const text = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'LICENCE', 'license']
        .map((file) => {
          try {
            return readFileSync(join(folder, file), 'utf8').trim();
          } catch {
            return undefined;
          }
        })
        .find((found) => found !== undefined);
      return `${name}\n\n${text ?? manifest(folder).license ?? 'licence not stated'}\n`;
    })
    .join(`\n${'-'.repeat(80)}\n\n`);
}
