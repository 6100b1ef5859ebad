/** What every bundle of the product needs: the Kubernetes library without its unused modules, what is inside, and its licences. */
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Metafile, Plugin } from 'esbuild';

const root = resolve(import.meta.dirname, '..');

/**
 * The Kubernetes library has a thousand modules, one per object type and API; a program uses few of them.
 * The library does not declare its modules free of side effects. With that declared here, the bundler leaves unused modules
 * out of the relay: 0.5 MB, and 12 MB of memory per process. token-reconcile uses the typed clients and so contains them.
 */
export const withoutUnusedModels: Plugin = {
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
export function contained(metafile: Metafile): string[] {
  const inputs = Object.values(metafile.outputs).flatMap((output) => Object.entries(output.inputs));
  return inputs
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([file]) => file)
    .toSorted();
}

/** `name@version` → its folder. */
export function packagesOf(sources: readonly string[]): Map<string, string> {
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
