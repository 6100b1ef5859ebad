import { X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import { rulesFingerprint } from '../../../../core/configuration/rules-fingerprint.ts';
import { csrFixture, errorIn, eventFixture, outcomeOf, startStack } from './stack.ts';
import type { EventSpec, Stack } from './stack.ts';

let stack: Stack;
beforeEach(async () => {
  stack = await startStack();
});
afterEach(() => stack.close());

describe('what is not a request to sign', () => {
  const call = (spec: Partial<EventSpec>) => stack.handler(eventFixture(spec));

  test.each([
    '/',
    '/v1/clusters/demo',
    '/v1/clusters/demo/sign/',
    '/v1/clusters//sign',
    '/v1/clusters/DEMO/sign',
    '/v1/clusters/demo%2f/sign',
    '/v1/clusters/demo/attest',
    '/v1/clusters/demo/trust-bundle/',
    '/healthz/',
    '//healthz',
    `/v1/clusters/${'a'.repeat(64)}/sign`,
  ])('%s: 404', async (path) => {
    const answer = await call({ method: 'POST', path });
    expect([answer.statusCode, outcomeOf(answer), errorIn(answer).reason]).toEqual([404, 'invalid', 'NotFound']);
  });

  test('another cluster: 404, and its name is asked for exactly', async () => {
    for (const name of ['other', 'demo2', '-', 'constructor'])
      expect((await call({ method: 'POST', path: `/v1/clusters/${name}/sign` })).statusCode).toBe(404);
  });

  test.each([
    ['GET', '/v1/clusters/demo/sign', 'POST'],
    ['HEAD', '/v1/clusters/demo/sign', 'POST'],
    ['OPTIONS', '/v1/clusters/demo/sign', 'POST'],
    ['PUT', '/v1/clusters/demo/sign', 'POST'],
    ['POST', '/v1/clusters/demo/trust-bundle', 'GET'],
    ['HEAD', '/v1/clusters/demo/healthz', 'GET'],
    ['POST', '/healthz', 'GET'],
  ])('%s %s: 405 with Allow: %s', async (method, path, allow) => {
    const answer = await call({ method, path });
    expect([answer.statusCode, answer.headers['allow'], outcomeOf(answer)]).toEqual([405, allow, 'invalid']);
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/vnd.kubernetes.protobuf',
    'application/jsonx',
    '',
  ])('content type %j: 415', async (type) => {
    const answer = await stack.post(csrFixture(), { headers: { 'content-type': type } });
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([415, 'invalid']);
    expect(stack.signatures()).toBe(0);
  });

  test('the trust bundle is the CA certificate, whole or by name', async () => {
    for (const path of ['/v1/clusters/demo/trust-bundle', '/v1/clusters/demo/trust-bundle/ca']) {
      const answer = await call({ path });
      expect([answer.statusCode, outcomeOf(answer)]).toEqual([200, 'ok']);
      expect(answer.headers['content-type']).toBe('application/pem-certificate-chain');
      expect(new X509Certificate(answer.body).raw).toEqual(new X509Certificate(stack.caPem).raw);
    }
    expect((await call({ path: '/v1/clusters/demo/trust-bundle/other' })).statusCode).toBe(404);
  });

  test('health of a cluster: the fingerprint of its rules, its CA with fingerprint and expiry', async () => {
    const answer = await call({ path: '/v1/clusters/demo/healthz' });
    const certificate = new X509Certificate(stack.caPem);
    expect(JSON.parse(answer.body)).toEqual({
      version: '1.2.3',
      cluster: 'demo',
      rulesSha256: rulesFingerprint(defaultCluster('demo', { maxTtlSeconds: 86_400 })),
      cas: [
        {
          name: 'ca',
          fingerprintSha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
          notAfter: certificate.validToDate.toISOString(),
        },
      ],
    });
  });

  test('health of the process is its version, whatever the CA does', async () => {
    stack.close();
    stack = await startStack({ authority: () => Promise.reject(new Error('gone')) });
    const answer = await call({ path: '/healthz' });
    expect([answer.statusCode, answer.body]).toEqual([200, '{"version":"1.2.3"}']);
    for (const path of ['/v1/clusters/demo/healthz', '/v1/clusters/demo/trust-bundle'])
      expect((await call({ path })).statusCode).toBe(503);
  });
});
