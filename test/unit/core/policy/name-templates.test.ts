import { describe, expect, test } from 'vitest';
import * as fc from 'fast-check';
import { fillTemplate, matchName, parseNamePattern, templateParts } from '../../../../core/policy/name-templates.ts';
import type { NameKind } from '../../../../core/policy/name-templates.ts';

function match(kind: NameKind, text: string, name: string): Readonly<Record<string, string>> | undefined {
  const pattern = parseNamePattern(kind, text);
  if (!pattern.ok) throw new Error(pattern.problem);
  const parts = matchName(pattern.value, name);
  return parts === undefined ? undefined : Object.fromEntries(parts);
}

describe('a pattern', () => {
  test.for([
    ['uri', 'spiffe://a/node/{node}', 'spiffe://a/node/worker-1.example', { node: 'worker-1.example' }],
    ['uri', 'spiffe://a/{zone}/{node}', 'spiffe://a/eu/n', { zone: 'eu', node: 'n' }],
    ['uri', 'spiffe://a/{node}', 'spiffe://a/b/c', undefined],
    ['uri', 'spiffe://a/{node}', 'spiffe://a/', undefined],
    ['uri', 'spiffe://a/{node}', 'spiffe://a/%61', undefined],
    ['cn', '{node}.example', 'a.example', { node: 'a' }],
    ['cn', '{node}.example', 'a.b.example', undefined],
    ['cn', '{node}.example', 'axexample', undefined],
    ['cn', 'Device({node})', 'Device(A_7)', { node: 'A_7' }],
    ['dns', '{node}.Example', 'a.example', { node: 'a' }],
    ['dns', '{node}.{zone}.example', 'a.eu.example', { node: 'a', zone: 'eu' }],
    ['dns', 'worker-1.example', 'worker-1.example', {}],
  ] as const)('%s %s and the name %s', ([kind, text, name, expected]) => {
    expect(match(kind, text, name)).toEqual(expected);
  });

  test('splits a name in one way only: the name follows from the parts', () => {
    const label = fc.stringMatching(/^[a-z0-9_-]{1,20}$/);
    fc.assert(
      fc.property(label, label, fc.constantFrom('uri', 'cn', 'dns'), (a, b, kind) => {
        const separator = kind === 'uri' ? '/' : '.';
        const text = `x-{a}-y${separator}z-{b}`;
        const name = `x-${a}-y${separator}z-${b}`;
        expect(match(kind, text, name)).toEqual({ a, b });
        expect(fillTemplate(text, new Map(Object.entries({ a, b })))).toBe(name);
      }),
      { numRuns: 200, seed: 20_261_122 },
    );
  });
});

test('a template has parts or nothing in braces', () => {
  expect(templateParts('n-{a}.{b}')).toEqual(['a', 'b']);
  expect(templateParts('n')).toEqual([]);
  expect(['{A}', 'a{', '}', '{}'].map(templateParts)).toEqual([undefined, undefined, undefined, undefined]);
});
