import { fc } from '../../../harness/determinism/properties.ts';
import { describe, expect, test } from 'vitest';
import {
  dnsMatchesAny,
  emailMatches,
  isHostName,
  isInRanges,
  isSubdomain,
  nameMatches,
  profileMatches,
  parseAddress,
  parseRange,
  rangeHolds,
  uriMatches,
} from '../../../../core/policy/patterns.ts';

describe('names', () => {
  test.each([
    ['alice', 'alice', true],
    ['alice', 'Alice', false],
    ['alice', 'alice ', false],
    ['', '', true],
    ['', 'a', false],
    ['*', '', true],
    ['*', 'anything\nat all', true],
    ['team-*', 'team-', true],
    ['team-*', 'xteam-a', false],
    ['*-admin', 'a-admin', true],
    ['*-admin', 'a-admins', false],
    ['a*a', 'a', false], // head and tail may not share a character
    ['a*a', 'aa', true],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'axbxxc', true],
    ['a*b*c', 'acb', false],
    ['a*bc*c', 'abc', false], // nor may a part in the middle and the tail
    ['ab*ab', 'abab', true],
    ['a.c', 'abc', false],
    ['system:serviceaccount:*:issuer', 'system:serviceaccount:web:issuer', true],
  ])('%j against %j is %s', (pattern, value, expected) => {
    expect(nameMatches(pattern, value)).toBe(expected);
  });

  test('matching takes no longer for a value made to be slow', () => {
    // A backtracking matcher needs more steps than there are atoms for this one; the test runner would time out.
    expect(nameMatches('*a'.repeat(60) + 'b', 'a'.repeat(100_000))).toBe(false);
  });
});

/** The textbook recursion, slow and obviously right. */
function reference(pattern: string, value: string, never: string): boolean {
  if (pattern === '') return value === '';
  if (!pattern.startsWith('*')) return pattern[0] === value[0] && reference(pattern.slice(1), value.slice(1), never);
  if (reference(pattern.slice(1), value, never)) return true;
  return value !== '' && !never.includes(value.charAt(0)) && reference(pattern, value.slice(1), never);
}

test('agrees with the textbook definition', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '/', '@'), maxLength: 10 });
  const patterns = fc.string({ unit: fc.constantFrom('a', 'b', '/', '@', '*'), maxLength: 7 });
  let matched = 0;
  fc.assert(
    fc.property(patterns, letters, (pattern, value) => {
      expect(nameMatches(pattern, value)).toBe(reference(pattern, value, ''));
      expect(emailMatches(pattern, value)).toBe(reference(pattern, value, '@'));
      expect(uriMatches(pattern, value)).toBe(reference(pattern, value, '/@'));
      if (uriMatches(pattern, value)) matched += 1;
    }),
    { numRuns: 5000 },
  );
  expect(matched).toBeGreaterThan(50);
});

test.each([
  ['web.example.com', 'WEB.example.com', true],
  ['*.example.com', 'a.example.com', true],
  ['*.example.com', 'a.b.example.com', true],
  ['*.example.com', 'example.com', false],
  ['*.example.com', 'evil.net\0.example.com', false],
  ['*.example.com', 'evil.net/.example.com', false],
  ['*.example.com', 'a..example.com', false],
  ['*.example.com', '*.example.com', true],
  ['*.example.com', '*.sub.example.com', false],
  ['*', '*.example.com', false],
  ['*', 'a', true],
  ['*', '', false],
])('DNS: %j against %j is %s', (pattern, value, expected) => {
  expect(dnsMatchesAny(['other.example', pattern], value)).toBe(expected);
});

test.each([
  ['*@example.com', 'a@example.com', true],
  ['*@example.com', 'a@evil.net@example.com', false],
  ['*@*.example.com', 'a@b.example.com', true],
])('email: %j against %j is %s', (pattern, value, expected) => {
  expect(emailMatches(pattern, value)).toBe(expected);
});

test.each([
  ['spiffe://example.com/ns/*/sa/*', 'spiffe://example.com/ns/web/sa/front', true],
  ['spiffe://example.com/ns/*/sa/*', 'spiffe://example.com/ns/web/x/sa/front', false],
  ['https://*.example.com/', 'https://a.b.example.com/', true],
  ['https://*.example.com/', 'https://evil.net/x.example.com/', false],
  ['https://*.example.com/', 'https://evil.net?.example.com/', false],
  ['https://*.example.com/', 'https://evil.net#.example.com/', false],
  ['https://*.example.com/', 'https://a@evil.net.example.com/', false],
  ['https://*.example.com/', 'https://evil.net%2f.example.com/', false],
  ['https://*.example.com/', 'https://evil.net\\.example.com/', false],
])('URI: %j against %j is %s', (pattern, value, expected) => {
  expect(uriMatches(pattern, value)).toBe(expected);
});

