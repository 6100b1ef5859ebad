import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connectKubernetes } from '../../../../adapters/kubernetes/api.ts';
import { connectTransport } from '../../../../adapters/kubernetes/login.ts';
import type { KubernetesApi } from '../../../../adapters/kubernetes/api.ts';
import { createTransport } from '../../../../adapters/kubernetes/transport.ts';
import { decodeWatch } from '../../../../adapters/kubernetes/watch.ts';
import { ThrottledError } from '../../../../core/ports/errors.ts';
import type { JsonObject, WatchEvent } from '../../../../core/ports/kubernetes-api.ts';
import { serveImpatiently, tooMuchToSend } from '../../../harness/processes/impatient-server.ts';
import { issueLogin, writeKubeconfig } from '../../../harness/kubernetes/kubeconfig.ts';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/x509/test-certificates.ts';
import type { KeyAndCertificate, TestAuthority } from '../../../harness/x509/test-certificates.ts';

type Handler = (request: IncomingMessage, body: string, response: ServerResponse) => void;

const folder = mkdtempSync(join(tmpdir(), 'countersign-kubernetes-api-'));
const never = new AbortController().signal;
let authority: TestAuthority;
let login: KeyAndCertificate;
let server: Server;
let url: string;
let handler: Handler;
let connections = 0;
const seen: {
  method: string;
  url: string;
  body: string;
  user: string | undefined;
  authorization: string | undefined;
}[] = [];
const open: { close(): void }[] = [];

