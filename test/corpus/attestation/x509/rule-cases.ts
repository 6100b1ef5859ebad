/** Which machine a certificate names, and what belongs to it. */
import { general, keyOf, name, subjectAltName } from '../../../harness/x509/certificate-writer.ts';
import * as world from './machine.ts';
import type { Case } from './judge.ts';

const notAllowed = (check: string) => ['IdentityNotAllowed', check] as const;
const noRule = notAllowed('no rule for certificates of root "prod" matches a name of this certificate');
const twoRules = notAllowed('more than one rule matches this certificate');
const { uri, dns, ip } = general;

const commonNameType = '2.5.4.3';
function certificate(
  names: readonly Buffer[],
  subject: string | readonly (readonly [string, string])[] = [['2.5.4.10', 'Example']],
): Pick<Case, 'chain'> {
  const subjectAltNameOrNone = names.length === 0 ? undefined : subjectAltName(...names);
  const extensions = world.leafExtensionsBut({ subjectAltName: subjectAltNameOrNone });
  return { chain: [world.leaf({ subject: name(subject), extensions }), world.certificates.intermediate] };
}
const byCn = { kind: 'cn', pattern: '{node}.prod.example' } as const;
const byDns = { kind: 'dns', pattern: '{node}.prod.example' } as const;
const pattern = { kind: 'pattern', pattern: 'worker-*' } as const;
const other = { ...world.rule, root: 'other' };
const bothRoots = [
  { name: 'prod', certificates: [world.pem(world.certificates.root)] },
  { name: 'other', certificates: [world.pem(world.otherRoot)] },
];

