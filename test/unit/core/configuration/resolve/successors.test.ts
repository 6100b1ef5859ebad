import { describe, expect, test } from 'vitest';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';

/** A cluster with these CAs, each a line of YAML; its profile names CA `ca`. */
function parse(...cas: readonly string[]) {
  return parseConfiguration(
    [
      'version: 1',
      'clusters:',
      '  demo:',
      '    cas:',
      ...cas.map((ca) => `      ${ca}`),
      '    profiles:',
      '      kubernetes.io/kube-apiserver-client: {ca: ca}',
    ].join('\n'),
    'countersign.yaml',
  );
}

function problems(...cas: readonly string[]): string[] {
  const parsed = parse(...cas);
  return parsed.ok ? [] : parsed.problem.map(({ line, path, message }) => `${line} ${path}: ${message}`);
}

const named = (name: string, rest: string) => `${name}: {subject: {commonName: ${name}}${rest}}`;
const at = (line: number, ca: string) => `${line} clusters.demo.cas.${ca}.replaces`;

test('a CA replaces an older one', () => {
  const parsed = parse(named('old', ''), named('ca', ', replaces: old'), named('next', ', replaces: ca'));
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
  const cas = [...(parsed.value.configuration.clusters.get('demo')?.cas.values() ?? [])];
  expect(cas.map(({ name, replaces }) => [name, replaces])).toEqual([
    ['old', undefined],
    ['ca', 'old'],
    ['next', 'ca'],
  ]);
});

describe('what is refused', () => {
  test.each<readonly [string, readonly string[], readonly string[]]>([
    ['a CA of no name', [named('ca', ', replaces: old')], [`${at(5, 'ca')}: no CA of this cluster has that name (ca)`]],
    ['itself', [named('ca', ', replaces: ca')], [`${at(5, 'ca')}: leads back to this CA: a CA replaces an older one`]],
    [
      'each other',
      [named('ca', ', replaces: old'), named('old', ', replaces: ca')],
      ['ca', 'old'].map((ca, line) => `${at(5 + line, ca)}: leads back to this CA: a CA replaces an older one`),
    ],
    [
      'two successors',
      [named('old', ''), named('ca', ', replaces: old'), named('other', ', replaces: old')],
      [
        `${at(6, 'ca')}: CA other replaces it too: a CA has one successor`,
        `${at(7, 'other')}: CA ca replaces it too: a CA has one successor`,
      ],
    ],
    [
      'its own issuer: clients would trust the root',
      [named('root', ', pathLen: 1'), named('ca', ', kind: issued, issuedBy: root, replaces: root')],
      [
        `${at(6, 'ca')}: one of ca and root issues the other: clients of both would be accepted from every CA below the upper one`,
      ],
    ],
    [
      'a CA that it issued, two generations ago',
      [
        named('first', ', kind: issued, issuedBy: ca'),
        named('second', ', replaces: first'),
        named('ca', ', pathLen: 1, replaces: second'),
      ],
      [
        `${at(7, 'ca')}: one of ca and first issues the other: clients of both would be accepted from every CA below the upper one`,
      ],
    ],
  ])('%s', (_, cas, expected) => {
    expect(problems(...cas)).toEqual(expected);
  });
});

test('the same subject deserves a second look where a certificate may lack its key identifier', () => {
  const warnings = (old: string) => {
    const parsed = parse(`old: {subject: {commonName: x}${old}}`, 'ca: {subject: {commonName: x}, replaces: old}');
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
    return parsed.value.warnings.map(({ path, message }) => `${path}: ${message}`);
  };
  expect(warnings('')).toEqual([]);
  expect(warnings(', kind: imported')).toEqual([]);
  expect(warnings(', kind: imported, keyMaterial: imported')).toEqual([
    'clusters.demo.cas.ca.replaces: CA old has the same subject: the certificate of old then needs a subjectKeyIdentifier, by which OpenSSL and Node tell the two apart',
  ]);
});

describe('a signer of clients on a CA that the API server trusts for clients', () => {
  const file = (cas: readonly string[], ca: string, subject: string) =>
    parseConfiguration(
      [
        'version: 1',
        'clusters:',
        '  demo:',
        '    cas:',
        ...cas.map((each) => `      ${each}`),
        '    profiles:',
        '      kubernetes.io/kube-apiserver-client: {ca: ca}',
        `      k8s.example.com/mesh: {ca: ${ca}, usages: {allowed: [client auth]}, subject: ${subject}}`,
      ].join('\n'),
      'countersign.yaml',
    );
  const reserved = '{commonNames: [a], allowReserved: [system:web]}';
  const below = [named('ca', ', pathLen: 1'), named('sub', ', kind: issued, issuedBy: ca')];

  test.each<readonly [string, readonly string[], string]>([
    ['the CA that is replaced', [named('old', ''), named('ca', ', replaces: old')], 'old'],
    ['the CA to come', [named('ca', ''), named('next', ', replaces: ca')], 'next'],
    ['a CA below', below, 'sub'],
  ])('%s: its names would be logins', (_, cas, ca) => {
    const refused = file(cas, ca, reserved);
    expect(refused.ok ? [] : refused.problem.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      `clusters.demo.profiles["k8s.example.com/mesh"].subject.allowReserved: "${ca}" is trusted for clients of the API server, where these names would be logins: that is for kubernetes.io/kube-apiserver-client; or give this signer another CA`,
    ]);
    const allowed = file(cas, ca, '{commonNames: [a]}');
    expect(allowed.ok && allowed.value.warnings.map(({ path }) => path)).toEqual([
      'clusters.demo.profiles["k8s.example.com/mesh"].ca',
    ]);
  });

  test('another CA is not', () => {
    const parsed = file([named('ca', ''), named('other', '')], 'other', reserved);
    expect(parsed.ok && parsed.value.warnings).toEqual([]);
  });
});
