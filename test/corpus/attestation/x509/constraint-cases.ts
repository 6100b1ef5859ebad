/** Name constraints of a CA on the chain. */
import * as der from '../../../harness/x509/der-writer.ts';
import {
  basicConstraints,
  extension,
  general,
  keyUsage,
  name,
  nameConstraints,
  subjectAltName,
} from '../../../harness/x509/certificate-writer.ts';
import * as world from './machine.ts';
import type { Case } from './judge.ts';

const invalid = (check: string) => ['AttestationInvalid', check] as const;
const notJudged = invalid('certificate "CN=Intermediate" has name constraints that are not judged here');
const forbidden = invalid('certificate "CN=Intermediate" does not permit a name below it');

/** The machine's certificate with further names, under an intermediate with these constraints. */
function under(constraints: Buffer, ...names: readonly Buffer[]): Pick<Case, 'chain'> {
  return underAlone(constraints, general.uri(world.spiffeId), ...names);
}

function underAlone(constraints: Buffer, ...names: readonly Buffer[]): Pick<Case, 'chain'> {
  const san = subjectAltName(...names);
  return {
    chain: [
      world.leaf({ extensions: world.leafExtensionsBut({ subjectAltName: san }) }),
      world.intermediate({ extensions: [basicConstraints(true, 0), keyUsage(5), constraints] }),
    ],
  };
}
const permitted = (...names: readonly Buffer[]): Buffer => nameConstraints({ permitted: names });
const excluded = (...names: readonly Buffer[]): Buffer => nameConstraints({ excluded: names });
const { uri, dns, ip, email, directory } = general;
const raw = (value: Buffer): Buffer => extension('2.5.29.30', value, true);

