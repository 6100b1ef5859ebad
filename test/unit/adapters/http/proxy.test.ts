import { expect, test } from 'vitest';
import { forwardProxy, proxyHost } from '../../../../adapters/http/proxy.ts';

const thisMachine = 'localhost,.localhost,127.0.0.1,::1,[::1]';

test.each<[string, Record<string, string>, string | undefined, string]>([
  ['nothing', {}, undefined, ''],
  ['an empty variable', { HTTPS_PROXY: '', https_proxy: '' }, undefined, ''],
  ['a proxy for plain http', { HTTP_PROXY: 'http://proxy.example.com:3128' }, undefined, ''],
  ['a URL', { HTTPS_PROXY: 'http://proxy.example.com:3128' }, 'http://proxy.example.com:3128/', thisMachine],
  ['a proxy with TLS', { HTTPS_PROXY: 'https://proxy.example.com' }, 'https://proxy.example.com/', thisMachine],
  ['only host and port', { HTTPS_PROXY: 'proxy.example.com:3128' }, 'http://proxy.example.com:3128/', thisMachine],
  [
    'lower case, which comes first',
    { https_proxy: 'http://a:1', HTTPS_PROXY: 'http://b:1' },
    'http://a:1/',
    thisMachine,
  ],
  [
    'exceptions',
    { HTTPS_PROXY: 'http://a:1', NO_PROXY: '.example.com,10.0.0.1' },
    'http://a:1/',
    `.example.com,10.0.0.1,${thisMachine}`,
  ],
  [
    'exceptions in lower case',
    { https_proxy: 'http://a:1', no_proxy: '*', NO_PROXY: 'b' },
    'http://a:1/',
    `*,${thisMachine}`,
  ],
])('from %s', (_, environment, url, except) => {
  expect(forwardProxy(environment)).toEqual(url === undefined ? undefined : { HTTPS_PROXY: url, NO_PROXY: except });
});

test.each(['socks5://proxy:1080', 'http://', 'http://a b', 'file:///etc/passwd'])('%s is no proxy', (HTTPS_PROXY) => {
  expect(() => forwardProxy({ HTTPS_PROXY })).toThrow(
    /^HTTPS_PROXY: must be the URL of an http or https proxy, such as/,
  );
});

test('a password is neither in the error nor in what is logged', () => {
  expect(() => forwardProxy({ HTTPS_PROXY: 'ftp://user:secret@proxy' })).toThrow(/^((?!secret).)*$/);
  expect(proxyHost({ HTTPS_PROXY: 'http://user:secret@proxy:3128/', NO_PROXY: '' })).toBe('proxy:3128');
});
