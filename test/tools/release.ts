import { createHash } from 'node:crypto';
import { chmodSync, createWriteStream, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { kubernetesVersion } from './pins.ts';
import type { Machine } from './recipe.ts';
import { temporaryName } from './run.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

const HOST = 'https://dl.k8s.io';
const REACH_MS = 3_000;
const DOWNLOAD_MS = 10 * 60_000;

/** A binary of the Kubernetes release that this repository has the SHA-256 of. */
export interface ReleaseBinary {
  readonly name: string;
  readonly url: string;
  readonly sha256: string;
}

/**
 * The official binary of the pinned version for this platform. Without a committed checksum there is none: a checksum
 * fetched from the same host as the binary would prove nothing (docs/internals/decisions/0017-checksums-of-kubernetes-binaries.md).
 */
export function releaseBinary(
  name: string,
  sums: string = readFileSync(join(import.meta.dirname, 'kubernetes', 'SHA256SUMS'), 'utf8'),
): ReleaseBinary | undefined {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const path = `v${kubernetesVersion}/bin/${process.platform}/${arch}/${name}`;
  const line = sums.split('\n').find((candidate) => candidate.endsWith(`  ${path}`));
  const sha256 = line?.split(' ', 1)[0];
  return sha256 !== undefined && /^[0-9a-f]{64}$/.test(sha256) ? { name, url: `${HOST}/${path}`, sha256 } : undefined;
}

/** Asks once and briefly, so that a machine without a network loses three seconds at most. */
export async function isReachable({ url }: ReleaseBinary, machine: Machine): Promise<boolean> {
  try {
    const answer = await machine.fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(REACH_MS) });
    return answer.ok;
  } catch {
    return false;
  }
}

/** Returns the reason on failure. The file gets its final name and its executable bit after its checksum is compared. */
export async function download(
  { name, url, sha256 }: ReleaseBinary,
  path: string,
  machine: Machine,
): Promise<string | undefined> {
  machine.progress(`${name}: downloading ${url}`);
  const temporary = temporaryName(path);
  try {
    const answer = await machine.fetch(url, { signal: AbortSignal.timeout(DOWNLOAD_MS) });
    if (!answer.ok || answer.body === null) return `${url} answered with status ${answer.status}`;
    const hash = createHash('sha256');
    const hashing = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        hash.update(chunk);
        done(null, chunk);
      },
    });
    const body = Readable.fromWeb(answer.body as ReadableStream<Uint8Array>);
    await pipeline(body, hashing, createWriteStream(temporary, { mode: 0o600 }));
    const actual = hash.digest('hex');
    if (actual !== sha256)
      return `${url} has the SHA-256 ${actual}, but test/tools/kubernetes/SHA256SUMS has ${sha256}`;
    chmodSync(temporary, 0o755);
    renameSync(temporary, path);
    return undefined;
  } catch (error) {
    return `the download of ${url} failed: ${errorMessage(error)}`;
  } finally {
    rmSync(temporary, { force: true });
  }
}
