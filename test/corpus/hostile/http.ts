/** Around the body: methods, paths, headers and encodings that gateways, proxies and handlers read differently. */
import type { HttpEvent } from '../../../adapters/lambda/http.ts';
import { makeRequest } from '../../harness/x509/requests.ts';
import type { Ending, HostileCase } from './case.ts';
import { approvedObject, clusterName, eventOf, signPath, type EventSpec } from './event.ts';

const request = makeRequest({ subject: { CN: 'hostile' } }).bytes;
let uids = 0;
const body = () => JSON.stringify(approvedObject({ uid: `http-${++uids}`, request }));

const httpCase = (id: string, expected: Ending | readonly Ending[], spec: () => EventSpec): HostileCase => ({
  id: `http/${id}`,
  expected: typeof expected === 'string' ? [expected] : expected,
  input: (): { event: HttpEvent } => ({ event: eventOf({ body: body(), ...spec() }) }),
});

const nowhere: readonly string[] = [
  '',
  '/',
  '//',
  '/v1',
  '/v1/clusters',
  '/v1/clusters/',
  '/v1/clusters//sign',
  `/${signPath}`,
  `${signPath}/`,
  `${signPath}//`,
  `${signPath}?timeout=30s`,
  `${signPath}#a`,
  `${signPath};a=b`,
  `${signPath}\n`,
  `${signPath}\r\nx: y`,
  `${signPath}\0`,
  `${signPath}%00`,
  `${signPath}%0a`,
  `${signPath}\u2028`,
  ` ${signPath}`,
  signPath.replaceAll('/', '\\'),
  signPath.replaceAll('/', '%2f'),
  signPath.toUpperCase(),
  '/v1/clusters/demo/Sign',
  '/V1/clusters/demo/sign',
  '/v1/./clusters/demo/sign',
  '/v1/clusters/other/../demo/sign',
  '/v1/clusters/%2e%2e/demo/sign',
  '/v1/clusters/demo%2fsign',
  '/v1/clusters/d%65mo/sign',
  '/v1/clusters/demo/s%69gn',
  '/v1/clusters/demo%20/sign',
  '/v1/clusters/demo /sign',
  '/v1/clusters/DEMO/sign',
  '/v1/clusters/d\u0435mo/sign',
  '/v1/clusters/unknown/sign',
  '/v1/clusters/__proto__/sign',
  '/v1/clusters/constructor/sign',
  '/v1/clusters/-/sign',
  '/v1/clusters/demo/attest',
  '/v1/clusters/demo',
  '/v1/clusters/demo/sign/sign',
  `/v1/clusters/${'a'.repeat(63)}/sign`,
  `/v1/clusters/${'a'.repeat(64)}/sign`,
  `/v1/clusters/${'a'.repeat(100_000)}/sign`,
  `/v1/clusters/${'../'.repeat(30_000)}sign`,
  '/'.repeat(100_000),
  `http://localhost${signPath}`,
  '*',
];

const paths: readonly HostileCase[] = [
  httpCase('path/control', 'issued', () => ({})),
  ...nowhere.map((path, i) =>
    httpCase(`path/${i}/${encodeURI(path.slice(0, 48).toWellFormed())}`, 'notFound', () => ({ path })),
  ),
  httpCase('path/query', 'issued', () => ({ query: 'timeout=30s&cluster=other&cluster=' })),
  httpCase('path/query-100-kb', 'issued', () => ({ query: '%'.repeat(100_000) })),
];

const methods: readonly HostileCase[] = [
  ...[
    'GET',
    'PUT',
    'PATCH',
    'DELETE',
    'HEAD',
    'OPTIONS',
    'TRACE',
    'CONNECT',
    'post',
    'POST ',
    '',
    '__proto__',
    'P'.repeat(10_000),
  ].map((method, i) =>
    httpCase(`method/${i}/${method.slice(0, 12)}`, ['methodNotAllowed', 'notFound'], () => ({ method })),
  ),
  ...['/healthz', `/v1/clusters/${clusterName}/healthz`, `/v1/clusters/${clusterName}/trust-bundle`].flatMap((path) => [
    httpCase(`method/get${path}`, 'answered', () => ({ method: 'GET', path })),
    httpCase(`method/post${path}`, ['methodNotAllowed', 'notFound'], () => ({ path })),
  ]),
  ...['ca2', '__proto__', '..', '%2e%2e', 'CA', 'ca/', 'a'.repeat(64)].map((ca) =>
    httpCase(`trust-bundle/${ca.slice(0, 12)}`, 'notFound', () => ({
      method: 'GET',
      path: `/v1/clusters/${clusterName}/trust-bundle/${ca}`,
    })),
  ),
];

