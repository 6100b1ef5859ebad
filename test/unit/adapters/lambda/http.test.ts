import { expect, test } from 'vitest';
import { decodeEvent, jsonAnswer } from '../../../../adapters/lambda/http.ts';
import type { HttpEvent } from '../../../../adapters/lambda/http.ts';

function event(change: Partial<HttpEvent>): HttpEvent {
  return {
    version: '2.0',
    rawPath: '/v1/clusters/demo/sign',
    rawQueryString: 'timeout=30s',
    headers: {},
    requestContext: { http: { method: 'POST', path: '/v1/clusters/demo/sign' } },
    isBase64Encoded: false,
    ...change,
  };
}

test('the bytes of the body are the same, however AWS carries them', () => {
  const bytes = Buffer.from('{"ä":"€😀"}');
  expect(decodeEvent(event({ body: bytes.toString('utf8') })).body).toEqual(bytes);
  expect(decodeEvent(event({ body: bytes.toString('base64'), isBase64Encoded: true })).body).toEqual(bytes);
  const binary = Buffer.from([0xff, 0x00, 0xfe]);
  expect(decodeEvent(event({ body: binary.toString('base64'), isBase64Encoded: true })).body).toEqual(binary);
  expect(decodeEvent(event({})).body).toHaveLength(0);
});

test('header names are one however they are written, and repeated ones are joined, none is lost', () => {
  const { headers } = decodeEvent(
    event({ headers: { 'Content-Type': 'application/json', 'X-A': '1', 'x-a': '2', 'x-none': undefined } }),
  );
  expect([...headers]).toEqual([
    ['content-type', 'application/json'],
    ['x-a', '1,2'],
  ]);
});

test('a header named like a property of every object is a header', () => {
  const headers = JSON.parse('{"__proto__":"x","constructor":"y"}') as Record<string, string>;
  expect([...decodeEvent(event({ headers })).headers]).toEqual([
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ]);
});

test('answers are never cached', () => {
  expect(jsonAnswer(200, { a: 1 }, { 'x-more': 'y' })).toEqual({
    statusCode: 200,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-more': 'y',
    },
    body: '{"a":1}',
  });
});
