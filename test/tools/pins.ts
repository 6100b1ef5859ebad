import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The Kubernetes version under test, such as `1.36.3`. Written down once, in kubernetes/go.mod. */
export const kubernetesVersion: string = (() => {
  const goMod = readFileSync(join(import.meta.dirname, 'kubernetes', 'go.mod'), 'utf8');
  const version = /^\s*k8s\.io\/kubernetes v(\d+\.\d+\.\d+)\b/m.exec(goMod)?.[1];
  if (version === undefined) throw new Error('test/tools/kubernetes/go.mod does not require k8s.io/kubernetes');
  return version;
})();

/** `1.36`: what a binary that we did not build must be, to be used all the same. */
export const kubernetesMinor: string = kubernetesVersion.split('.', 2).join('.');

/** A short name for everything a folder pins: a changed pin has a place of its own in the cache. */
export function pinsDigest(folder: string): string {
  const hash = createHash('sha256');
  for (const file of ['go.mod', 'go.sum', 'requirements.txt', 'pom.xml', 'package-lock.json']) {
    const path = join(import.meta.dirname, folder, file);
    if (existsSync(path)) hash.update(`${file}\0`).update(readFileSync(path));
  }
  return hash.digest('hex').slice(0, 12);
}