export const constraintCases: readonly Case[] = [
  // URIs: the host.
  { name: 'the host is permitted', expect: 'accepted', ...under(permitted(uri('prod.example'))) },
  { name: 'the host is permitted in other letters', expect: 'accepted', ...under(permitted(uri('PROD.example'))) },
  { name: 'another host is permitted', expect: forbidden, ...under(permitted(uri('dev.example'))) },
  { name: 'one of two hosts', expect: 'accepted', ...under(permitted(uri('dev.example'), uri('prod.example'))) },
  { name: 'a host is no domain', expect: forbidden, ...under(permitted(uri('example'))) },
  { name: 'hosts of a domain', expect: 'accepted', ...under(permitted(uri('.example'))) },
  { name: 'hosts below the host itself', expect: forbidden, ...under(permitted(uri('.prod.example'))) },
  { name: 'an excluded host', expect: forbidden, ...under(excluded(uri('prod.example'))) },
  { name: 'an excluded domain', expect: forbidden, ...under(excluded(uri('.example'))) },
  { name: 'another excluded host', expect: 'accepted', ...under(excluded(uri('dev.example'))) },
  {
    name: 'permitted and excluded',
    expect: forbidden,
    ...under(nameConstraints({ permitted: [uri('.example')], excluded: [uri('prod.example')] })),
  },
  { name: 'the end of a host is no host of the domain', expect: forbidden, ...under(permitted(uri('.rod.example'))) },
  { name: 'a URI without a host', expect: forbidden, ...under(excluded(uri('dev.example')), uri('urn:x:y')) },
  {
    name: 'a URI with an address as host',
    expect: forbidden,
    ...under(excluded(uri('dev.example')), uri('https://10.0.0.1/')),
  },
  {
    name: 'a URI with a user before the host',
    expect: forbidden,
    ...under(permitted(uri('prod.example')), uri('spiffe://prod.example@dev.example/')),
  },

  // DNS names.
  {
    name: 'a DNS name below the domain',
    expect: 'accepted',
    ...under(permitted(dns('prod.example')), dns('a.prod.example')),
  },
  { name: 'the domain itself', expect: 'accepted', ...under(permitted(dns('prod.example')), dns('PROD.example')) },
  {
    name: 'a DNS name beside the domain',
    expect: forbidden,
    ...under(permitted(dns('prod.example')), dns('aprod.example')),
  },
  {
    name: 'names below the domain alone',
    expect: forbidden,
    ...under(permitted(dns('.prod.example')), dns('prod.example')),
  },
  {
    name: 'a name below the domain, with a leading period',
    expect: 'accepted',
    ...under(permitted(dns('.prod.example')), dns('a.prod.example')),
  },
  { name: 'every DNS name', expect: 'accepted', ...under(permitted(dns('')), dns('a.prod.example')) },
  { name: 'no DNS name', expect: forbidden, ...under(excluded(dns('')), dns('a.prod.example')) },
  {
    name: 'limits on names that the certificate does not have',
    expect: 'accepted',
    ...under(permitted(dns('dev.example'))),
  },
  {
    name: 'one of two DNS names is not permitted',
    expect: forbidden,
    ...under(permitted(dns('prod.example')), dns('a.prod.example'), dns('a.dev.example')),
  },

  // Addresses.
  {
    name: 'an address in the block',
    expect: 'accepted',
    ...under(permitted(ip(10, 0, 0, 0, 255, 0, 0, 0)), ip(10, 9, 8, 7)),
  },
  {
    name: 'an address outside the block',
    expect: forbidden,
    ...under(permitted(ip(10, 0, 0, 0, 255, 0, 0, 0)), ip(11, 9, 8, 7)),
  },
  {
    name: 'an excluded address',
    expect: forbidden,
    ...under(excluded(ip(10, 0, 0, 0, 255, 0, 0, 0)), ip(10, 9, 8, 7)),
  },
  {
    name: 'an address of the other family',
    expect: forbidden,
    ...under(permitted(ip(...Array<number>(32).fill(0))), ip(10, 9, 8, 7)),
  },

  // Limits on one kind of names say nothing about another.
  { name: 'no DNS name permitted, and no DNS name present', expect: 'accepted', ...under(excluded(dns(''))) },
  {
    name: 'a URI without a host, where URIs are not limited',
    expect: 'accepted',
    ...underAlone(permitted(dns('prod.example')), uri('urn:x:y'), dns('worker-1.prod.example')),
    rule: { kind: 'dns', pattern: '{node}.prod.example' },
  },

  // What is not judged.
  { name: 'limits on subjects', expect: notJudged, ...under(permitted(directory('Example'))) },
  { name: 'limits on mail addresses', expect: notJudged, ...under(permitted(email('example.com'))) },
  {
    name: 'limits on subjects beside others',
    expect: notJudged,
    ...under(permitted(uri('prod.example'), directory('Example'))),
  },
  { name: 'a mask of the wrong length', expect: notJudged, ...under(permitted(ip(10, 0, 0, 0, 255))) },
  {
    name: 'a host outside ASCII',
    expect: notJudged,
    ...under(permitted(der.primitive(6, Buffer.from('prod.éxample')))),
  },
  {
    name: 'a minimum',
    expect: notJudged,
    ...under(raw(der.sequence(der.constructed(0, der.sequence(uri('prod.example'), der.primitive(0, Buffer.of(1))))))),
  },
  {
    name: 'a limit without a name',
    expect: notJudged,
    ...under(raw(der.sequence(der.constructed(0, der.sequence())))),
  },
  { name: 'no limits', expect: notJudged, ...under(raw(der.sequence())) },
  { name: 'an empty list of limits', expect: notJudged, ...under(raw(der.sequence(der.constructed(0)))) },
  {
    name: 'limits of another tag',
    expect: notJudged,
    ...under(raw(der.sequence(der.constructed(2, der.sequence(uri('prod.example')))))),
  },
  { name: 'limits that are no sequence', expect: notJudged, ...under(raw(der.octets(Buffer.of(1)))) },

  // Whose limits, and on what.
  {
    name: 'limits of the root',
    expect: invalid('certificate "CN=Root" does not permit a name below it'),
    policy: {
      roots: [
        {
          name: 'prod',
          certificates: [
            world.pem(world.root({ extensions: [basicConstraints(true), keyUsage(5), permitted(uri('dev.example'))] })),
          ],
        },
      ],
    },
  },
  {
    name: 'limits of the root on an intermediate',
    expect: invalid('certificate "CN=Root" does not permit a name below it'),
    chain: [
      world.certificates.leaf,
      world.intermediate({
        extensions: [basicConstraints(true, 0), keyUsage(5), subjectAltName(dns('ca.dev.example'))],
      }),
    ],
    policy: {
      roots: [
        {
          name: 'prod',
          certificates: [
            world.pem(
              world.root({ extensions: [basicConstraints(true), keyUsage(5), permitted(dns('prod.example'))] }),
            ),
          ],
        },
      ],
    },
  },
  {
    name: 'a common name under limits',
    expect: invalid('a CA of the chain has name constraints, which do not limit common names'),
    chain: [
      world.leaf({ subject: name('worker-1') }),
      world.intermediate({ extensions: [basicConstraints(true, 0), keyUsage(5), permitted(uri('prod.example'))] }),
    ],
    rule: { kind: 'cn', pattern: '{node}' },
  },
];
