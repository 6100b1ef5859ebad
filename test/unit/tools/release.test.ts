import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../harness/processes/processes.ts';
import { kubernetesVersion } from '../../tools/pins.ts';
import type { Machine } from '../../tools/recipe.ts';
import { download, isReachable, releaseBinary } from '../../tools/release.ts';

const content = Buffer.alloc(100_000, 'kubectl');
const sha256 = createHash('sha256').update(content).digest('hex');
const arch = process.arch === 'x64' ? 'amd64' : process.arch;
const place = `v${kubernetesVersion}/bin/${process.platform}/${arch}/kubectl`;
const binary = releaseBinary('kubectl', `${sha256}  ${place}\n`)!;

let folder: { path: string; remove: () => void };
beforeEach(() => (folder = temporaryFolder('release')));
afterEach(() => folder.remove());

describe('a release binary', () => {
  test('is that of the pinned version and this platform, with the committed checksum', () => {
    expect(binary).toEqual({ name: 'kubectl', url: `https://dl.k8s.io/${place}`, sha256 });
  });

  test.for([
    ['there is no checksum of it', `${sha256}  ${place}-other\n`],
    ['the checksum is that of another version', `${sha256}  ${place.replace(kubernetesVersion, '1.2.3')}\n`],
    ['the checksum is shortened', `${sha256.slice(1)}  ${place}\n`],
    ['the checksum is empty', `  ${place}\n`],
  ] as const)('is not offered if %s', ([, sums]) => {
    expect(releaseBinary('kubectl', sums)).toBeUndefined();
  });

  test('has a committed checksum of the pinned version only', () => {
    const sums = readFileSync(join(import.meta.dirname, '../../tools/kubernetes/SHA256SUMS'), 'utf8');
    const lines = sums.trimEnd().split('\n');
    for (const line of lines) expect(line).toMatch(/^[0-9a-f]{64} {2}v[\d.]+\/bin\/[a-z]+\/[a-z0-9]+\/kube[a-z-]+$/);
    expect(lines.filter((line) => !line.includes(`  v${kubernetesVersion}/`))).toEqual([]);
  });
});

describe('its host', () => {
  test('is asked once, by HEAD, with a time limit', async () => {
    const calls: RequestInit[] = [];
    const reachable = await isReachable(
      binary,
      machine((_url, init) => {
        calls.push(init ?? {});
        return Promise.resolve(new Response(null));
      }),
    );
    expect(reachable).toBe(true);
    expect(calls).toEqual([{ method: 'HEAD', signal: expect.any(AbortSignal) as AbortSignal }]);
  });

  test.for([
    ['it cannot be reached', () => Promise.reject(new TypeError('fetch failed'))],
    ['a proxy refuses', () => Promise.resolve(new Response(null, { status: 403 }))],
  ] as const)('is not used if %s', async ([, answer]) => {
    expect(await isReachable(binary, machine(answer))).toBe(false);
  });
});

describe('a download', () => {
  test('with the committed checksum becomes an executable file', async () => {
    const path = join(folder.path, 'kubectl');
    expect(await download(binary, path, machine(answers(content)))).toBeUndefined();
    expect(readFileSync(path).equals(content)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o755);
  });

  test.for([
    ['another content', answers(Buffer.concat([content, Buffer.of(0)])), 'has the SHA-256'],
    ['a part of the content', answers(content.subarray(1)), 'has the SHA-256'],
    ['status 404', () => Promise.resolve(new Response('no', { status: 404 })), 'answered with status 404'],
    ['a broken connection', () => Promise.reject(new TypeError('terminated')), 'failed: terminated'],
  ] as const)('with %s is refused with the reason, and leaves no file', async ([, answer, reason]) => {
    const path = join(folder.path, 'kubectl');
    expect(await download(binary, path, machine(answer))).toContain(reason);
    expect(existsSync(path)).toBe(false);
    expect(readdirSync(folder.path)).toEqual([]);
  });
});

function answers(body: Buffer<ArrayBuffer>): typeof fetch {
  return () => Promise.resolve(new Response(body));
}

function machine(answer: typeof fetch): Machine {
  return { env: {}, fetch: answer, progress: () => {} };
}
