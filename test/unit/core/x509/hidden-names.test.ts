/** Names that look like others: hidden characters, blanks at the ends, nothing at all. No signer reads a request with one. */
import { fc } from '../../../harness/determinism/properties.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { describe, expect, test } from 'vitest';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import type { RequestSpec } from '../../../harness/x509/requests.ts';

/** The message of the refusal; `read` when the request can be read. */
function outcome(spec: RequestSpec): string {
  const decoded = decodeRequest(makeRequest(spec).bytes);
  if (decoded.ok) return 'read';
  expect(decoded.problem.map(({ code }) => code)).toEqual(['RequestMalformed']);
  return decoded.problem[0].message;
}

const hidden: readonly (readonly [what: string, character: string])[] = [
  ['a zero width space', '\u200b'],
  ['a zero width non-joiner', '\u200c'],
  ['a zero width joiner', '\u200d'],
  ['a word joiner', '\u2060'],
  ['a byte order mark', '\ufeff'],
  ['a right-to-left override', '\u202e'],
  ['a left-to-right isolate', '\u2066'],
  ['an Arabic letter mark', '\u061c'],
  ['a soft hyphen', '\u00ad'],
  ['a tag character', '\u{e0041}'],
  ['a variation selector', '\ufe0f'],
  ['a variation selector of the supplement', '\u{e0100}'],
  ['a combining grapheme joiner', '\u034f'],
  ['a Hangul filler', '\u3164'],
  ['a halfwidth Hangul filler', '\uffa0'],
  ['an object replacement character', '\ufffc'],
  ['a replacement character', '\ufffd'],
  ['a private use character', '\ue000'],
  ['an unassigned character', '\u0378'],
  ['a noncharacter', '\u{1fffe}'],
  ['a line separator', '\u2028'],
  ['a paragraph separator', '\u2029'],
  ['a no-break space', '\u00a0'],
  ['a narrow no-break space', '\u202f'],
  ['an ideographic space', '\u3000'],
  ['an en quad', '\u2000'],
  ['an ogham space mark', '\u1680'],
];

describe.each([
  ['the common name', 'CN', (value: string): RequestSpec => ({ subject: { O: 'dev', CN: value } })],
  ['a common name that another follows', 'CN', (value: string): RequestSpec => ({ subject: { CN: [value, 'alice'] } })],
  ['an organization', 'O', (value: string): RequestSpec => ({ subject: { O: ['dev', value], CN: 'alice' } })],
])('finding 5: in %s', (_, type, spec) => {
  test.each(hidden)('%s is refused wherever it stands', (_name, character) => {
    for (const value of [`system:masters${character}`, `${character}system:masters`, `system:${character}masters`])
      expect(outcome(spec(value))).toBe(`the subject has a hidden character in ${type}`);
  });

  test.each([' system:masters', 'system:masters ', '  system:masters', ' '])(
    '%j begins or ends with a blank',
    (value) => {
      expect(outcome(spec(value))).toBe(`the subject has a blank at an end of ${type}`);
    },
  );

  test('a value of nothing is refused', () => {
    expect(outcome(spec(''))).toBe(`the subject has an empty ${type}`);
  });

  test.each([
    'alice',
    'Bob Example',
    'two  blanks inside',
    'Zoë Müller',
    'e\u0301 combining',
    '日本語 テスト',
    'שלום עולם',
    'emoji 😀',
    'x',
    '"quoted" \\ <angle>; #hash',
  ])('%j is read', (value) => {
    expect(outcome(spec(value))).toBe('read');
  });
});

test('finding 5: every string type is read before it is judged', () => {
  const cn = (value: Uint8Array): RequestSpec => ({ subject: [[['CN', value]]] });
  expect(outcome(cn(der.t61('alice\u00a0')))).toBe('the subject has a hidden character in CN');
  expect(outcome(cn(der.bmp('ali\u200bce')))).toBe('the subject has a hidden character in CN');
  expect(outcome(cn(der.printable('alice ')))).toBe('the subject has a blank at an end of CN');
  expect(outcome(cn(der.ia5(' alice')))).toBe('the subject has a blank at an end of CN');
  expect(outcome(cn(der.utf8('')))).toBe('the subject has an empty CN');
});

