/** What an unverified server can do to discovery. The real cluster is in test/suites/control-plane/join/discovery.ts. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { detachedSignature } from '../../../../core/kubernetes/bootstrap-token.ts';
import { caCertificates } from '../../../../core/kubernetes/cluster-info.ts';
import { discoverByFile, discoverByToken } from '../../../../kubelet-authenticator/join/discovery.ts';
import { maxAnswerBytes } from '../../../../kubelet-authenticator/join/server-calls.ts';
import type { DiscoveryAnswer, DiscoveryCall } from '../../../../kubelet-authenticator/join/server-calls.ts';
import { processDependencies } from '../../../../kubelet-authenticator/join/join.ts';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/x509/test-certificates.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import type { TestAuthority } from '../../../harness/x509/test-certificates.ts';

const token = { id: 'abcdef', secret: '0123456789abcdef' };
const patience = { reachMilliseconds: 0, signatureMilliseconds: 0, intervalMilliseconds: 1 };

let ours: TestAuthority;
let pin: string;
beforeAll(async () => {
  ours = await createTestAuthority('ours');
  const certificates = caCertificates(ours.certificatePem);
  pin = certificates.ok ? (certificates.value[0]?.pin ?? '') : '';
});

/** A server that answers every call with this cluster-info, signed or not. */
async function discover(kubeconfig: string, { signed = false, pins = [pin] } = {}) {
  const calls: (DiscoveryCall & { readonly trusted: boolean })[] = [];
  const signature = signed ? { 'jws-kubeconfig-abcdef': detachedSignature(kubeconfig, token) } : {};
  const dependencies = {
    call: (_: string, caPem: string | undefined, call: DiscoveryCall) => {
      calls.push({ ...call, trusted: caPem !== undefined });
      return Promise.resolve({ status: 200, text: JSON.stringify({ data: { kubeconfig, ...signature } }) });
    },
    log: () => {},
    sleep: () => Promise.resolve(),
    monotonic: () => 0,
    patience,
  };
  const wanted = { endpoint: '10.0.0.1:6443', discoveryToken: token, loginToken: token, pins };
  return { found: await discoverByToken(wanted, dependencies), calls };
}

const manyKeys = (count: number) => Array.from({ length: count }, (_, index) => `k${index}: v\n`).join('');
const entry = (server = 'https://10.0.0.1:6443') =>
  `clusters:\n- name: ""\n  cluster:\n    server: ${server}\n    certificate-authority-data: ${Buffer.from(ours.certificatePem).toString('base64')}\n`;

describe('finding 16: before the server is trusted', () => {
  test('a cluster-info of 150 000 keys is refused by its length', async () => {
    const { found, calls } = await discover(manyKeys(150_000));
    expect(found).toMatchObject({
      ok: false,
      problem: {
        why: 'ClusterInfoMalformed',
        message: expect.stringContaining('65536') as unknown,
      },
    });
    expect(calls).toHaveLength(1);
  });

  test('pins are compared before anything is parsed: text that is no kubeconfig is refused for its CA first', async () => {
    const other = await createTestAuthority('other');
    const text = `{{{ certificate-authority-data: ${Buffer.from(other.certificatePem).toString('base64')}\n`;
    expect((await discover(text)).found).toMatchObject({ problem: { why: 'CaNotPinned' } });
    // Also if a holder of the token has signed it.
    expect((await discover(text, { signed: true })).found).toMatchObject({ problem: { why: 'CaNotPinned' } });
  });

  test('it is parsed only when the server has shown a certificate of a pinned CA', async () => {
    const { found, calls } = await discover(`{{{ ${entry()}`, { signed: true });
    expect(found).toMatchObject({
      problem: {
        why: 'ClusterInfoMalformed',
        message: expect.stringContaining('JSON nor YAML') as unknown,
      },
    });
    expect(calls.map(({ trusted }) => trusted)).toEqual([false, true]);
  });

  test('the CA of another entry than the chosen one does not count', async () => {
    const other = await createTestAuthority('other');
    const another = Buffer.from(other.certificatePem).toString('base64');
    const text = `${entry().replace('name: ""', 'name: aside')}- name: ""\n  cluster: {server: "https://x", certificate-authority-data: ${another}}\n`;
    const { found, calls } = await discover(text, { signed: true });
    expect(found).toMatchObject({ problem: { why: 'CaNotPinned' } });
    expect(calls.some(({ bearer }) => bearer !== undefined)).toBe(false);
  });

  test.each([
    ['YAML', () => entry()],
    [
      'JSON',
      () =>
        JSON.stringify({
          clusters: [
            {
              name: '',
              cluster: {
                server: 'https://10.0.0.1:6443',
                'certificate-authority-data': Buffer.from(ours.certificatePem).toString('base64'),
              },
            },
          ],
        }),
    ],
  ])('an honest one in %s is found, and gets the token', async (_, text) => {
    const { found, calls } = await discover(text(), { signed: true });
    // This server knows no token.
    expect(found).toMatchObject({ problem: { why: 'TokenCannotLogIn' } });
    expect(calls.map(({ method, bearer }) => [method, bearer !== undefined])).toEqual([
      ['GET', false],
      ['GET', false],
      ['POST', true],
    ]);
  });
});