beforeAll(async () => {
  authority = await createTestAuthority('test');
  const serving = await authority.issue({ subject: [{ CN: ['api'] }], extensions: loopbackServerExtensions() });
  login = await issueLogin(authority, { user: 'relay' });
  server = createServer(
    {
      cert: serving.certificatePem,
      key: serving.keyPem,
      ca: authority.certificatePem,
      requestCert: true,
      rejectUnauthorized: false,
    },
    (request, response) => {
      let body = '';
      request.setEncoding('utf8');
      request.on('data', (text: string) => (body += text));
      request.on('end', () => {
        const certificate = (request.socket as TLSSocket).getPeerCertificate();
        const commonName = (certificate as { subject?: { CN?: string } }).subject?.CN;
        const { authorization } = request.headers;
        seen.push({ method: request.method ?? '', url: request.url ?? '', body, user: commonName, authorization });
        handler(request, body, response);
      });
    },
  );
  server.on('secureConnection', () => void (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  for (const each of open.splice(0)) each.close();
  server.closeAllConnections();
  seen.length = 0;
  connections = 0;
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

function connect(): KubernetesApi {
  const path = writeKubeconfig(join(folder, 'kubeconfig'), { url, caPem: authority.certificatePem }, login);
  const api = connectKubernetes({ kind: 'kubeconfig', path });
  open.push(api);
  return api;
}

function json(status: number, body: unknown): Handler {
  return (_request, _body, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function status(code: number, more: object = {}) {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message: `message of ${code}`, ...more };
}

const csr = {
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name: 'r', uid: 'u', resourceVersion: '7', fieldUnknownToUs: { x: [1, null, 'ü'] } },
  spec: { request: 'AA==', later: 1.5 },
  status: {},
};

describe('list', () => {
  test('asks for one page of one signer, as the user of the kubeconfig, and completes the items', async () => {
    const { apiVersion: _a, kind: _k, ...bare } = csr;
    handler = json(200, {
      kind: 'CertificateSigningRequestList',
      metadata: { resourceVersion: '9', continue: 't0' },
      items: [bare],
    });
    const page = await connect().requests.list(
      { signerName: 'kubernetes.io/x', limit: 500, continue: 'a+b/c=' },
      never,
    );
    expect(page).toEqual({ ok: true, value: { items: [csr], resourceVersion: '9', continue: 't0' } });
    expect(seen).toHaveLength(1);
    expect(seen[0]?.user).toBe('relay');
    const asked = new URL(seen[0]!.url, url);
    expect(asked.pathname).toBe('/apis/certificates.k8s.io/v1/certificatesigningrequests');
    expect(Object.fromEntries(asked.searchParams)).toEqual({
      fieldSelector: 'spec.signerName=kubernetes.io/x',
      limit: '500',
      continue: 'a+b/c=',
    });
  });

  test('an empty list is a list, a body without a list is an error', async () => {
    const { requests } = connect();
    handler = json(200, { metadata: { resourceVersion: '9', continue: '' }, items: null });
    expect(await requests.list({ signerName: 's', limit: 1 }, never)).toEqual({
      ok: true,
      value: { items: [], resourceVersion: '9' },
    });
    for (const body of [{}, { metadata: {}, items: [] }, { metadata: { resourceVersion: '1' }, items: 'x' }, [], 'x']) {
      handler = json(200, body);
      await expect(requests.list({ signerName: 's', limit: 1 }, never)).rejects.toThrow();
    }
  });
});

describe('an answer with status', () => {
  test.each([
    [400, 'Invalid'],
    [401, 'Unauthorized'],
    [403, 'Forbidden'],
    [404, 'NotFound'],
    [405, 'Invalid'],
    [409, 'Conflict'],
    [410, 'Expired'],
    [413, 'TooLarge'],
    [414, 'TooLarge'],
    [431, 'TooLarge'],
    [422, 'Invalid'],
  ])('%i is the value %s', async (code, why) => {
    handler = json(code, status(code));
    expect(await connect().requests.get('r', never)).toEqual({
      ok: false,
      problem: { why, message: `HTTP ${code}: message of ${code}` },
    });
    expect(seen).toHaveLength(1); // nothing is tried twice
  });

  test.each([500, 502, 503, 504, 408, 302])('%i is thrown', async (code) => {
    handler = (_request, _body, response) =>
      void response.writeHead(code, { location: `${url}/elsewhere` }).end(JSON.stringify(status(code)));
    await expect(connect().requests.get('r', never)).rejects.toThrow(`HTTP ${code}`);
    expect(seen).toHaveLength(1); // nor is a redirect followed
  });

  test.each([
    'etcdserver: request is too large',
    'rpc error: code = InvalidArgument desc = etcdserver: request is too large',
    'rpc error: code = ResourceExhausted desc = trying to send message larger than max (3000000 vs. 2097152)',
  ])('finding 15: 500 with the text %j is the value TooLarge', async (message) => {
    handler = json(500, status(500, { message }));
    const object = { metadata: { name: 'r', uid: 'u', resourceVersion: '1' } };
    for (const method of ['updateStatus', 'updateApproval'] as const)
      expect(await connect().requests[method](object, never)).toMatchObject({
        ok: false,
        problem: { why: 'TooLarge' },
      });
  });

  test('finding 21: a name that no URL can carry is the value TooLarge, without a call', async () => {
    const { requests } = connect();
    for (const name of ['n'.repeat(4_097), '\u0001'.repeat(1_366), '\ud800']) {
      const object = { metadata: { name, uid: 'u', resourceVersion: '1' } };
      expect(await requests.get(name, never)).toMatchObject({ ok: false, problem: { why: 'TooLarge' } });
      expect(await requests.updateStatus(object, never)).toMatchObject({ ok: false, problem: { why: 'TooLarge' } });
    }
    expect(seen).toEqual([]);
    handler = json(404, status(404));
    for (const name of ['n'.repeat(4_096), '\u0001'.repeat(1_365)])
      expect(await requests.get(name, never)).toMatchObject({ ok: false, problem: { why: 'NotFound' } });
  });

  test('429 is thrown as throttling', async () => {
    handler = json(429, status(429));
    await expect(connect().requests.get('r', never)).rejects.toBeInstanceOf(ThrottledError);
  });

  test('504 with a resourceVersion from the future is Expired', async () => {
    handler = json(504, status(504, { details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } }));
    const query = { signerName: 's', resourceVersion: '99', timeoutSeconds: 60 };
    expect(await connect().requests.watch(query, never)).toMatchObject({ ok: false, problem: { why: 'Expired' } });
  });

  test.each(['', '<html>', '[1]', '"x"', '{"a":'])('200 and the body %j is thrown', async (body) => {
    handler = (_request, _body, response) => void response.writeHead(200).end(body);
    await expect(connect().requests.get('r', never)).rejects.toThrow('without a JSON object');
  });
});

describe('writes', () => {
  test.each([
    ['updateStatus', 'status'],
    ['updateApproval', 'approval'],
  ] as const)('%s puts back the whole object with its unknown fields', async (method, subresource) => {
    handler = json(200, csr);
    expect(await connect().requests[method](csr, never)).toEqual({ ok: true, value: csr });
    expect(seen[0]).toMatchObject({
      method: 'PUT',
      url: `/apis/certificates.k8s.io/v1/certificatesigningrequests/r/${subresource}?fieldManager=countersign`,
      body: JSON.stringify(csr),
    });
  });

  test.each(['uid', 'resourceVersion', 'name'])(
    'without %s nothing is sent: the update would be unconditional',
    async (field) => {
      const object = { ...csr, metadata: { ...csr.metadata, [field]: undefined } };
      const { requests } = connect();
      for (const method of ['updateStatus', 'updateApproval'] as const)
        expect(await requests[method](object, never)).toMatchObject({ ok: false, problem: { why: 'Invalid' } });
      expect(seen).toEqual([]);
    },
  );

  describe('a review', () => {
    const question = {
      user: 'jane',
      uid: 'u-1',
      groups: ['a', 'b'],
      extra: { 'example.com/x': ['1'] },
      verb: 'create',
      group: 'certificates.k8s.io',
      resource: 'certificatesigningrequests',
      subresource: 'nodeclient',
    };
    test('asks what the in-tree approver asks', async () => {
      handler = json(201, { status: { allowed: true } });
      expect(await connect().requests.reviewAccess(question, never)).toEqual({ ok: true, value: true });
      expect(seen[0]).toMatchObject({ method: 'POST', url: '/apis/authorization.k8s.io/v1/subjectaccessreviews' });
      expect(JSON.parse(seen[0]!.body)).toEqual({
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: {
          user: 'jane',
          uid: 'u-1',
          groups: ['a', 'b'],
          extra: { 'example.com/x': ['1'] },
          resourceAttributes: {
            verb: 'create',
            group: 'certificates.k8s.io',
            resource: 'certificatesigningrequests',
            subresource: 'nodeclient',
            version: '*',
          },
        },
      });
    });

    test('that is answered no is no, and an answer without a status is an error', async () => {
      const { requests } = connect();
      handler = json(201, { status: { allowed: false, denied: true, reason: 'so' } });
      expect(await requests.reviewAccess(question, never)).toEqual({ ok: true, value: false });
      handler = json(403, status(403));
      expect(await requests.reviewAccess(question, never)).toMatchObject({ ok: false, problem: { why: 'Forbidden' } });
      for (const body of [{}, { status: {} }, { status: { allowed: 'true' } }, { status: [true] }]) {
        handler = json(201, body);
        await expect(requests.reviewAccess(question, never)).rejects.toThrow('without an answer');
      }
    });
  });

  test('names are escaped', async () => {
    handler = json(200, csr);
    const { requests } = connect();
    await requests.get('a b/../c?d#e', never);
    await requests.updateStatus({ ...csr, metadata: { ...csr.metadata, name: 'ü%2f' } }, never);
    expect(seen.map((call) => call.url.split('certificatesigningrequests')[1])).toEqual([
      '/a%20b%2F..%2Fc%3Fd%23e',
      '/%C3%BC%252f/status?fieldManager=countersign',
    ]);
  });

  test('events and leases go where they live', async () => {
    handler = json(201, {});
    const api = connect();
    await api.requests.createEvent({ kind: 'Event' }, never);
    const lease = api.lease('ns', 'l');
    await lease.get(never);
    await lease.create({ holderIdentity: 'me' }, never);
    await lease.update({ metadata: { name: 'l' } }, never);
    expect(seen.map(({ method, url: path }) => `${method} ${path}`)).toEqual([
      'POST /apis/events.k8s.io/v1/namespaces/default/events?fieldManager=countersign',
      'GET /apis/coordination.k8s.io/v1/namespaces/ns/leases/l',
      'POST /apis/coordination.k8s.io/v1/namespaces/ns/leases',
      'PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/l',
    ]);
    expect(JSON.parse(seen[2]!.body)).toEqual({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'l', namespace: 'ns' },
      spec: { holderIdentity: 'me' },
    });
  });
});

describe('watch', () => {
  const query = { signerName: 's', resourceVersion: '5', timeoutSeconds: 60 };

  async function start(api: KubernetesApi, signal = never) {
    const answer = await api.requests.watch(query, signal);
    if (!answer.ok) throw new Error(answer.problem.why);
    return answer.value[Symbol.asyncIterator]();
  }

  test('gives events as they come, and ends when the server ends it', async () => {
    let stream: ServerResponse | undefined;
    handler = (_request, _body, response) => {
      stream = response.writeHead(200);
      response.flushHeaders();
    };
    const events = await start(connect());
    stream!.write(`${JSON.stringify({ type: 'ADDED', object: csr })}\n`);
    expect(await events.next()).toMatchObject({ value: { type: 'ADDED', object: csr } });
    const line = JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '12' } } });
    stream!.write(line.slice(0, 10));
    stream!.write(`${line.slice(10)}\n{"type":"ERROR","object":${JSON.stringify(status(410))}}\n`);
    expect(await events.next()).toMatchObject({ value: { type: 'BOOKMARK', resourceVersion: '12' } });
    expect(await events.next()).toMatchObject({ value: { type: 'ERROR', why: 'Expired' } });
    stream!.end();
    expect(await events.next()).toEqual({ done: true, value: undefined });
    expect(Object.fromEntries(new URL(seen[0]!.url, url).searchParams)).toEqual({
      watch: 'true',
      allowWatchBookmarks: 'true',
      fieldSelector: 'spec.signerName=s',
      resourceVersion: '5',
      timeoutSeconds: '60',
    });
  });

  test('throws when the connection breaks, and when it is called off', async () => {
    const streams: ServerResponse[] = [];
    handler = (_request, _body, response) => {
      streams.push(response.writeHead(200));
      response.flushHeaders();
    };
    const api = connect();
    const broken = await start(api);
    streams[0]!.destroy();
    await expect(broken.next()).rejects.toThrow();

    const controller = new AbortController();
    const calledOff = await start(api, controller.signal);
    const gone = new Promise((resolve) => streams[1]!.once('close', resolve));
    controller.abort(new Error('enough'));
    await expect(calledOff.next()).rejects.toThrow('enough');
    await gone;
  });

  test('a reader who leaves takes the connection along', async () => {
    let gone: Promise<unknown> = Promise.resolve();
    handler = (_request, _body, response) => {
      gone = new Promise((resolve) => response.once('close', resolve));
      response.writeHead(200).write('{"type":"ADDED","object":{}}\n');
    };
    const events = await start(connect());
    await events.next();
    await events.return?.();
    await gone;
    expect(seen).toHaveLength(1);
  });

  test('a refusal is a value', async () => {
    handler = json(410, status(410));
    expect(await connect().requests.watch(query, never)).toMatchObject({ ok: false, problem: { why: 'Expired' } });
  });
});

