import { fc } from '../../../harness/determinism/properties.ts';
import { describe, expect, test } from 'vitest';
import {
  decodeSubjectAltNames,
  encodeSubjectAltNames,
  ipOctets,
  ipText,
} from '../../../../core/x509/subject-alt-names.ts';
import { encodeSans, ipOctets as octetsOf } from '../../../harness/x509/requests.ts';

describe('IP addresses', () => {
  test.each([
    ['0.0.0.0', '0.0.0.0'],
    ['255.1.0.10', '255.1.0.10'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'], // a single group is not shortened
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'], // the longest run
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'], // the first of equals
    ['1:0:0:2:3:0:0:4', '1::2:3:0:0:4'],
    ['0:0:1:0:0:0:0:0', '0:0:1::'],
    ['10:0:0:20:0:30:0:0', '10::20:0:30:0:0'],
    ['a00:0:0:a0:0:0:0:a', 'a00:0:0:a0::a'],
    ['::ffff:10.0.0.1', '10.0.0.1'], // IPv4-mapped: four octets in the certificate, as Go writes it
    ['::fffe:10.0.0.1', '::fffe:a00:1'],
    ['::10.0.0.1', '::a00:1'],
    ['64:ff9b::10.0.0.1', '64:ff9b::a00:1'],
  ])('%s is %s', (written, canonical) => {
    expect(ipText(octetsOf(written))).toBe(canonical);
    expect(ipText(ipOctets(canonical))).toBe(canonical);
  });

  test('as the URL standard writes them, and back again', () => {
    const group = fc.oneof(fc.constant(0), fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const octets = Buffer.from(groups.map((value) => value.toString(16).padStart(4, '0')).join(''), 'hex');
        const text = ipText(octets)!;
        const written = groups.map((value) => value.toString(16)).join(':');
        fc.pre(!text.includes('.'));
        expect(text).toBe(new URL(`http://[${written}]`).hostname.slice(1, -1));
        expect(Buffer.from(ipOctets(text))).toEqual(octets);
      }),
      { numRuns: 300 },
    );
  });

  test.each([0, 1, 3, 5, 8, 15, 17, 32])('%i octets are no address', (length) => {
    expect(ipText(new Uint8Array(length))).toBeUndefined();
  });
});

describe('URIs', () => {
  const problem = (uri: string): string | undefined => {
    const names = decodeSubjectAltNames(encodeSans({ uri: [uri] }));
    return names.ok ? undefined : names.problem[0].message;
  };

  test.each([
    'spiffe://cluster.local/ns/default/sa/web',
    'https://example.com',
    'https://example.com/',
    'https://Example.COM:8443/a//b/?q=a/b?c#frag/ment?',
    'https://user@example.com/',
    'https://[2001:db8::1]:443/',
    'https://[::ffff:10.0.0.1]/',
    'https://10.0.0.1/%41%2f',
    'urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
    'mailto:a@example.com',
    'file:///etc/hosts',
    'x-y.z+1:/rooted',
    "a:!$&'()*+,;=:@~",
  ])('accepted: %s', (uri) => {
    expect(problem(uri)).toBeUndefined();
  });

  // The in-tree signer refuses some of these and rewrites the others.
  test.each([
    '',
    'relative/path',
    '/rooted',
    '//example.com/',
    'example.com',
    'HTTPS://example.com/',
    'Https://example.com/',
    '1a://example.com/',
    ':a',
    'https:',
    'https://',
    'https://example.com./',
    'https://a..b/',
    'https://.a/',
    'https://example.com:/',
    'https://example.com:https/',
    'https://a:1:2/',
    'https://a b/',
    'https://a/b c',
    'https://a/%zz',
    'https://a/%4',
    'https://a/?',
    'https://a/?%zz',
    'https://a/#',
    'https://a/#a#b',
    'https://a/{b}',
    'https://a/[b]',
    'https://a/"',
    'https://a/\\',
    'https://h%41/',
    'https://u:p@a/',
    'https://[::1/',
    'https://[1.2.3.4]/',
    'https://[fe80::1%25eth0]/',
    'https://[1::2::3]/',
    'https://[12345::]/',
    'https://[::01.2.3.4]/',
  ])('refused: %s', (uri) => {
    expect(problem(uri)).toContain('not an absolute URI in normal form');
  });

  test.each(['a', '%41', '/', 'a/', '/a', '?', ':', 'a.'])('a very long one of %s is judged at once', (piece) => {
    const many = piece.repeat(90_000 / piece.length);
    expect(problem(`https://example.com/${many}`)).toBeUndefined();
    expect(problem(`https://example.com/${many} `)).toContain('not an absolute URI');
    expect(problem(`a:${many}"`)).toContain('not an absolute URI');
  });
});

describe('rebuilt for the certificate', () => {
  test('DNS, email, IP, URI, whatever order was sent; others left out', () => {
    const sent = { uri: ['a:b'], ip: ['::ffff:10.0.0.1', '::1'], email: ['a@b'], dns: ['z', 'a', 'z'] };
    const names = decodeSubjectAltNames(encodeSans(sent));
    if (!names.ok) throw new Error(names.problem[0].message);
    expect(Buffer.from(encodeSubjectAltNames(names.value)!)).toEqual(
      encodeSans({ dns: ['z', 'a', 'z'], email: ['a@b'], ip: ['10.0.0.1', '::1'], uri: ['a:b'] }),
    );
  });

  test('no names, no extension', () => {
    expect(encodeSubjectAltNames({ dns: [], email: [], ip: [], uri: [] })).toBeUndefined();
  });
});
