/**
 * The Debian packages below Node in the images: fetched by apt, at the versions and hashes of packages.json.
 *
 * apt gets folders of its own, so that nothing of this machine is changed, and any Debian with dpkg and apt will do. A version that
 * Debian has replaced, by a security update for example, is no longer offered: `--update-base` pins the one that is.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MissingTool } from '../command.ts';
import { architectures, cacheFolder, type Architecture } from '../node.ts';

const release = 'trixie';
const pins = join(import.meta.dirname, 'packages.json');
export const debianArchitecture = { x64: 'amd64', arm64: 'arm64' } as const satisfies Record<Architecture, string>;

/** What Node is linked with, the links and licences of the system, and the certificates for `--use-system-ca`. */
const names = ['base-files', 'ca-certificates', 'gcc-14-base', 'libc6', 'libgcc-s1', 'libstdc++6'] as const;

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: 'amd64' | 'arm64';
  readonly sha256: string;
}

export interface Fetched extends DebianPackage {
  readonly file: string;
}

/** Of both architectures. `file`: JSON as in packages.json. */
export function pinnedPackages(file = pins): readonly DebianPackage[] {
  return JSON.parse(readFileSync(file, 'utf8')) as readonly DebianPackage[];
}

/** Those of one architecture with their files, from the cache or from the mirror of this machine's apt. */
export function fetchPackages(all: readonly DebianPackage[], architecture: Architecture): readonly Fetched[] {
  const packages = all.filter((found) => found.architecture === debianArchitecture[architecture]);
  const cache = join(cacheFolder(), 'debian');
  mkdirSync(cache, { recursive: true });
  const missing = packages.filter(({ sha256 }) => !existsSync(join(cache, `${sha256}.deb`)));
  if (missing.length > 0)
    withApt(architecture, (apt, folder) => {
      try {
        apt('apt-get', ['download', ...missing.map(({ name, version }) => `${name}=${version}`)]);
      } catch (error) {
        const hint = 'If Debian has replaced a version, pin its successor: npm run package:images -- --update-base';
        throw new Error(`apt could not fetch the pinned packages. ${hint}\n${text(error)}`, { cause: error });
      }
      const files = readdirSync(folder).filter((name) => name.endsWith('.deb'));
      for (const { name, sha256 } of missing) {
        const file = join(folder, files.find((found) => found.startsWith(`${name}_`)) ?? name);
        const hash = createHash('sha256').update(readFileSync(file)).digest('hex');
        if (hash !== sha256) throw new Error(`${name} has SHA-256 ${hash}; ${sha256} is pinned`);
        // A file with its final name is complete. The folder may be on another disk than the cache.
        const temporary = join(cache, `${sha256}.${process.pid}`);
        copyFileSync(file, temporary);
        renameSync(temporary, join(cache, `${sha256}.deb`));
      }
    });
  return packages.map((found) => ({ ...found, file: join(cache, `${found.sha256}.deb`) }));
}

export function updatePins(): void {
  writeFileSync(pins, `${JSON.stringify(offeredPackages(), undefined, 2)}\n`);
}

/** What Debian offers today, for both architectures. */
export function offeredPackages(): readonly DebianPackage[] {
  return architectures.flatMap((architecture) => {
    const shown = withApt(architecture, (apt) => apt('apt-cache', ['show', '--no-all-versions', ...names]));
    return names.map((name): DebianPackage => {
      const control = shown.split('\n\n').find((part) => part.startsWith(`Package: ${name}\n`));
      const [version, sha256] = ['Version', 'SHA256'].map(
        (key) => new RegExp(`^${key}: (\\S+)$`, 'm').exec(control ?? '')?.[1],
      );
      if (version === undefined || sha256 === undefined) throw new Error(`apt offers no ${name} for ${architecture}`);
      return { name, version, architecture: debianArchitecture[architecture], sha256 };
    });
  });
}

type Apt = (program: 'apt-get' | 'apt-cache', args: readonly string[]) => string;

/** `folder` is where apt downloads to. */
function withApt<T>(architecture: Architecture, use: (apt: Apt, folder: string) => T): T {
  const [uris, keyring] = mirrors();
  const folder = mkdtempSync(join(tmpdir(), 'countersign-apt-'));
  try {
    for (const place of ['state/lists/partial', 'cache/archives/partial'])
      mkdirSync(join(folder, place), { recursive: true });
    const suites = uris.flatMap((uri) =>
      /security/.test(uri) ? [`${uri} ${release}-security`] : [`${uri} ${release}`, `${uri} ${release}-updates`],
    );
    const name = debianArchitecture[architecture];
    const sources = suites.map((suite) => `deb [arch=${name} signed-by=${keyring}] ${suite} main\n`);
    writeFileSync(join(folder, 'sources.list'), sources.join(''));
    const settings = {
      'Dir::State': join(folder, 'state'),
      'Dir::State::status': '/dev/null',
      'Dir::Cache': join(folder, 'cache'),
      'Dir::Etc::sourcelist': join(folder, 'sources.list'),
      'Dir::Etc::sourceparts': '-',
      'APT::Architecture': name,
      'APT::Architectures': name,
      'APT::Sandbox::User': '',
      'Acquire::Languages': 'none',
      'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled': 'false',
    };
    const options = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
    const apt: Apt = (program, args) =>
      execFileSync(program, [...options, ...args], {
        cwd: folder,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      });
    apt('apt-get', ['update', '-qq']);
    return use(apt, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Elsewhere the images cannot be made. */
export function hasDebianMirror(): boolean {
  try {
    return mirrors().length > 0;
  } catch (error) {
    if (error instanceof MissingTool) return false;
    throw error;
  }
}

/** The mirrors of this machine for Debian, and the keys that they are checked with. */
function mirrors(): readonly [uris: readonly string[], keyring: string] {
  const help =
    'the images are made on Debian, since apt fetches the packages below Node; on another system, in a container of Debian';
  let targets: string;
  try {
    targets = execFileSync('apt-get', ['indextargets', '--format', '$(ORIGIN) $(REPO_URI)'], { encoding: 'utf8' });
  } catch (error) {
    throw new MissingTool(`apt-get is missing: ${help}`, { cause: error });
  }
  const uris = [...targets.matchAll(/^Debian (\S+)$/gm)].flatMap(([, uri]) => uri ?? []);
  const keyring = ['pgp', 'gpg']
    .map((end) => `/usr/share/keyrings/debian-archive-keyring.${end}`)
    .find((path) => existsSync(path));
  if (uris.length === 0 || keyring === undefined)
    throw new MissingTool(`apt knows no mirror of Debian (apt-get update reads them): ${help}`);
  return [[...new Set(uris)], keyring];
}

function text(error: unknown): string {
  return String((error as { stderr?: unknown }).stderr ?? error).trim();
}
