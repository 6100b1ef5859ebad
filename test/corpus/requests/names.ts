/** Subject alternative names, requested extensions, usages and lifetimes, ordinary and odd but legal. */
import * as der from '../../harness/x509/der-writer.ts';
import type { ExtensionSpec, SanSpec } from '../../harness/x509/requests.ts';
import type { Random } from './random.ts';

/** What both signers give. Which characters only the reference gives is among the deviations (16). */
const sanPools = {
  dns: {
    plain: ['node-1.example.com', 'n1', 'api.internal', 'a.b.c.d.example.org'],
    odd: [
      'UPPER.Example.COM',
      '*.wild.example',
      'under_score.example',
      'trailing.dot.',
      '10.0.0.1',
      '-hyphen-.example',
      `${'l'.repeat(63)}.example`,
      `${'l'.repeat(64)}.example`,
      `${'long.'.repeat(60)}example`,
      'xn--mnchen-3ya.example',
      'a'.repeat(500),
    ],
  },
  email: {
    plain: ['alice@example.com', 'ops+pager@example.org'],
    odd: ['no-at-sign', '"quoted"@example.com', 'A@B@example.com', 'x@[10.0.0.1]'],
  },
  ip: {
    plain: ['10.0.0.1', '192.168.17.4', '2001:db8::1', 'fd00:1:2:3:4:5:6:7'],
    odd: ['0.0.0.0', '255.255.255.255', '127.0.0.1', '::', '::1', '::ffff:10.1.2.3', '::10.1.2.3', '2001:db8:0:0:1::1'],
  },
  uri: {
    plain: ['spiffe://cluster.local/ns/default/sa/default', 'https://example.com/path'],
    odd: [
      'https://user@host.example:8443/p/q;x=1?y=2&z=%20#frag',
      'http://[2001:db8::1]:8080/',
      'urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66',
      'mailto:alice@example.com',
      'file:///etc/hosts',
      'https://UPPER.example/Path%2Fescaped',
      'x-scheme+1.0:opaque',
    ],
  },
} as const;
export type SanType = keyof typeof sanPools;

/**
 * Those of them that no kubelet serves under (deviation 15), as a profile lists them that gives them all the same: then ours is to
 * do what the reference does.
 */
export const namesOfNoNode: readonly string[] = [
  '*.wild.example',
  'trailing.dot.',
  '10.0.0.1',
  '-hyphen-.example',
  `${'long.'.repeat(60)}example`,
  'a'.repeat(500),
  '0.0.0.0',
  '255.255.255.255',
  '127.0.0.1',
  '::',
  '::1',
  '::a01:203',
];

function sanNames(type: SanType, random: Random): string[] {
  const { plain, odd } = sanPools[type];
  const names = random.chance(0.5) ? random.some(plain, 1, 2) : random.some([...plain, ...odd], 1, 4);
  return random.chance(0.15) ? [...names, ...names] : names;
}

/** Each type apart from the others, or all in one: an extension whose names follow no order of types. */
export function sans(types: readonly SanType[], random: Random): SanSpec {
  const spec: Partial<Record<SanType, string[]>> = {};
  for (const type of types) spec[type] = sanNames(type, random);
  const mapped = types.includes('ip') && random.chance(0.2);
  return { ...spec, ...(mapped ? { raw: [der.primitive(7, ipv4Mapped)] } : {}) };
}

/** 10.9.8.7 as an IPv6 address behind the other names: the certificate has it as four octets, before any URI. */
const ipv4Mapped = Buffer.from('00000000000000000000ffff0a090807', 'hex');

/** All dropped, whatever they ask for. */
const requestedExtensions: readonly ExtensionSpec[] = [
  { oid: '2.5.29.19', critical: true, value: der.sequence(der.boolean(true)) }, // CA:TRUE
  { oid: '2.5.29.19', value: der.sequence() },
  { oid: '2.5.29.15', critical: true, value: der.bits(Buffer.from([0x06]), 1) }, // keyCertSign, cRLSign
  { oid: '2.5.29.15', value: der.bits(Buffer.from([0xa0]), 5) },
  { oid: '2.5.29.37', value: der.sequence(der.oid('2.5.29.37.0')) }, // any purpose
  { oid: '2.5.29.14', value: der.octets(Buffer.alloc(20, 7)) },
  { oid: '2.5.29.32', value: der.sequence(der.sequence(der.oid('2.5.29.32.0'))) },
  {
    oid: '2.5.29.30',
    critical: true,
    value: der.sequence(der.constructed(0, der.sequence(der.primitive(2, Buffer.from('example.com'))))),
  },
  { oid: '1.3.6.1.5.5.7.1.24', value: der.sequence(der.integer(5)) }, // TLS feature: must staple
  { oid: '1.3.6.1.4.1.11129.2.1.21', value: der.utf8('aws:///eu-central-1a/i-0123456789abcdef0') }, // provider ID
  { oid: '1.3.6.1.4.1.99999.7', critical: true, value: der.utf8('anything') },
  { oid: '2.16.840.1.113730.1.13', value: der.ia5('comment') },
];

export function extensions(random: Random): ExtensionSpec[] {
  if (random.chance(0.6)) return [];
  const chosen = random.some(requestedExtensions, 1, 4);
  // Asking for one extension twice is refused by both.
  return chosen.filter(({ oid }, index) => chosen.findIndex((other) => other.oid === oid) === index);
}

/** The API asks for at least 600; what is beyond the signer's maximum is cut to it. */
export const lifetimes = [
  undefined,
  undefined,
  undefined,
  600,
  601,
  3_600,
  7_200,
  28_799,
  28_800,
  28_801,
  86_400,
  31_535_999,
  31_536_000,
  31_536_001,
  2_147_483_647,
] as const;
