import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The version of the module that holds a Go package, such as `1.36.3`, as the folder's go.mod requires it. */
export function pinnedVersion(folder: string, goPackage: string): string {
  const goMod = readFileSync(join(import.meta.dirname, folder, 'go.mod'), 'utf8');
  const required = [...goMod.matchAll(/^\s*(\S+) v(\d+\.\d+\.\d+)(?:\s|$)/gm)];
  const version = required.find(([, module]) => goPackage === module || goPackage.startsWith(`${module}/`))?.[2];
  if (version === undefined) throw new Error(`test/tools/${folder}/go.mod does not require the module of ${goPackage}`);
  return version;
}

/** `1.36` of `1.36.3` */
export function minorOf(version: string): string {
  return version.split('.', 2).join('.');
}

/** The Kubernetes version under test, such as `1.36.3`. */
export const kubernetesVersion: string = pinnedVersion('kubernetes', 'k8s.io/kubernetes');

/** `1.36`: the minor version that a binary from KUBEBUILDER_ASSETS or PATH must have. */
export const kubernetesMinor: string = minorOf(kubernetesVersion);

/** A short name for everything that a folder pins. A changed pin gets a new place in the cache. */
export function pinsDigest(folder: string): string {
  const hash = createHash('sha256');
  for (const file of ['go.mod', 'go.sum', 'requirements.txt', 'pom.xml', 'package-lock.json']) {
    const path = join(import.meta.dirname, folder, file);
    if (existsSync(path)) hash.update(`${file}\0`).update(readFileSync(path));
  }
  return hash.digest('hex').slice(0, 12);
}