describe('watch lines', () => {
  async function decode(chunks: readonly (string | Uint8Array)[], limit?: number): Promise<WatchEvent[]> {
    async function* pieces() {
      for (const chunk of chunks) yield await Promise.resolve(Buffer.from(chunk));
    }
    const events: WatchEvent[] = [];
    for await (const event of decodeWatch(pieces(), () => ({ why: 'Invalid', message: 'm' }), limit))
      events.push(event);
    return events;
  }

  test('however they are cut, also inside a character', async () => {
    const objects: JsonObject[] = [{ a: 'ü€😀' }, { b: '\n' }, {}];
    const text = Buffer.from(objects.map((object) => `${JSON.stringify({ type: 'ADDED', object })}\n`).join(''));
    for (let size = 1; size < 40; size += 1) {
      const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
        text.subarray(i * size, (i + 1) * size),
      );
      const events = await decode(chunks);
      expect(events.map((event) => (event as { object: unknown }).object)).toEqual(objects);
    }
  });

  test('what cannot be read is passed over and told', async () => {
    const good = '{"type":"DELETED","object":{"x":1}}\n';
    const bad = [
      'nonsense',
      '[]',
      '{"type":"ADDED"}',
      '{"type":"HELLO","object":{}}',
      '{"type":"BOOKMARK","object":{}}',
    ];
    const events = await decode([...bad.flatMap((line) => [`${line}\n`, good]), '\n', 'cut off']);
    expect(events.map(({ type }) => type)).toEqual(bad.flatMap(() => ['UNREADABLE', 'DELETED']));
  });

  test('a line over the limit is not held, and the next one is read', async () => {
    const events = await decode(
      [...Array.from({ length: 1_000 }, () => 'x'.repeat(1_000)), '\n{"type":"ADDED","object":{}}\n'],
      5_000,
    );
    expect(events).toEqual([
      { type: 'OVERSIZED', bytes: 1_000_000 },
      { type: 'ADDED', object: {}, bytes: 28 },
    ]);
  });

  test('a line in a hundred thousand pieces takes time in proportion', async () => {
    const line = `${JSON.stringify({ type: 'ADDED', object: { a: 'x'.repeat(400_000) } })}\n`;
    const chunks = line.match(/.{1,4}|\n/gs) ?? [];
    expect(await decode(chunks)).toMatchObject([{ type: 'ADDED', bytes: line.length - 1 }]);
  });
});