test.each([
  ['10.0.0.0/8', '10.255.0.1', true],
  ['10.0.0.0/8', '11.0.0.0', false],
  ['10.0.0.7', '10.0.0.7', true],
  ['10.0.0.7', '10.0.0.8', false],
  ['0.0.0.0/0', '255.255.255.255', true],
  ['0.0.0.0/0', '::1', false],
  ['::/0', '10.0.0.1', false],
  ['10.0.0.0/8', '::ffff:10.0.0.1', false],
  ['::ffff:0.0.0.0/96', '::ffff:10.0.0.1', true],
  ['2001:db8::/32', '2001:db8:ffff::1', true],
  ['2001:db8::/32', '2001:db9::1', false],
  ['fe80::1', 'fe80::1', true],
  ['1:2:3:4:5:6:7:8/128', '1:2:3:4:5:6:7:8', true],
])('block %s holds %s: %s', (block, address, expected) => {
  const range = parseRange(block);
  const digits = parseAddress(address);
  if (range === undefined || digits === undefined) throw new Error('unreadable');
  expect(range.text).toBe(block);
  expect(rangeHolds(range, digits)).toBe(expected);
});

test.each([
  ['10.0.0.1/8', 'bits beyond the prefix'],
  ['10.0.0.0/33', 'prefix too long'],
  ['10.0.0.0/08', 'leading zero'],
  ['10.0.0/8', 'three octets'],
  ['010.0.0.1', 'octal to some readers'],
  ['256.0.0.0', 'octet too large'],
  ['2001:db8::/129', 'prefix too long'],
  ['2001:db8::1::', 'two runs of zeros'],
  ['1:2:3:4:5:6:7', 'too few groups'],
  ['1:2:3:4:5:6:7:8:9', 'too many groups'],
  ['1:2:3:4:5:6:7::8', 'a run of no zeros'],
  ['12345::', 'group too long'],
  [':', 'nothing'],
  ['1.2.3.4::', 'IPv4 not at the end'],
  ['', 'empty'],
  ['*', 'a pattern'],
  ['10.0.0.0/8/8', 'two prefixes'],
  ['0.0.0.0/33', 'a prefix longer than an IPv4 address'],
  ['::/129', 'a prefix longer than an IPv6 address'],
  ['1:2:3:4:5:6:7:8::zz', 'eight groups, and a run with no groups behind it'],
])('%j is no block: %s', (text) => {
  expect(parseRange(text)).toBeUndefined();
});

test('what is no address is not read as one', () => {
  expect(['', 'web', '10.0.0', '10.0.0.0/8', '10.0.0.01'].filter((text) => parseAddress(text) !== undefined)).toEqual(
    [],
  );
  const all = parseRange('0.0.0.0/0');
  if (all === undefined) throw new Error('0.0.0.0/0 is a block');
  expect(['', 'web', '10.0.0.1', '::1'].filter((text) => isInRanges([all], text))).toEqual(['10.0.0.1']);
});

test.each([
  ['n1', true, true],
  ['ip-10-0-0-1.ec2.internal', true, true],
  ['N1', true, false],
  ['a_b', true, false],
  ['', false, false],
  ['-a', false, false],
  ['a-', false, false],
  ['a..b', false, false],
  ['a b', false, false],
  ['a'.repeat(63), true, true],
  ['a'.repeat(64), false, true], // Kubernetes bounds the whole name, not the label
  [`${'a.'.repeat(127)}a`, false, false], // 255
])('%j: host name %s, subdomain %s', (name, host, subdomain) => {
  expect([isHostName(name), isSubdomain(name)]).toEqual([host, subdomain]);
});

test.each([
  ['nodes', true],
  ['nod*', true],
  ['arn:aws:iam::111122223333:instance-profile/*', true],
  ['others', false],
  ['arn:aws:iam::444455556666:instance-profile/*', false],
  // A pattern for names does not match the path.
  ['*/team/nodes', false],
])('the pattern %s of an instance profile: %s', (pattern, matches) => {
  expect(profileMatches(pattern, 'arn:aws:iam::111122223333:instance-profile/team/nodes')).toBe(matches);
});

test('no instance profile matches no pattern', () => {
  expect(profileMatches('*', '')).toBe(false);
});
