import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { HttpEvent } from '../../../../adapters/lambda/http.ts';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import { errorAnswer } from '../../../../adapters/lambda/answers.ts';
import type { Result } from '../../../conformance/check.ts';
import { checks } from '../../../conformance/checks.ts';
import { runConformance } from '../../../conformance/conformance.ts';
import { main } from '../../../conformance/main.ts';
import { helpText } from '../../../conformance/options.ts';
import { checkTable } from '../../../conformance/report.ts';
import { signAws } from '../../../conformance/sigv4.ts';
import { verifySigV4 } from '../../../harness/aws/sigv4-verifier.ts';
import { clusterPath, startDevServer } from '../../../harness/stack/stack.ts';
import type { DevServer } from '../../../harness/stack/stack.ts';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/x509/test-certificates.ts';
import { startSite } from './site.ts';
import type { RunningSite } from './site.ts';

const root = resolve(import.meta.dirname, '../../../..');
const folder = mkdtempSync(join(tmpdir(), 'countersign-conformance-'));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => vi.unstubAllEnvs());

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function site(...given: Parameters<typeof startSite>): Promise<RunningSite> {
  const started = await startSite(...given);
  stops.push(started.stop);
  return started;
}

async function say(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const code = await main(args, { out: (text) => (out += text), err: (text) => (err += text), colour: false });
  return { code, out, err };
}

/** In a process of its own, as npm runs it. */
async function command(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const child = spawn(process.execPath, [join(root, 'test/conformance/main.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let [out, err] = ['', ''];
  child.stdout.on('data', (text) => (out += String(text)));
  child.stderr.on('data', (text) => (err += String(text)));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out, err };
}

describe('the dev server', () => {
  let server: DevServer;
  let url: string;
  beforeAll(async () => {
    server = await startDevServer();
    url = `${server.url}${clusterPath}`;
  });
  afterAll(async () => server?.stop());

  test('passes every check, in a table with one line for each, with exit code 0', async () => {
    const { code, out, err } = await command({}, url);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(new RegExp(`\n${checks.length} passed, 0 failed, 0 skipped\n$`));
    const passed = [...out.matchAll(/^✓ (\S+) /gm)].map(([, id]) => id);
    expect(passed).toEqual(checks.map(({ id }) => id));
  });

  test('passes twice: an earlier run does not disturb the next', async () => {
    const { code, out } = await say(url, '-o', 'json');
    expect(code).toBe(0);
    const { base, results } = JSON.parse(out) as { base: string; results: Result[] };
    expect(base).toBe(url);
    expect(results.map(({ id, outcome }) => [id, outcome])).toEqual(checks.map(({ id }) => [id, 'passed']));
  });

  test('passes with the global fetch, which does not report reused connections', async () => {
    const results = await runConformance({ base: `${url}/`, fetch });
    expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
    expect(results.filter(({ outcome }) => outcome === 'skipped').map(({ id }) => id)).toEqual(['keep-alive']);
  });

  test('--only includes the needed checks, and a skipped check does not block those that need it', async () => {
    const { code, out } = await say(url, '--only', 'chain', '--skip', 'trust-bundle');
    expect(code).toBe(0);
    expect([...out.matchAll(/^([✓✗–]) (\S+) /gm)].map(([, mark, id]) => `${mark} ${id}`)).toEqual([
      '– trust-bundle',
      '✓ trust-bundles',
      '✓ issued',
      '✓ pem',
      '✓ chain',
    ]);
    expect(out).toContain('left out by --skip');
    expect(out).toMatch(/\n4 passed, 0 failed, 1 skipped\n$/);
  });

  test('a failed check: exit code 1, the problem and the source of its rule', async () => {
    const broken = await site(
      ({ handler }) =>
        async (event) =>
          event.rawPath.endsWith('/sign')
            ? errorAnswer(503, 'busy', 'no\u001B[1A', [], { retryAfterSeconds: 0 })
            : handler(event),
    );
    const { code, out } = await say(broken.base, '--only', 'issued', '--signer', 'kubernetes.io/kubelet-serving');
    expect(code).toBe(1);
    expect(out).toContain('! kubernetes.io/kubelet-serving: answered 503: no\uFFFD[1A\n');
    expect(out).toContain('from: docs/signing-api.md');
    expect(out).toMatch(/\n0 passed, 1 failed, 0 skipped: issued\n$/);
  });

  test('an endpoint that never answers: all checks fail when the time is up, and no connection stays open', async () => {
    const sockets = new Set<{ destroy(): void }>();
    const silent = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    stops.push(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => silent.close(done));
    });
    const base = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1/clusters/demo`;
    const results = await runConformance({ base, timeoutMilliseconds: 500 });
    expect(results).toHaveLength(checks.length);
    expect(results.find(({ id }) => id === 'issued')).toMatchObject({
      outcome: 'failed',
      detail: expect.stringContaining('the time is up (0.5 s)') as string,
    });
  });

  test('an endpoint that is unreachable or refuses the caller: exit code 2, in one line', async () => {
    const closedServer = createServer().listen(0, '127.0.0.1');
    await once(closedServer, 'listening');
    const { port } = closedServer.address() as AddressInfo;
    await new Promise((done) => closedServer.close(done));
    expect(await say(`http://127.0.0.1:${port}/v1/clusters/demo`)).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringMatching(/^conformance: \S+\/healthz: no answer: .*ECONNREFUSED.*\n$/) as string,
    });
    const closed = await site(() => async () => ({ statusCode: 403, headers: {}, body: '{"message":"Forbidden"}' }));
    expect(await say(closed.base)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/answered 403.*--sigv4/) as string,
    });
  });
});