describe('the connection', () => {
  test('is kept from call to call', async () => {
    handler = json(200, csr);
    const { requests } = connect();
    for (let i = 0; i < 5; i += 1) await requests.get('r', never);
    expect(connections).toBe(1);
  });

  test('trusts only the CA of the kubeconfig', async () => {
    handler = json(200, csr);
    const stranger = await createTestAuthority('stranger');
    const path = writeKubeconfig(join(folder, 'stranger'), { url, caPem: stranger.certificatePem }, login);
    const api = connectKubernetes({ kind: 'kubeconfig', path });
    open.push(api);
    await expect(api.requests.get('r', never)).rejects.toThrow(/certificate/);
    expect(seen).toEqual([]);
  });

  test('that is refused, broken off or called off is thrown', async () => {
    const { requests } = connect();
    handler = (_request, _body, response) => void response.destroy();
    await expect(requests.get('r', never)).rejects.toThrow();
    handler = (_request, _body, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{"half":');
      setImmediate(() => response.destroy());
    };
    await expect(requests.get('r', never)).rejects.toThrow();
    const controller = new AbortController();
    handler = () => controller.abort(new Error('enough'));
    await expect(requests.updateStatus(csr, controller.signal)).rejects.toThrow('enough');
    await expect(requests.get('r', controller.signal)).rejects.toThrow('enough');
    const closed = connectKubernetes({
      kind: 'kubeconfig',
      path: writeKubeconfig(
        join(folder, 'closed'),
        { url: 'https://127.0.0.1:1', caPem: authority.certificatePem },
        login,
      ),
    });
    open.push(closed);
    await expect(closed.requests.get('r', never)).rejects.toThrow('ECONNREFUSED');
  });

  test('finding 26: an exec plugin that hangs is ended with all it started, and asked again', async () => {
    const plugin = join(folder, 'hanging');
    const pids = join(folder, 'pids');
    const works = join(folder, 'works');
    // A script whose child holds its output open, until a file says that all is well again.
    writeFileSync(
      plugin,
      `#!/bin/sh
if [ ! -e ${works} ]; then sleep 60 & echo $$ $! >> ${pids}; wait; fi
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}'
`,
    );
    chmodSync(plugin, 0o700);
    const path = join(folder, 'hanging-exec');
    writeFileSync(path, JSON.stringify(kubeconfigWith(plugin)));
    const { transport } = connectTransport({ kind: 'kubeconfig', path }, 300);
    open.push(transport);
    handler = json(200, csr);
    const call = () => transport.call({ method: 'GET', path: '/r', signal: never });
    for (let i = 0; i < 2; i += 1) await expect(call()).rejects.toThrow(/no login in 0.3 s|^$/);
    const alive = (pid: number): boolean => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    const started = readFileSync(pids, 'utf8').split(/\s+/).filter(Boolean).map(Number);
    expect(started).toHaveLength(4);
    await expect.poll(() => started.filter(alive), { timeout: 10_000 }).toEqual([]);
    writeFileSync(works, '');
    expect(await call()).toMatchObject({ status: 200 });
    expect(seen).toHaveLength(1);
  });

  test('finding 26: a login that never ends fails each call in time, and the next login is tried', async () => {
    let logins = 0;
    const transport = createTransport(
      new URL(url),
      () => (++logins < 3 ? new Promise(() => {}) : Promise.resolve({ ca: authority.certificatePem })),
      undefined,
      100,
    );
    open.push(transport);
    handler = json(200, csr);
    const call = () => transport.call({ method: 'GET', path: '/r', signal: never });
    for (let i = 0; i < 2; i += 1) await expect(Promise.all([call(), call()])).rejects.toThrow('no login in 0.1 s');
    expect(await call()).toMatchObject({ status: 200 });
    expect(logins).toBe(3);
  });

  function kubeconfigWith(plugin: string): object {
    const cluster = {
      server: url,
      'certificate-authority-data': Buffer.from(authority.certificatePem).toString('base64'),
    };
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: plugin, interactiveMode: 'Never' };
    return {
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: { exec } }],
    };
  }

  test('an exec plugin is asked once, and again after a 401', async () => {
    const tokenFile = join(folder, 'token');
    const plugin = join(folder, 'plugin');
    const countFile = join(folder, 'count');
    writeFileSync(tokenFile, 'one');
    writeFileSync(
      plugin,
      `#!/bin/sh\necho x >> ${countFile}\nprintf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' "$(cat ${tokenFile})"\n`,
    );
    chmodSync(plugin, 0o700);
    const path = join(folder, 'exec');
    writeFileSync(path, JSON.stringify(kubeconfigWith(plugin)));
    const api = connectKubernetes({ kind: 'kubeconfig', path });
    open.push(api);
    handler = (request, _body, response) => {
      const welcome = request.headers.authorization === 'Bearer two';
      response.writeHead(welcome ? 200 : 401).end(JSON.stringify(welcome ? csr : status(401)));
    };
    writeFileSync(countFile, '');
    for (let i = 0; i < 3; i += 1)
      expect(await api.requests.get('r', never)).toMatchObject({ ok: false, problem: { why: 'Unauthorized' } });
    writeFileSync(tokenFile, 'two');
    await expect
      .poll(() => api.requests.get('r', never), { timeout: 10_000, interval: 250 })
      .toMatchObject({ ok: true });
  });

  test.each([
    ['http://127.0.0.1:1', /ECONNREFUSED/],
    ['http://10.255.255.1:1', /HTTP protocol is not allowed/],
    ['http://127.0.0.1.example.com:1', /HTTP protocol is not allowed/],
  ])('without TLS it goes to this machine only: %s', async (plain, message) => {
    const path = join(folder, 'plain');
    const kubeconfig = {
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: plain } }],
      users: [{ name: 'u', user: {} }],
    };
    writeFileSync(path, JSON.stringify(kubeconfig));
    const api = connectKubernetes({ kind: 'kubeconfig', path });
    open.push(api);
    await expect(api.requests.get('r', never)).rejects.toThrow(message);
  });

  test('a kubeconfig without a cluster is said at once', () => {
    const path = join(folder, 'empty');
    writeFileSync(path, JSON.stringify({ clusters: [], users: [], contexts: [], 'current-context': 'x' }));
    expect(() => connectKubernetes({ kind: 'kubeconfig', path })).toThrow('no current context');
    expect(() => connectKubernetes({ kind: 'kubeconfig', path: join(folder, 'absent') })).toThrow('ENOENT');
  });
});