const json = { 'content-type': 'application/json' };
const typed = (type: string) => () => ({ headers: { 'content-type': type } });
const refusedType: Ending = 'invalid';
const headers: readonly HostileCase[] = [
  httpCase('header/none', 'issued', () => ({ headers: {} })),
  httpCase('header/upper-case', 'issued', () => ({ headers: { 'CONTENT-TYPE': 'application/json' } })),
  httpCase('header/charset', 'issued', typed('application/json; charset=utf-8')),
  httpCase('header/type-in-upper-case', 'issued', typed('APPLICATION/JSON')),
  httpCase('header/text-plain', refusedType, typed('text/plain')),
  httpCase('header/form', refusedType, typed('application/x-www-form-urlencoded')),
  httpCase('header/multipart', refusedType, typed('multipart/form-data; boundary=x')),
  httpCase('header/protobuf', refusedType, typed('application/vnd.kubernetes.protobuf')),
  httpCase('header/json-patch', refusedType, typed('application/json-patch+json')),
  httpCase('header/type-joined', refusedType, typed('application/json,text/plain')),
  httpCase('header/type-empty', refusedType, typed('')),
  httpCase('header/type-100-kb', refusedType, typed(`application/json${' '.repeat(100_000)}x`)),
  httpCase('header/type-line-end', refusedType, typed('application/json\r\nx: y')),
  httpCase('header/type-twice', ['issued', refusedType], () => ({
    headers: { 'content-type': 'application/json', 'Content-Type': 'text/plain' },
  })),
  httpCase('header/undefined', 'issued', () => ({ headers: { ...json, 'x-nothing': undefined } })),
  httpCase('header/proto', 'issued', () => ({
    headers: JSON.parse('{"__proto__":"x","constructor":"y"}') as Record<string, string>,
  })),
  httpCase('header/our-outcome', 'issued', () => ({ headers: { ...json, 'x-countersign-outcome': 'refused' } })),
  httpCase('header/override', ['issued', 'methodNotAllowed'], () => ({
    headers: { ...json, 'x-http-method-override': 'GET' },
  })),
  httpCase('header/forwarded', 'issued', () => ({
    headers: { ...json, 'x-original-url': '/healthz', 'x-forwarded-for': '\r\n' },
  })),
  httpCase('header/content-encoding', ['issued', 'invalid'], () => ({
    headers: { ...json, 'content-encoding': 'gzip' },
  })),
  httpCase('header/content-length', 'issued', () => ({
    headers: { ...json, 'content-length': '-1', 'transfer-encoding': 'chunked' },
  })),
  httpCase('header/expect', 'issued', () => ({ headers: { ...json, expect: '100-continue' } })),
  httpCase('header/10000', 'issued', () => ({
    headers: { ...json, ...Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`x-${i}`, 'y'])) },
  })),
  httpCase('header/1-mb', 'issued', () => ({ headers: { ...json, 'x-a': 'y'.repeat(1_000_000) } })),
];

const encoded = (text: string) => () => ({ base64: true, body: text });
const encodings: readonly HostileCase[] = [
  httpCase('base64/control', 'issued', () => ({ base64: true, body: Buffer.from(body()).toString('base64') })),
  httpCase('base64/said-and-not-so', 'invalid', () => ({ base64: true, body: body() })),
  httpCase('base64/so-and-not-said', 'invalid', () => ({ body: Buffer.from(body()).toString('base64') })),
  httpCase('base64/empty', 'invalid', encoded('')),
  httpCase('base64/nonsense', 'invalid', encoded('!!!!')),
  httpCase('base64/padding', 'invalid', encoded('====')),
  httpCase('base64/line-ends', ['issued', 'invalid'], () => ({
    base64: true,
    body: Buffer.from(body())
      .toString('base64')
      .replaceAll(/(.{76})/g, '$1\r\n'),
  })),
  httpCase('base64/8-mib-of-blanks', ['RequestTooLarge', 'invalid'], encoded(' '.repeat(8 * 1_048_576))),
  httpCase('body/missing', 'invalid', () => ({ body: '' })),
  httpCase('body/lone-surrogate', 'issued', () => ({ body: body().replace('"none"', '"\ud800"') })),
  httpCase('body/lone-surrogate-escaped', 'issued', () => ({ body: body().replace('"none"', '"\\ud800"') })),
];

export const httpCases: readonly HostileCase[] = [...paths, ...methods, ...headers, ...encodings];