describe('which signers', () => {
  const whole = defaultCluster('demo', { maxTtlSeconds: 3_600 });
  const serving = 'kubernetes.io/kubelet-serving';
  const cluster = { ...whole, profiles: new Map([...whole.profiles].filter(([name]) => name === serving)) };

  test('by default, those of the three that the endpoint serves; the result names them', async () => {
    const { base } = await site(undefined, cluster);
    const results = await runConformance({ base });
    expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([]);
    expect(results.find(({ id }) => id === 'issued')?.detail).toBe(`signers: ${serving}`);
  });

  test('a signer of --signer must be served', async () => {
    const { base } = await site(undefined, cluster);
    const signer = 'kubernetes.io/kube-apiserver-client';
    const { code, out } = await say(base, '--only', 'issued', '--signer', signer, '--signer', serving);
    expect(code).toBe(1);
    expect(out).toContain(`! ${signer}: answered 409: this cluster has no profile for the signerName`);
  });

  test('--username and --group choose the requester for a profile that names its requesters', async () => {
    const name = 'kubernetes.io/kube-apiserver-client';
    const profile = whole.profiles.get(name);
    if (profile === undefined) throw new Error(`no ${name}`);
    const picky = { ...profile, requester: { users: [], groups: ['platform-team'] } };
    const { base } = await site(undefined, { ...whole, profiles: new Map([[name, picky]]) });
    expect((await say(base, '--only', 'issued')).code).toBe(1);
    expect((await say(base, '--username', 'alice', '--group', 'platform-team')).code).toBe(0);
  });
});