export const ruleCases: readonly Case[] = [
  // URI.
  { name: 'another trust domain', expect: noRule, ...certificate([uri('spiffe://dev.example/node/worker-1')]) },
  { name: 'another path', expect: noRule, ...certificate([uri('spiffe://prod.example/pod/worker-1')]) },
  { name: 'a part of a path more', expect: noRule, ...certificate([uri(`${world.spiffeId}/x`)]) },
  { name: 'something before it', expect: noRule, ...certificate([uri(`x:${world.spiffeId}`)]) },
  { name: 'a query', expect: noRule, ...certificate([uri(`${world.spiffeId}?x`)]) },
  { name: 'no URI', expect: noRule, ...certificate([dns('worker-1')]) },
  { name: 'no names at all', expect: noRule, ...certificate([]) },
  {
    name: 'two URIs that match',
    expect: notAllowed('has more than one URI'),
    ...certificate([uri(world.spiffeId), uri('spiffe://prod.example/node/worker-2')]),
  },
  {
    name: 'a second URI',
    expect: notAllowed('has more than one URI'),
    ...certificate([uri(world.spiffeId), uri('https://x.example/')]),
  },
  {
    name: 'one URI twice',
    expect: notAllowed('has more than one URI'),
    ...certificate([uri(world.spiffeId), uri(world.spiffeId)]),
  },
  {
    name: 'a path in other letters is another machine',
    expect: 'accepted',
    ...certificate([uri('spiffe://prod.example/node/Worker-1')]),
    machine: { identity: 'x509#prod/uri/spiffe://prod.example/node/Worker-1', nodeNames: [] },
  },
  {
    name: 'a name that is too long',
    expect: noRule,
    ...certificate([uri(`spiffe://prod.example/node/${'a'.repeat(200)}/${'b'.repeat(200)}/${'c'.repeat(200)}`)]),
    rule: { pattern: 'spiffe://prod.example/node/{node}/{b}/{c}' },
  },

  // Common name.
  {
    name: 'a common name',
    expect: 'accepted',
    ...certificate([dns('x.example')], 'worker-1.prod.example'),
    rule: byCn,
    machine: {
      identity: 'x509#prod/cn/worker-1.prod.example',
      providerId: 'x509:///worker-1.prod.example',
      nodeNames: ['worker-1'],
    },
  },
  {
    name: 'a common name with another label',
    expect: noRule,
    ...certificate([], 'a.worker-1.prod.example'),
    rule: byCn,
  },
  { name: 'a common name in other letters', expect: noRule, ...certificate([], 'worker-1.PROD.example'), rule: byCn },
  {
    name: 'two common names',
    expect: notAllowed('has more than one common name'),
    ...certificate(
      [],
      [
        [commonNameType, 'worker-1.prod.example'],
        [commonNameType, 'x'],
      ],
    ),
    rule: byCn,
  },
  {
    name: 'a dot that stands for any character',
    expect: noRule,
    ...certificate([], 'worker-1xprod.example'),
    rule: byCn,
  },
  {
    name: 'the name in another attribute',
    expect: noRule,
    ...certificate([], [['2.5.4.11', 'worker-1.prod.example']]),
    rule: byCn,
  },

  // DNS name.
  {
    name: 'a DNS name among others',
    expect: 'accepted',
    ...certificate([dns('other.example'), dns('Worker-1.prod.example'), uri('https://x.example/')]),
    rule: byDns,
    machine: { identity: 'x509#prod/dns/worker-1.prod.example', nodeNames: ['worker-1'], dnsNames: [] },
  },
  {
    name: 'one DNS name in two spellings',
    expect: 'accepted',
    ...certificate([dns('Worker-1.prod.example'), dns('worker-1.prod.example')]),
    rule: byDns,
  },
  {
    name: 'two DNS names that match',
    expect: notAllowed('has more than one matching DNS name'),
    ...certificate([dns('worker-1.prod.example'), dns('worker-2.prod.example')]),
    rule: byDns,
  },
  { name: 'a wildcard', expect: noRule, ...certificate([dns('*.prod.example')]), rule: byDns },
  { name: 'a DNS name as common name', expect: noRule, ...certificate([], 'worker-1.prod.example'), rule: byDns },

  // Rules and roots.
  {
    name: 'two rules that match',
    expect: twoRules,
    policy: {
      rules: [world.rule, { ...world.rule, pattern: 'spiffe://prod.example/{kind}/worker-1', nodeName: [pattern] }],
    },
  },
  {
    name: 'two rules of two kinds that match',
    expect: twoRules,
    ...certificate([uri(world.spiffeId)], 'worker-1.prod.example'),
    policy: { rules: [world.rule, { ...world.rule, ...byCn }] },
  },
  {
    name: 'two rules, one of another root',
    expect: 'accepted',
    policy: { rules: [other, world.rule], roots: bothRoots },
  },
  { name: 'the rule of another root', expect: noRule, policy: { rules: [other], roots: bothRoots } },
  {
    name: 'the same names under another root are another machine',
    expect: 'accepted',
    chain: [world.leaf({ issuer: name('Root'), signer: keyOf('other root') })],
    policy: { rules: [world.rule, other], roots: bothRoots },
    machine: { identity: `x509#other/uri/${world.spiffeId}` },
  },

  // Node names.
  {
    name: 'a template',
    expect: 'accepted',
    rule: { nodeName: [{ kind: 'template', template: 'n-{node}.prod' }] },
    machine: { nodeNames: ['n-worker-1.prod'] },
  },
  {
    name: 'a pattern',
    expect: 'accepted',
    rule: { nodeName: [pattern, { kind: 'template', template: '{node}' }] },
    machine: { nodeNames: ['worker-*', 'worker-1'] },
  },
  {
    name: 'two parts',
    expect: 'accepted',
    ...certificate([uri('spiffe://prod.example/eu/node/worker-1')]),
    rule: {
      pattern: 'spiffe://prod.example/{zone}/node/{node}',
      nodeName: [{ kind: 'template', template: '{node}.{zone}' }],
    },
    machine: { nodeNames: ['worker-1.eu'] },
  },
  {
    name: 'a part that is no name of a node',
    expect: 'accepted',
    ...certificate([uri('spiffe://prod.example/node/a_b')]),
    machine: { nodeNames: [] },
  },

  // What belongs to the machine.
  {
    name: 'addresses and DNS names, where the rule says so',
    expect: 'accepted',
    ...certificate([
      uri(world.spiffeId),
      ip(10, 0, 0, 5),
      ip(10, 0, 0, 5),
      dns('A.prod.example'),
      dns('*.prod.example'),
    ]),
    rule: { addresses: true, dnsNames: true },
    machine: { addresses: ['10.0.0.5'], dnsNames: ['a.prod.example'] },
  },
  {
    name: 'addresses and DNS names, where the rule does not say so',
    expect: 'accepted',
    ...certificate([uri(world.spiffeId), ip(10, 0, 0, 5), dns('a.prod.example')]),
    machine: { addresses: [], dnsNames: [] },
  },
  {
    name: 'addresses alone',
    expect: 'accepted',
    ...certificate([uri(world.spiffeId), ip(10, 0, 0, 5), dns('a.prod.example')]),
    rule: { addresses: true },
    machine: { addresses: ['10.0.0.5'], dnsNames: [] },
  },
];
