import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCsrApi } from '../../../../dev/csr-api/csr-api.ts';
import type { CsrApi } from '../../../../dev/csr-api/csr-api.ts';
import { csrApiContract } from '../../../contract/csr-api.ts';
import type { CsrApiUnderTest } from '../../../contract/csr-api.ts';
import { statusOf, strangeTargets } from '../../../harness/processes/raw-requests.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';

const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

function requesterFor(api: CsrApi): CsrApiUnderTest['request'] {
  return async (path, { method = 'GET', headers = {}, body } = {}) => {
    const answer = await fetch(api.url + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: {}, text, json: () => JSON.parse(text) as unknown };
  };
}

csrApiContract('the stand-in', async () => {
  const api = await startCsrApi();
  return { request: requesterFor(api), close: api.close };
});

describe('the stand-in alone', () => {
  let api: CsrApi;
  let request: CsrApiUnderTest['request'];
  beforeAll(async () => {
    api = await startCsrApi();
    request = requesterFor(api);
  });
  afterAll(() => api.close());

  test.each([
    ['PATCH', path, 405],
    ['DELETE', `${path}/x`, 405],
    ['PUT', `${path}/x`, 405],
    ['POST', `${path}/x/status`, 405],
    ['GET', `${path}/x/y/z`, 404],
    ['GET', '/apis/coordination.k8s.io/v1/namespaces/default/leases', 404],
    ['POST', '/apis/events.k8s.io/v1/namespaces/default/events', 404],
    ['GET', '/api', 404],
  ])('%s %s: %d', async (method, where, status) => {
    const answer = await request(where, { method, ...(method === 'GET' ? {} : { body: '{}' }) });
    expect([answer.status, (answer.json() as { kind: string }).kind]).toEqual([status, 'Status']);
  });

  test('no request line ends it', async () => {
    const port = Number(new URL(api.url).port);
    for (const target of strangeTargets)
      expect([400, 404, 'closed']).toContain(await statusOf(() => connect(port, '127.0.0.1'), target));
    expect((await request(path)).status).toBe(200);
  });

  test('a watch whose time is over is not written to, though its client reads slowly', async () => {
    const object = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: 'large-', annotations: { large: 'x'.repeat(2_000_000) } },
      spec: {
        request: Buffer.from(makeRequest().pem).toString('base64'),
        signerName: 'example.com/large',
        usages: ['client auth'],
      },
    };
    const create = async (): Promise<void> => {
      expect((await request(path, { method: 'POST', body: object })).status).toBe(201);
    };
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1').pause();
    socket.write(`GET ${path}?watch=1&timeoutSeconds=1 HTTP/1.1\r\nhost: x\r\n\r\n`);
    try {
      for (let i = 0; i < 12; i += 1) await create(); // more than the system takes for a client that does not read
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      await create();
      expect((await request(`${path}?limit=1`)).status).toBe(200);
    } finally {
      socket.destroy();
    }
  });

  test('a watch from a version it has forgotten, or never had, says so: 410', async () => {
    const object = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: 'x-' },
      spec: {
        request: Buffer.from(makeRequest().pem).toString('base64'),
        signerName: 'example.com/x',
        usages: ['client auth'],
      },
    };
    for (let ten = 0; ten < 101; ten++)
      await Promise.all(Array.from({ length: 10 }, () => request(path, { method: 'POST', body: object })));
    for (const version of [1, 1_000_000]) {
      const { text } = await request(`${path}?watch=true&resourceVersion=${version}&timeoutSeconds=5`);
      expect(JSON.parse(text)).toMatchObject({
        type: 'ERROR',
        object: { kind: 'Status', code: 410, reason: 'Expired' },
      });
    }
  });
});
