/**
 * Makes what is put on nodes (`npm run package`):
 *
 *   dist/kubelet-authenticator.cjs               one file for a Node 24 that is there already
 *   dist/kubelet-authenticator-linux-x64, -arm64 the same with a Node in it, for a machine that has none
 *   dist/licenses.txt, dist/SHA256SUMS
 *
 * The same sources give the same bytes, in any folder, so that a rebuild proves what is in the file.
 */
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { shown, writeSums } from '../built.ts';
import { buildScript, licenses, type Script } from '../bundle.ts';
import { buildCommand } from '../command.ts';
import { buildExecutable, executableName } from '../executable.ts';
import { architectures, pinnedNode } from '../node.ts';

const program = 'kubelet-authenticator';
export const scriptName = `${program}.cjs`;

/** What has no business on a node: the signing side, whatever is for development, the clients that are too slow to load. */
const forbidden =
  /^(dev|test|bench|cli|lib|deploy|lambdas)\/|^adapters\/(embedded|dynamodb|lambda|aws\/(kms-|ec2)|kubernetes\/api)|^core\/(issue|attest|x509\/ca-certificate)\.ts$|node_modules\/(@aws-sdk|@kubernetes)\//;

export function intruders(sources: readonly string[]): string[] {
  return sources.filter((source) => forbidden.test(source));
}

/** A cached call runs a tenth of the file. */
export function buildAuthenticator(out: string): Promise<Script> {
  const entry = 'kubelet-authenticator/kubelet-authenticator.ts';
  return buildScript(out, { entry, name: scriptName, intruders, minify: true });
}

const help = `usage: npm run package [-- [--out DIR] [--script-only]]

Makes kubelet-authenticator as it is put on nodes, in dist/ or DIR: one file for Node 24, and single executables for
Linux x64 and arm64 with Node in them. Sizes and SHA-256 are printed, and written to SHA256SUMS.

Examples:
  npm run package
  npm run package -- --script-only
  cd dist && sha256sum -c SHA256SUMS

Exit codes: 0 made, 1 failed, 2 usage, 3 a tool is missing
`;

if (import.meta.main)
  process.exitCode = await buildCommand(process.argv.slice(2), {
    name: 'package',
    help,
    options: { 'script-only': { type: 'boolean' } },
    run: async (out, flags) => {
      for (const architecture of architectures)
        rmSync(join(out, executableName(program, architecture)), { force: true });
      const script = await buildAuthenticator(out);
      process.stdout.write(shown(script));
      const executables = (flags['script-only'] === true ? [] : architectures).map((architecture) => {
        const built = buildExecutable(script.path, architecture);
        process.stdout.write(shown(built));
        return built;
      });
      if (executables.length > 0) {
        const node = pinnedNode('x64');
        const text = licenses(new Map([[node.package, node.folder]]));
        appendFileSync(join(out, 'licenses.txt'), `\n${'-'.repeat(80)}\n\n${text}`);
      }
      writeSums(join(out, 'SHA256SUMS'), [script, ...executables]);
    },
  });
