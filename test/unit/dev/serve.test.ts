import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { loadEmbeddedCa } from '../../../adapters/embedded/authority.ts';
import { run as runCli } from '../cli/run.ts';
import { csrFixture } from '../lambdas/sign/stack.ts';
import { serveHere } from './serve-here.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-serve-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface Served {
  readonly url: string;
  readonly output: () => string;
  /** Gives the exit code. */
  readonly stop: () => Promise<number | null>;
}
/** A process of its own. */
interface ServedByProcess extends Served {
  readonly errors: () => string;
  readonly stop: (signal?: NodeJS.Signals) => Promise<number | null>;
}
const running: ChildProcess[] = [];
const servedHere: Served[] = [];
afterEach(async () => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
  await Promise.all(servedHere.splice(0).map(({ stop }) => stop()));
});

function run(args: readonly string[]) {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../../dev/serve.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.push(child);
  let output = '';
  let errors = '';
  child.stdout.on('data', (text) => (output += String(text)));
  child.stderr.on('data', (text) => (errors += String(text)));
  const exited = once(child, 'close').then(([code]) => code as number | null);
  return { child, exited, output: () => output, errors: () => errors };
}

async function serveByProcess(...args: readonly string[]): Promise<ServedByProcess> {
  const { child, exited, output, errors } = run(['--port', '0', ...args]);
  while (!output().includes('Stop with Ctrl-C')) {
    if (child.exitCode !== null) throw new Error(`serve ended: ${errors()}`);
    await Promise.race([once(child.stdout, 'data'), exited]);
  }
  return {
    url: urlIn(output()),
    output,
    errors,
    stop: (signal = 'SIGTERM') => {
      child.kill(signal);
      return exited;
    },
  };
}

const urlIn = (text: string): string => /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0] ?? '';

/** In this process. */
async function serve(...args: readonly string[]): Promise<Served> {
  const { output, stop } = await serveHere(...args);
  const served = { url: urlIn(output()), output, stop };
  servedHere.push(served);
  return served;
}

async function sign(url: string, csr: object, cluster = 'demo'): Promise<{ status: number; certificate: string }> {
  const answer = await fetch(`${url}/v1/clusters/${cluster}/sign?timeout=30s`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(csr),
  });
  const body = (await answer.json()) as { status?: { certificate?: string } };
  return { status: answer.status, certificate: Buffer.from(body.status?.certificate ?? '', 'base64').toString() };
}
const trustBundle = async (url: string, cluster = 'demo') =>
  (await fetch(`${url}/v1/clusters/${cluster}/trust-bundle`)).text();

describe('npm run dev', () => {
  test('serves what it prints: webhook, CA and a kubeconfig that says the same', async () => {
    const { url, output, errors, stop } = await serveByProcess('--max-ttl', '2h');
    expect(output()).toContain(`webhook   ${url}/v1/clusters/demo/sign`);
    const kubeconfig = parse(
      output()
        .split('\n\n')
        .find((part) => part.startsWith('apiVersion')) ?? '',
    ) as {
      clusters: { cluster: { server: string } }[];
    };
    expect(kubeconfig.clusters[0]?.cluster.server).toBe(`${url}/v1/clusters/demo/sign`);

    const { status, certificate } = await sign(url, csrFixture());
    expect(status).toBe(200);
    const leaf = new X509Certificate(certificate);
    const ca = new X509Certificate(await trustBundle(url));
    expect([leaf.verify(ca.publicKey), leaf.checkIssued(ca)]).toEqual([true, true]);
    expect(leaf.validToDate.getTime() - Date.now()).toBeLessThanOrEqual(7_200_000);
    expect(await stop('SIGINT')).toBe(0);
    // One line of JSON for the request, none for the probe of the CA.
    const lines = errors()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ outcome: 'issued', status: 200, name: 'node-csr-1', cluster: 'demo' });
  });

  test('with --data a restart goes on: the same CA, and the same certificate for the same UID', async () => {
    const data = join(folder, 'kept');
    const csr = csrFixture();
    const first = await serve('--data', data);
    const before = [await sign(first.url, csr), await trustBundle(first.url)];
    expect(await first.stop()).toBe(0);
    const second = await serve('--data', data);
    expect([await sign(second.url, csr), await trustBundle(second.url)]).toEqual(before);
    // Where `countersign ca show --data DIR/<cluster>` looks.
    const { certificate } = await loadEmbeddedCa(join(data, 'demo'), 'ca');
    expect(Buffer.from(certificate)).toEqual(new X509Certificate(await trustBundle(second.url)).raw);
    expect(
      (await sign(second.url, csrFixture({ metadata: { uid: csr.metadata.uid }, spec: { groups: [] } }))).status,
    ).toBe(422);
  });

  test('killed in the middle, what was answered is kept', async () => {
    const data = join(folder, 'killed');
    const csr = csrFixture();
    const first = await serveByProcess('--data', data);
    const before = await sign(first.url, csr);
    expect(await first.stop('SIGKILL')).toBeNull();
    const second = await serve('--data', data);
    expect(await sign(second.url, csr)).toEqual(before);
  });

  test('two servers on one folder are one: 20 deliveries to both, one certificate', async () => {
    const data = join(folder, 'shared');
    const [one, two] = await Promise.all([serveByProcess('--data', data), serveByProcess('--data', data)]);
    expect(await trustBundle(one.url)).toBe(await trustBundle(two.url));
    const csr = csrFixture();
    const deliver = () => Promise.all(Array.from({ length: 20 }, (_, i) => sign(i % 2 === 0 ? one.url : two.url, csr)));
    const answers = [...(await deliver()), ...(await deliver())];
    expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
    expect(new Set(answers.filter(({ status }) => status === 200).map(({ certificate }) => certificate)).size).toBe(1);
    expect(answers.slice(20).every(({ status }) => status === 200)).toBe(true);
  });

  test('without --data nothing is written, and another start is another CA', async () => {
    const [one, two] = await Promise.all([serve(), serve()]);
    expect(await trustBundle(one.url)).not.toBe(await trustBundle(two.url));
  });

  test('a countersign.yaml brings its clusters, each with a CA and ledger of its own', async () => {
    const file = join(folder, 'countersign.yaml');
    const cluster = `
    cas: {ca: {subject: {commonName: CA}}}
    profiles:
      kubernetes.io/kube-apiserver-client-kubelet: {maxTtl: 1h}`;
    writeFileSync(file, `version: 1\nclusters:\n  one:${cluster}\n  two:${cluster}\n`);
    const { url, output } = await serve('--config', file, '--data', join(folder, 'configured'));
    expect(output()).toContain('/v1/clusters/one/sign');
    expect(await trustBundle(url, 'one')).not.toBe(await trustBundle(url, 'two'));
    const csr = csrFixture();
    const [one, two] = [await sign(url, csr, 'one'), await sign(url, csr, 'two')];
    expect([one.status, two.status]).toEqual([200, 200]);
    expect(one.certificate).not.toBe(two.certificate);
    expect((await fetch(`${url}/v1/clusters/demo/healthz`)).status).toBe(404);
    expect(existsSync(join(folder, 'configured', 'one', 'ledger.sqlite'))).toBe(true);
  });

  test('too much is refused by size, in our words', async () => {
    const { url } = await serve();
    const answer = await fetch(`${url}/v1/clusters/demo/sign`, { method: 'POST', body: 'x'.repeat(2_000_000) });
    expect(answer.status).toBe(413);
    expect(answer.headers.get('x-countersign-outcome')).toBe('refused');
    expect(await answer.json()).toMatchObject({ details: { causes: [{ reason: 'RequestTooLarge' }] } });
  });
});

