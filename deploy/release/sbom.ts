/**
 * The SBOM of a release: each file, and what is in it. Code counts as contained only if the bundler put it into the file; the hashes
 * are those of the lockfile and of deploy/image/packages.json, with which the build checked what it took.
 * https://cyclonedx.org/docs/1.6/json/
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Built } from '../built.ts';
import { root } from '../bundle.ts';
import type { DebianPackage } from '../image/debian.ts';
import type { PinnedNode } from '../node.ts';

/** A file of the release, or an image in one. */
export interface Part {
  readonly name: string;
  readonly type: 'application' | 'container';
  readonly sha256: string;
  /** `name@version` → folder, of packages from npm. */
  readonly packages?: ReadonlyMap<string, string>;
  readonly nodes?: readonly PinnedNode[];
  readonly debian?: readonly DebianPackage[];
  /** Names of other parts. */
  readonly parts?: readonly string[];
}

export const partOf = (
  { sha256 }: Pick<Built, 'sha256'>,
  name: string,
  contents: Omit<Part, 'name' | 'type' | 'sha256'> = {},
): Part => ({
  name,
  type: 'application',
  sha256,
  ...contents,
});

interface Component {
  readonly 'bom-ref': string;
}

/** JSON text. The same parts give the same text: without a time, and with a serial number made from the contents. */
export function softwareBillOfMaterials(version: string, parts: readonly Part[]): string {
  const components = new Map<string, Component>();
  const add = (component: Component): string => {
    components.set(component['bom-ref'], component);
    return component['bom-ref'];
  };
  const dependencies = parts.map((part) => {
    const inside = [
      ...[...(part.packages ?? [])].map(([label, folder]) => add(npmComponent(label, folder))),
      ...(part.nodes ?? []).map((node) => add(nodeComponent(node))),
      ...(part.debian ?? []).map((found) => add(debianComponent(found))),
      ...(part.parts ?? []).map((name) => refOf({ name })),
    ];
    return { ref: refOf(part), dependsOn: inside.toSorted() };
  });
  const release = { type: 'application', 'bom-ref': `countersign@${version}`, name: 'countersign', version };
  const document = {
    metadata: { component: { ...release, licenses: [{ license: { id: 'Apache-2.0' } }] } },
    components: [
      ...parts.map((part) => ({
        type: part.type,
        'bom-ref': refOf(part),
        name: part.name,
        version,
        hashes: [{ alg: 'SHA-256', content: part.sha256 }],
      })),
      ...[...components.values()].toSorted((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1)),
    ],
    dependencies: [{ ref: release['bom-ref'], dependsOn: parts.map(refOf) }, ...dependencies],
  };
  const header = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: serialNumber(JSON.stringify(document)),
    version: 1,
  };
  return `${JSON.stringify({ ...header, ...document }, undefined, 1)}\n`;
}

const refOf = ({ name }: Pick<Part, 'name'>): string => `file:${name}`;

/** A UUID of version 8: its bits are a hash of the contents. */
function serialNumber(contents: string): string {
  const hex = createHash('sha256').update(contents).digest('hex');
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function npmComponent(label: string, folder: string) {
  const at = label.lastIndexOf('@');
  const [name, version] = [label.slice(0, at), label.slice(at + 1)];
  const { license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly license?: string };
  const integrity = lockfile()[relative(root, folder)]?.integrity;
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    ...(integrity === undefined ? {} : { hashes: [sha512Of(integrity)] }),
    ...(license === undefined ? {} : { licenses: licensesOf(license) }),
    purl,
  };
}

function nodeComponent(node: PinnedNode) {
  const at = node.package.lastIndexOf('@');
  const [name, version] = [node.package.slice(0, at), node.package.slice(at + 1)];
  const purl = `pkg:npm/${node.package}`;
  const integrity = lockfile()[`node_modules/${name}`]?.integrity;
  return {
    type: 'platform',
    'bom-ref': purl,
    name: 'node',
    version,
    ...(integrity === undefined ? {} : { hashes: [sha512Of(integrity)] }),
    licenses: licensesOf('MIT'),
    // By this name databases of vulnerabilities know Node.
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    purl,
  };
}

function debianComponent({ name, version, architecture, sha256 }: DebianPackage) {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}&distro=trixie`;
  return { type: 'library', 'bom-ref': purl, name, version, hashes: [{ alg: 'SHA-256', content: sha256 }], purl };
}

function sha512Of(integrity: string) {
  return { alg: 'SHA-512', content: Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex') };
}

/** An SPDX expression, or a single identifier, which validators know by name. */
function licensesOf(license: string): readonly object[] {
  return /^[\w.-]+$/.test(license) ? [{ license: { id: license } }] : [{ expression: license }];
}

type Lockfile = Readonly<Record<string, { readonly integrity?: string }>>;
let read: Lockfile | undefined;
function lockfile(): Lockfile {
  read ??= (JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { readonly packages: Lockfile })
    .packages;
  return read;
}
