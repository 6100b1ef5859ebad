/* A disk that is full, read-only or holds something else than what was written: the certificate in use stays in use. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cacheFiles, printed } from '../../../harness/node/authenticator-output.ts';
import { startAuthenticatorSite, type AuthenticatorSite, type Node } from '../../../harness/node/authenticator-site.ts';

let site: AuthenticatorSite;
const mounts: string[] = [];
beforeAll(async () => {
  site = await startAuthenticatorSite();
});
afterAll(async () => {
  for (const mount of mounts) execFileSync('umount', [mount]);
  await site?.close();
});

const goTo = (moment: number) => site.platform.advance(moment - site.platform.now() + 1_000);
const refusing = (node: Node, code: string) => ({ env: { FS_FAULTS_FOLDER: node.cache, FS_FAULTS_REFUSE: code } });

/** With a valid certificate a call waits 3.5 seconds for the next one. On a busy machine that is too short: a later call collects it. */
async function decided(node: Node): ReturnType<Node['run']> {
  for (;;) {
    const program = await node.run();
    if (!/ waits for its (approval|certificate)| is still in progress|aborted due to timeout/.test(program.stderr))
      return program;
  }
}

/** Only root may mount, and not in every container. */
function tmpfs(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=0700', 'tmpfs', folder], { stdio: 'ignore' });
    mounts.push(folder);
    return true;
  } catch {
    return false;
  }
}

describe.each([
  ['ENOSPC', 'the disk is full'],
  ['EROFS', 'the file system is read-only'],
  ['EIO', 'the disk reports an error'],
])('%s', (code, words) => {
  test('nothing can be begun: says so, and that it may pass', async () => {
    const node = await site.node(`empty-${code.toLowerCase()}`);
    const program = await node.run(refusing(node, code));
    expect(program).toMatchObject({ code: 5, stdout: '' });
    expect(program.stderr).toContain(`cannot be written (${code}: ${words})`);
    expect(await site.requests().then((all) => all.filter(({ pem }) => pem === node.name))).toEqual([]);
    printed(await node.run());
  });

  test('a certificate that is due goes on being used, and is renewed when the disk is mended', async () => {
    const node = await site.node(`due-${code.toLowerCase()}`);
    const first = printed(await node.run());
    goTo(first.expires);
    const posts = site.calls.filter((call) => call.startsWith('POST')).length;
    const program = await node.run(refusing(node, code));
    expect(printed(program).certificatePem).toBe(first.certificatePem);
    expect(program.stderr).toContain(words);
    // Nothing was asked for that could not have been kept.
    expect(site.calls.filter((call) => call.startsWith('POST'))).toHaveLength(posts);
    expect(printed(await decided(node)).certificatePem).not.toBe(first.certificatePem);
  });
});

describe('a file system of its own', () => {
  test('full, then read-only, then neither', async ({ skip }) => {
    const node = await site.node('tmpfs');
    if (!tmpfs(node.cache)) return skip('needs the right to mount');
    const first = printed(await node.run());
    goTo(first.expires);

    const ballast = join(node.cache, 'ballast');
    let size = 0;
    try {
      for (; size < 1_000; size += 1) writeFileSync(ballast, Buffer.alloc(512), { flag: 'a' });
    } catch {
      // Full.
    }
    expect(size).toBeLessThan(1_000);
    const full = await node.run();
    expect(printed(full).certificatePem).toBe(first.certificatePem);
    expect(full.stderr).toContain('the disk is full');
    rmSync(ballast);

    execFileSync('mount', ['-o', 'remount,ro', node.cache]);
    const readOnly = await node.run();
    expect(printed(readOnly).certificatePem).toBe(first.certificatePem);
    expect(readOnly.stderr).toContain('the file system is read-only');

    execFileSync('mount', ['-o', 'remount,rw', node.cache]);
    expect(printed(await decided(node)).certificatePem).not.toBe(first.certificatePem);
  });
});

const folder = 'a folder';

