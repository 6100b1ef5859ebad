/**
 * Bundles the code of one function into one file. The same sources give the same bytes, so that a deployment changes a
 * function only if its code or its rules changed.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { buildSync } from 'esbuild';
import type { BuildFailure, BuildOptions } from 'esbuild';

export interface BundleOptions {
  /** The checkout. */
  readonly root: string;
  /** Relative to `root`; exports `handler`. */
  readonly entry: string;
  /** Global constants of the code, as JavaScript text. */
  readonly constants: Readonly<Record<string, string>>;
  /** Adds source maps: readable stack traces, a larger file and a slower start. */
  readonly sourceMap?: boolean;
}

export interface Bundle {
  /** `index.js`, and its source map if there is one. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Hash of all files; equal for equal sources, constants and build tool. */
  readonly hash: string;
  /** The bundled sources, relative to `root`. */
  readonly inputs: readonly string[];
}

export function bundle({ root, entry, constants, sourceMap = false }: BundleOptions): Bundle {
  const source = join(root, entry);
  if (!existsSync(source)) throw new Error(`the entry point ${entry} does not exist`);
  const options = {
    absWorkingDir: root,
    entryPoints: [entry],
    write: false,
    metafile: true,
    logLevel: 'silent',
    platform: 'node',
    target: 'node24',
  } as const satisfies BuildOptions;
  try {
    checkHandler(entry, options);
    const { outputFiles, metafile } = buildSync({
      ...options,
      outfile: 'index.js',
      bundle: true,
      // CommonJS starts sooner in Lambda than ES modules, and with `module` before `main` esbuild can leave out unused code.
      format: 'cjs',
      mainFields: ['module', 'main'],
      minify: true,
      legalComments: 'none',
      sourcemap: sourceMap ? 'linked' : false,
      sourcesContent: false,
      define: Object.fromEntries(Object.entries(constants).map(([name, text]) => [name, JSON.stringify(text)])),
    });
    const files = new Map(outputFiles.map(({ path, contents }) => [relative(root, path), contents]));
    const hash = createHash('sha256');
    for (const [name, contents] of files) hash.update(`${name}\0${contents.length}\0`).update(contents);
    return { files, hash: hash.digest('hex'), inputs: Object.keys(metafile.inputs) };
  } catch (error) {
    throw isBuildFailure(error)
      ? new Error(`${entry} cannot be bundled:\n${buildErrors(error)}`, { cause: error })
      : error;
  }
}

/** Checked at synthesis, since Lambda would only fail at the first call. */
function checkHandler(entry: string, options: BuildOptions & { readonly metafile: true; readonly write: false }): void {
  const { outputs } = buildSync({ ...options, outfile: 'index.js', bundle: false, format: 'esm' }).metafile;
  const names = Object.values(outputs).flatMap((output) => output.exports);
  if (!names.includes('handler')) throw new Error(`${entry} exports no handler`);
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && Array.isArray((error as Partial<BuildFailure>).errors);
}

function buildErrors({ errors }: BuildFailure): string {
  return errors
    .map(({ text, location }) =>
      location === null ? text : `${location.file}:${location.line}:${location.column + 1}: ${text}`,
    )
    .join('\n');
}
