/**
 * The layer below Node: C and C++ libraries, the names of users, CA certificates, licences. No shell, no package manager.
 *
 * `/var/lib/dpkg/status.d` names the packages as distroless images do, so that scanners of vulnerabilities find them.
 */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Architecture } from '../node.ts';
import { fetchPackages, type DebianPackage } from './debian.ts';
import { layerOf, writeIn, type Layer } from './layer.ts';

/** The libraries that Node is linked with, and what the C library loads to resolve names. */
const kept = [
  /^usr\/lib\/[^/]+\/(ld-linux-[^/]+|lib(c|m|dl|pthread|rt|resolv|nss_dns|nss_files|gcc_s|stdc\+\+)\.so\.[\d.]+)$/,
  /^usr\/lib(64)?\/ld-linux-[^/]+$/,
  /^(lib|lib64)$/,
  /^(etc|usr\/lib)\/os-release$/,
  /^etc\/debian_version$/,
  /^usr\/share\/doc\/[^/]+(\/copyright)?$/,
  /^usr\/share\/common-licenses\/[^/]+$/,
];

/** Without a slash at the start. */
export function inBase(path: string): boolean {
  return kept.some((pattern) => pattern.test(path));
}

const user = 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin';
const texts: Readonly<Record<string, string>> = {
  '/etc/passwd': `root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n${user}\n`,
  '/etc/group': 'root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n',
  '/etc/nsswitch.conf': 'hosts: files dns\n',
};

export function baseLayer(pinned: readonly DebianPackage[], architecture: Architecture): Promise<Layer> {
  const packages = fetchPackages(pinned, architecture);
  const label = packages.map(({ name, version }) => `${name}=${version}`).join(' ');
  return layerOf(`Debian packages: ${label}`, (folder) => {
    const work = mkdtempSync(join(tmpdir(), 'countersign-debian-'));
    try {
      for (const { name, file } of packages) {
        execFileSync('dpkg-deb', ['--extract', file, work]);
        const control = execFileSync('dpkg-deb', ['--field', file], { encoding: 'utf8' });
        writeIn(folder, `/var/lib/dpkg/status.d/${name}`, control);
      }
      for (const path of readdirSync(work, { recursive: true, encoding: 'utf8' })) {
        const [from, to] = [join(work, path), join(folder, path)];
        const state = lstatSync(from);
        if (state.isDirectory() || !inBase(path)) continue;
        mkdirSync(dirname(to), { recursive: true });
        if (state.isSymbolicLink()) symlinkSync(readlinkSync(from), to);
        else copyFileSync(from, to);
      }
      writeIn(
        folder,
        '/etc/ssl/certs/ca-certificates.crt',
        authorities(join(work, 'usr/share/ca-certificates/mozilla')),
      );
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
    for (const [path, text] of Object.entries(texts)) writeIn(folder, path, text);
    for (const place of ['home/nonroot', 'tmp', 'proc', 'dev', 'sys'])
      mkdirSync(join(folder, place), { recursive: true });
  });
}

/** As `update-ca-certificates` writes them. */
function authorities(folder: string): string {
  return readdirSync(folder)
    .toSorted()
    .map((name) => `${readFileSync(join(folder, name), 'utf8').trimEnd()}\n`)
    .join('');
}
