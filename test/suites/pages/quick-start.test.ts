/**
 * docs/quick-start.md and the webhook client of docs/dev-server.md, from an empty folder, on a machine with npm, openssl, curl and jq:
 * kubectl and the programs of the checkout are not on its PATH.
 */
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildCli, packCli } from '../../../deploy/cli/build.ts';
import { freePort, temporaryFolder } from '../../harness/processes/processes.ts';
import { readPageAloud } from './commands.ts';
import type { Operator, Reader } from './commands.ts';

/** What the pages ask for. npm and npx are beside the Node of this test. */
const programs = ['openssl', 'curl', 'jq', 'bash', 'sh', 'cat', 'base64', 'env'] as const;
const onPath = (name: string): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
const missing = programs.filter((name) => onPath(name) === undefined);
if (missing.length > 0) console.warn(`skipped: this machine has no ${missing.join(', ')}`);

describe.skipIf(missing.length > 0)('on a machine without a cluster', () => {
  const folder = temporaryFolder('quick-start');
  const [home, bin] = [join(folder.path, 'home'), join(folder.path, 'bin')];
  const environment = { PATH: bin, HOME: home, npm_config_offline: 'true', npm_config_update_notifier: 'false' };
  let tarball: string;
  let port: string;
  let server: ChildProcess | undefined;
  let printed = '';
  let started = 0;

  const operator: Operator = {
    async execute(script) {
      const ran = promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
        cwd: home,
        env: environment,
        timeout: 120_000,
      });
      const { stdout } = await ran.catch((error: unknown) => {
        const text = error as { readonly stdout?: string; readonly stderr?: string };
        throw new Error(`${script}\nprinted:\n${text.stdout}\n${text.stderr}`, { cause: error });
      });
      return stdout;
    },
    start: (name) => {
      throw new Error(`${name}: serve() starts it, with the programs behind npx`);
    },
  };

  /** In the operator's second terminal. Resolves when the server listens. */
  async function serve(script: string): Promise<void> {
    printed = '';
    const child = spawn('bash', ['--norc', '-c', `exec ${script}`], {
      cwd: home,
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit'],
      // Ctrl-C reaches all processes of a terminal: npx too.
      detached: true,
    });
    server = child;
    await new Promise<void>((ready, failed) => {
      child.stdout.on('data', (text) => {
        printed += String(text);
        if (printed.includes('Stop with Ctrl-C')) ready();
      });
      child.once('exit', (code) => failed(new Error(`countersign dev ended with ${code}: ${printed}`)));
    });
  }

  async function stop(): Promise<void> {
    const child = server;
    server = undefined;
    if (child?.pid === undefined || child.exitCode !== null) return;
    const ended = new Promise((done) => {
      child.once('exit', done);
    });
    process.kill(-child.pid, 'SIGINT');
    await ended;
  }

  const page: { quickStart: Reader; devServer: Reader } = {
    quickStart: readPageAloud('docs/quick-start.md', operator, {}),
    devServer: readPageAloud('docs/dev-server.md', operator, {}),
  };
  const certificate = (name: string): X509Certificate => new X509Certificate(readFileSync(join(home, name)));

  beforeAll(async () => {
    for (const path of [home, bin]) mkdirSync(path);
    for (const name of programs) symlinkSync(onPath(name) ?? '', join(bin, name));
    for (const name of ['node', 'npm', 'npx'])
      symlinkSync(
        name === 'node' ? process.execPath : (onPath(name) ?? join(dirname(process.execPath), name)),
        join(bin, name),
      );
    tarball = packCli(await buildCli(folder.path), folder.path);
    port = String(await freePort());
  }, 120_000);
  afterAll(async () => {
    await stop();
    folder.remove();
  });

  test('1. installs, writes rules, and finds them valid', async () => {
    started = performance.now();
    const text = await page.quickStart.run('install', { 'npm install countersign': `npm install ${tarball}` });
    expect(text).toContain('countersign.yaml and countersign.schema.json are written');
    expect(text).toMatch(/demo +kubernetes\.io\/kube-apiserver-client +client +manual/);
    expect(await operator.execute('command -v kubectl || echo none')).toBe('none\n');
  });

  test('2. serves the rules of the folder', async () => {
    await serve(`${page.quickStart.text('dev')} --port ${port}`);
    expect(printed).toContain(`http://127.0.0.1:${port}/v1/clusters/demo/sign`);
    expect(printed).toContain(join(home, 'dev.kubeconfig'));
  });

  test('3. gives a certificate that openssl accepts, for the key of the request', async () => {
    expect(await page.quickStart.run('request')).toMatch(
      /^jane +\S+ +\S+ +kubernetes-admin +pending +CN=jane@example\.com/m,
    );
    expect(await page.quickStart.run('approve')).toMatch(
      /subject=CN ?= ?jane@example\.com\nissuer=CN ?= ?demo client CA\n/,
    );
    expect(await page.quickStart.run('verify', { '8443': port })).toBe('jane.crt: OK\n');
    const key = await operator.execute('openssl pkey -in jane.key -pubout');
    expect(certificate('jane.crt').publicKey.export({ type: 'spki', format: 'pem' })).toBe(key);
  });

  test('4. refuses what asks for too much, with the reason, before and after the approval', async () => {
    const refused = /reserved/;
    await expect(page.quickStart.run('explain')).rejects.toThrow(refused);
    await expect(page.quickStart.run('refused')).rejects.toThrow(/root has failed: .*system:masters/);
    expect(page.quickStart.left()).toEqual([]);
  });

  test('all of it in less than five minutes', () => {
    expect(performance.now() - started).toBeLessThan(300_000);
  });

  test('docs/dev-server.md: a webhook client gets its certificate without a relay', async () => {
    await stop();
    await serve(`${page.devServer.text('webhook-server')} --port ${port}`);
    const shown = await page.devServer.run('webhook', { '8443': port });
    expect(shown).toMatch(/subject=CN ?= ?jane\n/);
    expect(existsSync(join(home, 'webhook.crt'))).toBe(true);
    const answer = await fetch(`http://127.0.0.1:${port}/v1/clusters/demo/trust-bundle`);
    expect(certificate('webhook.crt').checkIssued(new X509Certificate(await answer.text()))).toBe(true);
    expect(page.devServer.left()).toEqual([]);
  });
});