describe('credentials', () => {
  /** Admits the calls that pass `admit`, and records every call. */
  async function guarded(admit: (event: HttpEvent) => boolean): Promise<{ base: string; calls: HttpEvent[] }> {
    const calls: HttpEvent[] = [];
    const { base } = await site(({ handler }) => async (event) => {
      calls.push(event);
      return admit(event) ? handler(event) : { statusCode: 401, headers: {}, body: '{"message":"Unauthorized"}' };
    });
    return { base, calls };
  }

  test('a token is read for each call, sent with each, and never shown', async () => {
    const file = join(folder, 'token');
    writeFileSync(file, 'first.token\n');
    const { base, calls } = await guarded(({ headers }) => {
      writeFileSync(file, `token.${calls.length}`);
      return (
        headers['authorization'] === (calls.length === 1 ? 'Bearer first.token' : `Bearer token.${calls.length - 1}`)
      );
    });
    const { code, out, err } = await say(base, '--token-file', file, '--only', 'repeat');
    expect([code, err]).toEqual([0, '']);
    expect(calls.length).toBeGreaterThan(3);
    expect(out).not.toMatch(/token/);
    expect(await say(base, '--token-file', join(folder, 'none'))).toMatchObject({
      code: 2,
      err: expect.stringContaining('ENOENT') as string,
    });
  });

  test('headers, another Host and another address', async () => {
    const { base, calls } = await guarded(({ headers }) => headers['authorization'] === 'Basic c2VjcmV0');
    const { host, pathname } = new URL(base);
    const args = ['--connect', host, '--host-header', 'localhost:1', '--header', 'Authorization: Basic c2VjcmV0'];
    const { code, out } = await say(
      `http://nowhere.localhost${pathname}`,
      ...args,
      '--header',
      'X-Other: a b',
      '--only',
      'issued',
    );
    expect(code).toBe(0);
    expect(out).not.toContain('c2VjcmV0');
    expect(calls.map(({ headers }) => [headers['host'], headers['x-other']])).toEqual(
      calls.map(() => ['localhost:1', 'a b']),
    );
  });

  test('every call is signed for AWS as a verifier of our own understands it, queries and empty bodies too', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'not-a-secret');
    vi.stubEnv('AWS_SESSION_TOKEN', 'session');
    const verdicts = new Set<string>();
    const { base, calls } = await guarded(({ rawPath, rawQueryString, requestContext, headers, body }) => {
      const verified = verifySigV4(
        {
          method: requestContext.http.method,
          target: rawQueryString === '' ? rawPath : `${rawPath}?${rawQueryString}`,
          headers,
          body: Buffer.from(body ?? '', 'base64'),
        },
        () => 'not-a-secret',
        Date.now(),
      );
      verdicts.add(
        typeof verified === 'string'
          ? verified
          : [verified.accessKeyId, verified.region, verified.service, verified.sessionToken].join(),
      );
      return typeof verified !== 'string';
    });
    const { code } = await say(base, '--sigv4', '--region', 'eu-central-1');
    expect([...verdicts]).toEqual(['AKIDEXAMPLE,eu-central-1,execute-api,session']);
    expect(code).toBe(0);
    expect(calls.some(({ rawQueryString }) => rawQueryString === 'timeout=30s')).toBe(true);
  });

  test('service and region are those of the host', async () => {
    vi.stubEnv('AWS_REGION', undefined);
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'not-a-secret');
    const sign = signAws({});
    for (const [host, scope] of [
      ['a.execute-api.eu-west-3.amazonaws.com', 'eu-west-3/execute-api'],
      ['a.lambda-url.ap-south-1.on.aws', 'ap-south-1/lambda'],
    ] as const) {
      const url = new URL(`https://${host}/v1/clusters/demo/healthz`);
      const signed = await sign({ method: 'GET', url, headers: {}, body: undefined });
      expect(signed['authorization']).toContain(`/${scope}/aws4_request`);
    }
  });
});