test('finding 5: attributes that name no user are left as they are, as in-tree', () => {
  for (const value of ['', ' a ', 'a\u200b'])
    expect(outcome({ subject: { OU: value, L: value, CN: 'alice' } })).toBe('read');
  expect(outcome({ subject: { OU: 'a\0', CN: 'alice' } })).toBe('the subject has a control character in OU');
});

test('finding 5: no common name at all, and no attribute at all, can be read', () => {
  expect(outcome({ subject: { O: 'dev' } })).toBe('read');
  expect(outcome({ subject: [] })).toBe('read');
});

test('finding 5: what is read is what RFC 4518 compares, but for case, compatibility and blanks inside', () => {
  let read = 0;
  const numRuns = byTier({ default: 600, deep: 3_000 });
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 4 }), (value) => {
      if (outcome({ subject: { CN: value } }) !== 'read') return;
      read += 1;
      // §2.2 maps these to nothing or to a space, §2.4 prohibits them, §2.6.1 ignores blanks at the ends.
      expect(value).toBe(value.trim());
      expect(value).not.toMatch(/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/u);
      expect(value).not.toBe('');
    }),
    { numRuns },
  );
  expect(read).toBeGreaterThan(numRuns / 30);
});

describe('finding 5: in subjectAltNames', () => {
  const says = 'the subjectAltName extension has';
  test.each<readonly [string, RequestSpec['sans'], string]>([
    ['an empty DNS name', { dns: ['a.example', ''] }, 'a DNS name that is empty'],
    ['a DNS name that is a blank', { dns: [' '] }, 'a DNS name with characters that no host name has'],
    ['a blank before', { dns: [' a.example'] }, 'a DNS name with characters that no host name has'],
    ['a blank inside', { dns: ['a b'] }, 'a DNS name with characters that no host name has'],
    ['two names in one', { dns: ['a,DNS:b'] }, 'a DNS name with characters that no host name has'],
    ['an address with a port', { dns: ['a.example:443'] }, 'a DNS name with characters that no host name has'],
    ['an IPv6 address', { dns: ['2001:db8::1'] }, 'a DNS name with characters that no host name has'],
    ['a path', { dns: ['a.example/b'] }, 'a DNS name with characters that no host name has'],
    ['a NUL', { dns: ['a\0b'] }, 'a control character in DNS names'],
    ['an empty mail address', { email: [''] }, 'an email address that is empty'],
    ['a mail address with a blank', { email: ['a @example.com'] }, 'an email address with a blank or a comma'],
    ['a mail address with a name', { email: ['A <a@example.com>'] }, 'an email address with a blank or a comma'],
    ['two mail addresses in one', { email: ['a@b,c@d'] }, 'an email address with a blank or a comma'],
    ['an empty URI', { uri: [''] }, 'a URI name that is not an absolute URI in normal form (RFC 3986)'],
    [
      'a URI with a blank',
      { uri: ['https://a b/'] },
      'a URI name that is not an absolute URI in normal form (RFC 3986)',
    ],
  ])('%s is refused', (_, sans, message) => {
    expect(outcome(sans === undefined ? {} : { sans })).toBe(`${says} ${message}`);
  });

  test.each([
    'a',
    'A.Example',
    '*.example.com',
    '_sip._tcp.example.com',
    'under_score.example',
    'trailing.dot.',
    '10.0.0.1',
    '-hyphen-.example',
    'xn--mnchen-3ya.example',
    'a'.repeat(300),
  ])('DNS name %s is read', (name) => {
    expect(outcome({ sans: { dns: [name] } })).toBe('read');
  });
  test.each(['alice@example.com', 'no-at-sign', 'ops+pager@example.org', 'x@[10.0.0.1]', '"quoted"@example.com'])(
    'mail address %s is read',
    (address) => {
      expect(outcome({ sans: { email: [address] } })).toBe('read');
    },
  );
});