describe('the transport', () => {
  test('takes up rotated certificates, looks no more often than it must, and at once after a 401', async () => {
    let now = 0;
    let current = login;
    const asked: boolean[] = [];
    const transport = createTransport(
      new URL(url),
      (reload) => {
        asked.push(reload);
        return Promise.resolve({ ca: authority.certificatePem, cert: current.certificatePem, key: current.keyPem });
      },
      () => now,
    );
    open.push(transport);
    const call = { method: 'GET' as const, path: '/', signal: never };
    handler = json(200, {});
    await Promise.all([transport.call(call), transport.call(call)]);
    current = await issueLogin(authority, { user: 'rotated' });
    now = 29_000;
    await transport.call(call);
    expect(asked).toEqual([false]);
    now = 31_000;
    await transport.call(call);
    expect(asked).toEqual([false, false]);
    expect(seen.map(({ user }) => user)).toEqual(['relay', 'relay', 'relay', 'rotated']);

    handler = json(401, {});
    await transport.call(call);
    await transport.call(call);
    expect(asked).toHaveLength(2); // too soon to ask again
    now = 34_000;
    await transport.call(call);
    expect(asked).toEqual([false, false, true]);
  });

  test('an answer in no time at all is no answer, and one too long is not read', async () => {
    const credentials = () => Promise.resolve({ ca: authority.certificatePem });
    const transport = createTransport(new URL(url), credentials);
    open.push(transport);
    handler = () => {};
    const call = { method: 'GET' as const, path: '/', signal: never };
    await expect(transport.call({ ...call, timeoutMilliseconds: 50 })).rejects.toThrow('no answer in 0.05 s');
    handler = (_request, _body, response) => {
      response.writeHead(200);
      const more = (): void => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      };
      response.on('drain', more);
      more(); // for ever
    };
    expect(await transport.call({ ...call, maxBytes: 1_000_000 })).toEqual({ status: 200, text: undefined });
  });

  test('keeps no connection whose answer came before the body was read', async () => {
    const impatient = await serveImpatiently(413, [], '{}');
    const transport = createTransport(new URL(impatient.url), () => Promise.resolve({}));
    open.push(transport, impatient);
    const call = { method: 'POST', path: '/', body: tooMuchToSend, signal: never } as const;
    for (let i = 0; i < 2; i += 1) expect(await transport.call(call)).toEqual({ status: 413, text: '{}' });
    expect(await transport.stream(call, 1_000)).toEqual({ status: 413, text: '{}' });
    impatient.read();
    await expect.poll(() => impatient.counts, { timeout: 10_000 }).toEqual({ opened: 3, ended: 3 });
  });

  test('nothing is sent by a call that was over before the login was', async () => {
    let admit = (): void => {};
    const transport = createTransport(
      new URL(url),
      () => new Promise((resolve) => (admit = () => resolve({ ca: authority.certificatePem }))),
    );
    open.push(transport);
    handler = json(200, {});
    const call = { method: 'PUT' as const, path: '/', body: {}, signal: never };
    await expect(transport.call({ ...call, timeoutMilliseconds: 20 })).rejects.toThrow('no answer');
    const controller = new AbortController();
    const second = transport.call({ ...call, signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(second).rejects.toThrow('enough');
    admit();
    await transport.call({ ...call, method: 'GET' });
    expect(seen.map(({ method }) => method)).toEqual(['GET']);
  });

  test('a base path in the server URL stays, for proxies such as Rancher', async () => {
    const transport = createTransport(new URL(`${url}/k8s/clusters/c/`), () =>
      Promise.resolve({ ca: authority.certificatePem }),
    );
    open.push(transport);
    handler = json(200, {});
    await transport.call({ method: 'GET', path: '/apis/x', signal: never });
    expect(seen[0]?.url).toBe('/k8s/clusters/c/apis/x');
  });
});