describe('garbage', () => {
  const garbage: Readonly<Record<string, (text: string) => string | Uint8Array>> = {
    nothing: () => '',
    noise: () => randomBytes(3_000),
    'one half': (text) => text.slice(0, text.length / 2),
    'zeros of the same length': (text) => Buffer.alloc(text.length),
    'one letter changed': (text) =>
      text.replace(/([A-Za-z])(.{60})$/m, (_, letter: string, rest: string) => (letter === 'A' ? 'B' : 'A') + rest),
    'another JSON': () => '{"version":1,"keyPem":7}',
    'two megabytes': () => Buffer.alloc(2 * 1_048_576, 'x'),
    'a folder': () => folder,
  };
  const files = ['client.pem', 'client-copy.pem', 'client-next.json', 'client.lock'];

  test.each(files)(
    'in %s: the certificate is used, and renewed when it is due',
    async (file) => {
      for (const [name, make] of Object.entries(garbage)) {
        const node = await site.node(`g-${files.indexOf(file)}-${Object.keys(garbage).indexOf(name)}`);
        const first = printed(await node.run());
        const path = join(node.cache, file);
        if (file === 'client-next.json') {
          // There is one while a request is under way.
          goTo(first.expires);
          await site.signing('down');
          // On a busy machine the time of a call may end before it has a request.
          while (!existsSync(path)) await node.run();
          await site.signing('up');
        }
        const made = make(cacheFiles(node)[file]!);
        rmSync(path);
        if (made === folder) mkdirSync(path);
        else writeFileSync(path, made);

        const program = await node.run();
        const after = printed(program);
        if (file !== 'client-next.json') expect([name, after.certificatePem]).toEqual([name, first.certificatePem]);
        if (file === 'client.pem')
          expect([name, program.stderr]).toEqual([name, expect.stringContaining('client.pem ')]);
        goTo(after.expires);
        const renewed = await decided(node);
        // Only a folder in its place cannot be written over; then the old certificate is used and an operator has to act.
        const kept = made === folder && (file === 'client.lock' || file === 'client-next.json');
        const used = printed(renewed).certificatePem;
        expect(used === first.certificatePem, `${name}: ${renewed.stderr}`).toBe(kept);
        if (made === folder && file !== 'client-copy.pem') expect(renewed.stderr).toMatch(/cannot be|could not be/);
      }
    },
    240_000,
  );

  test('in all of them: says which, and that the machine has to be reset for another key', async () => {
    const node = await site.node('all-garbage', { settings: { keepBootstrapToken: true } });
    printed(await node.run());
    for (const file of ['client.pem', 'client-copy.pem']) writeFileSync(join(node.cache, file), 'garbage');
    const program = await node.run();
    expect(program).toMatchObject({ code: 1, stdout: '' });
    expect(program.stderr).toContain('client.pem holds no certificate with its key');
    expect(program.stderr).toContain('client-copy.pem holds no certificate with its key');
    expect(program.stderr).toContain('(TofuReuse)');
  });
});

test('the call of every hour loads a handful of files of ours, no AWS SDK and no Kubernetes client', async () => {
  const node = await site.node('modules');
  const list = async (): Promise<string[]> => {
    const file = join(site.folder, 'modules');
    writeFileSync(file, '');
    const hook = resolve(import.meta.dirname, '../../../harness/node/loaded-modules.ts');
    printed(await node.run({ nodeArgs: ['--import', hook], env: { LOADED_MODULES: file } }));
    const root = resolve(import.meta.dirname, '../../../..');
    return (
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        // Loaded by the preload before the hook was there.
        .filter((url) => url !== 'node:fs')
        .map((url) => url.replace(`file://${root}/`, ''))
        .toSorted()
    );
  };
  // The hook sees what it should: the first call needs all that.
  const first = await list();
  expect(first).toContain('kubelet-authenticator/credential/obtain.ts');
  expect(first.some((url) => url.includes('node_modules/@smithy/signature-v4'))).toBe(true);
  expect(first.filter((url) => url.includes('@kubernetes/client-node'))).toEqual([]);
  expect(await list()).toEqual([
    'core/encoding/json-object.ts',
    'core/encoding/pem.ts',
    'core/outcome/error-message.ts',
    'core/outcome/printable-text.ts',
    'core/outcome/result.ts',
    'kubelet-authenticator/credential/credential.ts',
    'kubelet-authenticator/credential/exec-credential.ts',
    'kubelet-authenticator/files/cache.ts',
    'kubelet-authenticator/files/check-credential.ts',
    'kubelet-authenticator/files/own-files.ts',
    'kubelet-authenticator/kubelet-authenticator.ts',
    'kubelet-authenticator/main.ts',
    'kubelet-authenticator/settings/settings.ts',
    'node:crypto',
    'node:path',
    'node:util',
  ]);
});