describe('wrong arguments', () => {
  afterEach(() => vi.unstubAllEnvs());
  async function say(args: readonly string[]): Promise<{ code: number; output: string; errors: string }> {
    const { code, out, err } = await runCli(['dev', ...args]);
    return { code, output: out, errors: err };
  }

  test.each([
    [['--help'], 0, ''],
    [['--port', 'x'], 2, /--port <port>' argument 'x' is invalid. Not a port number/],
    [['--port', '65536'], 2, /Not a port number/],
    [['--cluster', 'Demo'], 2, /'Demo' is invalid. Not a DNS label/],
    [['--cluster', '../x'], 2, /Not a DNS label/],
    [['--max-ttl', 'forever'], 2, /'forever' is invalid. It must look like 30d/],
    [['--max-ttl', '59s'], 2, /at least 60s/],
    [['--colour'], 2, /unknown option '--colour'/],
    [['something'], 2, /too many arguments/],
    [['--config', '/nonexistent.yaml'], 4, /there is no file \/nonexistent.yaml/],
    [['--config', 'package.json', '--max-ttl', '1h'], 2, /--max-ttl/],
    [['--data', ''], 2, /It names nothing/],
    [['--data', '/dev/null/x'], 3, /\/dev\/null/],
    [['--config', 'examples/countersign.yaml', '--cluster', 'gone'], 4, /has no cluster gone\n.*it has staging, prod/],
    [['--config', 'examples/countersign.yaml', '--write-kubeconfig', 'x'], 2, /several\n.*one of staging, prod/],
    [['--config', 'examples/countersign.yaml', '--kubeconfig', 'x'], 2, /several\n.*one of staging, prod/],
    [['--kubeconfig', 'x'], 2, /for signers of your own only.*kubernetes\.io\/.*\n.*docs\/kind\.md/],
    [['--config', 'examples/countersign.yaml', '--cluster', 'prod', '--context', 'x'], 2, /prod has kubernetes\.io\//],
    [['--write-kubeconfig', 'x', '--kubeconfig', 'x'], 2, /either --write-kubeconfig, or --kubeconfig/],
  ] as const)('%j ends with %d and says why', async (args, code, message) => {
    const answer = await say(args);
    expect(answer.code).toBe(code);
    expect(answer.errors).toMatch(message);
    expect(answer.output.includes('Examples:')).toBe(code === 0);
  });

  test('problems of a countersign.yaml are shown with their lines', async () => {
    const file = join(folder, 'wrong.yaml');
    writeFileSync(file, 'version: 1\nclusters:\n  demo: {cass: {}}\n');
    const { code, errors } = await say(['--config', file]);
    expect(code).toBe(3);
    expect(errors).toMatch(/wrong\.yaml:3:\d+: .*cass/);
  });

  test('a port that is taken, and Lambda', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const taken = await say(['--port', String((server.address() as AddressInfo).port)]);
    expect([taken.code, taken.errors]).toEqual([3, expect.stringMatching(/is taken; --port 0/)]);
    server.close();
    vi.stubEnv('AWS_LAMBDA_FUNCTION_NAME', 'sign');
    const inLambda = await say(['--port', '0']);
    expect([inLambda.code, inLambda.errors]).toEqual([3, expect.stringMatching(/refuses to start inside AWS Lambda/)]);
  });
});