describe('over TLS', () => {
  test('the name in the URL has to be proven, wherever the connection goes', async () => {
    const ca = await createTestAuthority('front door');
    const { certificatePem, keyPem } = await ca.issue({
      subject: [{ CN: ['front door'] }],
      extensions: loopbackServerExtensions(),
    });
    const behind = new URL((await site()).base);
    const front = createTlsServer({ cert: certificatePem, key: keyPem }, (incoming, outgoing) => {
      const { method, url: path, headers } = incoming;
      const onward = request({ host: behind.hostname, port: behind.port, method, path, headers });
      onward.on('response', (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      incoming.pipe(onward);
    }).listen(0, '127.0.0.1');
    await once(front, 'listening');
    stops.push(async () => {
      front.closeAllConnections();
      await new Promise((done) => front.close(done));
    });
    const address = `127.0.0.1:${(front.address() as AddressInfo).port}`;
    const trusted = join(folder, 'front-door.pem');
    writeFileSync(trusted, ca.certificatePem);
    const ask = (url: string, env: Readonly<Record<string, string>>, ...args: readonly string[]) =>
      command(env, `${url}${behind.pathname}`, '--only', 'repeat', '--only', 'keep-alive', ...args);

    const trust = { NODE_EXTRA_CA_CERTS: trusted };
    expect(await ask(`https://${address}`, trust)).toMatchObject({ code: 0, err: '' });
    expect(await ask('https://localhost', trust, '--connect', address)).toMatchObject({ code: 0, err: '' });
    expect(await ask('https://another.test', trust, '--connect', address)).toMatchObject({
      code: 2,
      err: expect.stringContaining("does not match certificate's altnames") as string,
    });
    expect((await ask(`https://${address}`, {})).code).toBe(2);
  });
});

describe('wrong arguments', () => {
  const url = 'http://127.0.0.1:1/v1/clusters/demo';
  test.each([
    [[], /URL of a cluster is missing/],
    [['nowhere'], /not a URL/],
    [['ftp://a/v1/clusters/demo'], /not an http or https URL/],
    [['http://127.0.0.1:8443/'], /must end in \/v1\/clusters\/<name>/],
    [[`${url}/sign`], /must end in/],
    [[`${url}?a=b`], /must not have a query/],
    [['http://u:secret@127.0.0.1/v1/clusters/demo'], /must not carry credentials/],
    [[url, 'more'], /only one URL is allowed/],
    [[url, '--signer', 'example.com/x'], /--signer example\.com\/x: not one of/],
    [[url, '--only', 'nothing'], /no check nothing/],
    [[url, '--concurrent', '1'], /--concurrent 1/],
    [[url, '--timeout', '0'], /--timeout 0/],
    [[url, '-o', 'xml'], /-o xml/],
    [[url, '--connect', 'here'], /not HOST:PORT/],
    [[url, '--header', 'secret'], /write it as 'Name: value'/],
    [[url, '--sigv4', '--token-file', 'x'], /choose one of/],
    [['http://10.0.0.1/v1/clusters/demo', '--sigv4'], /only over https/],
    [['http://localhost/v1/clusters/demo', '--connect', '10.0.0.1:80', '--token-file', 'x'], /only over https/],
    [[url, '--colour'], /Unknown option '--colour'/],
  ] as const)('%j', async (args, message) => {
    const { code, out, err } = await say(...args);
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(message);
    expect(err).not.toContain('secret');
  });

  test('runConformance throws for a wrong URL', async () => {
    await expect(runConformance({ base: 'http://127.0.0.1:1/' })).rejects.toThrow(/must end in/);
  });
});

describe('docs/conformance.md', () => {
  const page = readFileSync(join(root, 'docs/conformance.md'), 'utf8');

  test('the table is that of --list, and the help is complete', async () => {
    expect(page).toContain(checkTable());
    expect(await say('--list')).toEqual({ code: 0, out: checkTable(), err: '' });
    expect(await say('--help')).toEqual({ code: 0, out: helpText, err: '' });
  });

  test('pages that rules come from exist', () => {
    const pages = checks.flatMap(({ source }) => source.match(/docs\/[\w-]+\.md/g) ?? []);
    expect(pages.length).toBeGreaterThan(30);
    expect([...new Set(pages)].filter((name) => !existsSync(join(root, name)))).toEqual([]);
  });
});