describe('finding 16: an answer without an end', () => {
  let sent = 0;
  let server: ReturnType<typeof createServer>;
  let port: number;
  beforeAll(async () => {
    const own = await ours.issue({ subject: [{ CN: ['kube-apiserver'] }], extensions: loopbackServerExtensions() });
    const chunk = Buffer.alloc(65_536, '{"a":');
    server = createServer({ key: own.keyPem, cert: own.certificatePem }, (_, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      const more = (): void => {
        while (!outgoing.destroyed) {
          sent += chunk.length;
          if (!outgoing.write(chunk)) return void outgoing.once('drain', more);
        }
      };
      more();
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test('is read to the cap and refused', async () => {
    const wanted = { endpoint: `127.0.0.1:${port}`, discoveryToken: token, loginToken: token, pins: [pin] };
    const found = await discoverByToken(wanted, { ...processDependencies(), log: () => {}, patience });
    expect(found).toMatchObject({
      problem: {
        why: 'ClusterInfoMalformed',
        message: expect.stringContaining(`${maxAnswerBytes} bytes`) as unknown,
      },
    });
    // What waits in the buffers of two sockets is a few MiB.
    expect(sent).toBeLessThan(maxAnswerBytes + 16 * 1_048_576);
  });
});

/** A cluster in memory: each function answers one kind of call. Time passes only while discovery sleeps. */
describe('each refusal', () => {
  interface Cluster {
    clusterInfo: (trusted: boolean, nth: number) => DiscoveryAnswer;
    self: () => DiscoveryAnswer;
    access: () => DiscoveryAnswer;
  }
  const info = (kubeconfig: string, more: Record<string, string> = {}): DiscoveryAnswer => ({
    status: 200,
    text: JSON.stringify({ data: { kubeconfig, ...more } }),
  });
  const signed = (kubeconfig = entry(), by = token): DiscoveryAnswer =>
    info(kubeconfig, { 'jws-kubeconfig-abcdef': detachedSignature(kubeconfig, by) });
  const answer = (status: number, value: unknown = {}): DiscoveryAnswer => ({ status, text: JSON.stringify(value) });
  const good: Cluster = {
    clusterInfo: () => signed(),
    self: () => answer(201, { status: { userInfo: { username: 'system:bootstrap:abcdef' } } }),
    access: () => answer(201, { status: { allowed: true } }),
  };

  const times = { reachMilliseconds: 60_000, signatureMilliseconds: 30_000, intervalMilliseconds: 5_000 };

  function inMemory(changes: Partial<Cluster>) {
    const cluster = { ...good, ...changes };
    const log: string[] = [];
    const bearers: boolean[] = [];
    let now = 0;
    let reads = 0;
    const dependencies = {
      async call(_: string, caPem: string | undefined, { path, bearer }: DiscoveryCall): Promise<DiscoveryAnswer> {
        await Promise.resolve();
        if (bearer !== undefined) bearers.push(caPem !== undefined);
        if (path.endsWith('/cluster-info')) return cluster.clusterInfo(caPem !== undefined, (reads += 1));
        return path.endsWith('/selfsubjectreviews') ? cluster.self() : cluster.access();
      },
      log: (line: string) => void log.push(line),
      sleep: async (milliseconds: number) => void (now += milliseconds),
      monotonic: () => now,
      patience: times,
    };
    return { dependencies, log, bearers, elapsed: () => now };
  }
  async function join(changes: Partial<Cluster>, pins = [pin]) {
    const memory = inMemory(changes);
    const wanted = { endpoint: '10.0.0.1:6443', discoveryToken: token, loginToken: token, pins };
    return { ...memory, found: await discoverByToken(wanted, memory.dependencies) };
  }
  const tlsError = (code: string) => () => {
    throw Object.assign(new Error('tls'), { code });
  };

  test('none for an honest cluster: the whole bundle, its pins, and no warning', async () => {
    const { found, bearers } = await join({});
    expect(found).toMatchObject({ ok: true, value: { server: 'https://10.0.0.1:6443', pins: [pin], warnings: [] } });
    expect(bearers).toEqual([true, true]);
  });

  test('a token that may not create requests is a warning that names the ClusterRole', async () => {
    const { found } = await join({ access: () => answer(201, { status: { allowed: false } }) });
    expect(found).toMatchObject({
      value: { warnings: [expect.stringContaining('system:node-bootstrapper') as unknown] },
    });
  });

  test('a signature by another secret', async () => {
    const { found, bearers } = await join({ clusterInfo: () => signed(entry(), { ...token, secret: '0'.repeat(16) }) });
    expect(found).toMatchObject({ problem: { why: 'SignatureInvalid' } });
    expect(bearers).toEqual([]);
  });

  test('another kubeconfig over verified TLS than before', async () => {
    const clusterInfo = (trusted: boolean) => signed(trusted ? entry() : entry('https://10.6.6.6:6443'));
    const { found, bearers } = await join({ clusterInfo });
    expect(found).toMatchObject({ problem: { why: 'ClusterInfoChanged' } });
    expect(bearers).toEqual([]);
  });

  test.each([
    ['CERT_HAS_EXPIRED', 'clock'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'other names'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'not of the pinned CA'],
  ])('a server whose certificate Node refuses with %s: at once, without a retry', async (code, words) => {
    const refuseTls = tlsError(code);
    const { found, elapsed } = await join({ clusterInfo: (trusted) => (trusted ? refuseTls() : signed()) });
    expect(found).toMatchObject({
      problem: { why: 'ServerNotTrusted', message: expect.stringContaining(words) as unknown },
    });
    expect(elapsed()).toBe(0);
  });

  test('a server that does not answer, after the whole time; each distinct reason is logged once', async () => {
    const { found, log, elapsed } = await join({
      clusterInfo: (_, nth) => (nth < 3 ? tlsError('ECONNREFUSED')() : answer(503)),
    });
    expect(found).toMatchObject({
      problem: { why: 'Unreachable', message: expect.stringContaining('HTTP 503') as unknown },
    });
    expect(log).toHaveLength(2);
    expect(elapsed()).toBe(60_000);
  });

  test('a server that answers late is no refusal, and neither is a late signature', async () => {
    const clusterInfo = (trusted: boolean, nth: number) =>
      nth === 1 ? answer(500) : nth < 4 && !trusted ? info(entry()) : signed();
    const { found, log } = await join({ clusterInfo });
    expect(found).toMatchObject({ ok: true });
    expect(log.join()).toContain('JWS signature for token id "abcdef"');
  });

  test('no signature: TokenUnknown or TokenCannotSign, by a login over verified TLS', async () => {
    const clusterInfo = () => info(entry());
    expect((await join({ clusterInfo })).found).toMatchObject({ problem: { why: 'TokenCannotSign' } });
    const unknown = await join({ clusterInfo, self: () => answer(401) });
    expect(unknown.found).toMatchObject({ problem: { why: 'TokenUnknown' } });
    expect(unknown.bearers).toEqual([true]);
    // Without pins the server cannot be verified, so it does not get the token.
    const unpinned = await join({ clusterInfo }, []);
    expect(unpinned.found).toMatchObject({ problem: { why: 'TokenUnknown' } });
    expect(unpinned.bearers).toEqual([]);
  });

  test.each([
    ['anonymous', 403, 'system:anonymous', 'TokenCannotLogIn'],
    ['another token', 201, 'system:bootstrap:ffffff', 'TokenCannotLogIn'],
    ['this token, without permission', 403, 'system:bootstrap:abcdef', undefined],
    ['an API server before 1.28', 404, '', undefined],
  ])('a login as %s', async (_, status, username, why) => {
    const { found } = await join({ self: () => answer(status, { message: `User "${username}"` }) });
    expect(found).toMatchObject(why === undefined ? { ok: true } : { problem: { why } });
  });

  test.each([
    [200, { data: {} }, 'no kubeconfig key'],
    [404, {}, 'HTTP 404'],
    [403, {}, 'HTTP 403'],
  ])('cluster-info with status %i: NotSetUp, after the time for signatures', async (status, value, words) => {
    const { found, elapsed } = await join({ clusterInfo: () => answer(status, value) });
    expect(found).toMatchObject({
      problem: {
        why: 'NotSetUp',
        message: expect.stringContaining(words) as unknown,
        hint: expect.stringContaining('--discovery-file') as unknown,
      },
    });
    expect(elapsed()).toBe(30_000);
  });

  test('by file: no cluster-info is read, and the token goes to a server of the CA in the file only', async () => {
    const { dependencies, bearers } = inMemory({ clusterInfo: tlsError('UNEXPECTED') });
    const file = { server: 'https://10.0.0.1:6443', caPem: ours.certificatePem };
    const found = await discoverByFile({ entry: file, login: { kind: 'token', token } }, dependencies);
    expect(found).toMatchObject({ ok: true, value: { server: file.server, pins: [pin] } });
    expect(bearers).toEqual([true, true]);
    const broken = await discoverByFile(
      { entry: { ...file, caPem: 'x' }, login: { kind: 'token', token } },
      dependencies,
    );
    expect(broken).toMatchObject({ problem: { why: 'ClusterInfoMalformed' } });
  });

  describe('by a file with a user, and no token', () => {
    const folder = temporaryFolder('discovery-file');
    afterAll(folder.remove);
    const server = 'https://10.0.0.1:6443';
    /** What the API server says to the user of this file. */
    async function joinAs(user: object, self: DiscoveryAnswer) {
      const file = resolve(folder.path, 'kubelet.conf');
      writeFileSync(file, JSON.stringify({ users: [{ name: 'u', user }] }), { mode: 0o600 });
      const { dependencies } = inMemory({ clusterInfo: tlsError('UNEXPECTED') });
      const sent: DiscoveryCall[] = [];
      const call = (_: string, caPem: string | undefined, given: DiscoveryCall): Promise<DiscoveryAnswer> => {
        expect(caPem).toContain('CERTIFICATE');
        sent.push(given);
        return Promise.resolve(given.path.endsWith('selfsubjectreviews') ? self : answer(201, {}));
      };
      const entry = { server, caPem: ours.certificatePem };
      const found = await discoverByFile({ entry, login: { kind: 'file', file } }, { ...dependencies, call });
      return { found, sent };
    }
    const known = answer(201, { status: { userInfo: { username: 'system:node:n1' } } });

    test('a client certificate of the node: both calls are made with it, without a token', async () => {
      const login = await ours.issue({ subject: [{ O: ['system:nodes'] }, { CN: ['system:node:n1'] }] });
      for (const name of ['client-certificate', 'client-key'] as const)
        writeFileSync(resolve(folder.path, name), name.endsWith('key') ? login.keyPem : login.certificatePem, {
          mode: 0o600,
        });
      const files = { 'client-certificate': 'client-certificate', 'client-key': 'client-key' };
      const { found, sent } = await joinAs(files, known);
      expect(found).toMatchObject({ ok: true, value: { server } });
      expect(sent.map(({ bearer, clientCertificate }) => [bearer, clientCertificate?.certificatePem])).toEqual([
        [undefined, login.certificatePem],
        [undefined, login.certificatePem],
      ]);
      for (const [status, username] of [
        [401, ''],
        [403, 'system:anonymous'],
        [201, 'system:node:another'],
      ] as const) {
        const refused = await joinAs(files, answer(status, { message: `User "${username}"` }));
        expect(refused.found, username).toMatchObject({ problem: { why: 'LoginRefused' } });
      }
    });

    test('a token in the file is sent as one; a file without a user is refused and nothing is sent', async () => {
      const { found, sent } = await joinAs({ token: 'opaque' }, known);
      expect(found).toMatchObject({ ok: true });
      expect(sent.map(({ bearer }) => bearer)).toEqual(['opaque', 'opaque']);
      const without = await joinAs({}, known);
      expect(without.found).toMatchObject({ problem: { why: 'LoginRefused' } });
      expect(without.sent).toEqual([]);
    });
  });
});
