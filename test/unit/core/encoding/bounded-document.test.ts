import { describe, expect, test } from 'vitest';
import { maxYamlCharacters, readBoundedDocument } from '../../../../core/encoding/bounded-document.ts';
import { success } from '../../../../core/outcome/result.ts';
import { byTier } from '../../../harness/determinism/tier.ts';

/** Texts of one length each, made of what costs a YAML parser most. */
const shapes: Readonly<Record<string, (length: number) => string>> = {
  keys: (length) => Array.from({ length: length / 8 }, (_, index) => `k${String(index).padStart(4, '0')}: \n`).join(''),
  'equal keys': (length) => 'a: b\n'.repeat(length / 5),
  'open brackets': (length) => '['.repeat(length),
  'nested brackets': (length) => '['.repeat(length / 2) + ']'.repeat(length / 2),
  'nested mappings': (length) => '{a: '.repeat(length / 4),
  'nested sequences': (length) => `${'- '.repeat(length / 2 - 1)}a`,
  'explicit keys': (length) => '? '.repeat(length / 2),
  aliases: (length) => `- &a x\n${'- *a\n'.repeat(length / 5 - 2)}`,
  tags: (length) => '!a '.repeat(length / 3),
  comments: (length) => '#\n'.repeat(length / 2),
  escapes: (length) => `a: "${'\\\n'.repeat(length / 2 - 3)}"`,
  errors: (length) => ']'.repeat(length),
};

describe('a document that nothing vouches for', () => {
  test.each([
    ['JSON', '{"a": [1, "x"]}', { a: [1, 'x'] }],
    ['YAML', 'a:\n- 1\n- x\n', { a: [1, 'x'] }],
    ['nothing', '', null],
  ])('is read: %s', (_, text, value) => {
    expect(readBoundedDocument(text)).toEqual(success(value));
  });

  test.each([
    ['neither', '{[', 'it is neither JSON nor YAML: '],
    ['an alias', 'a: &a [x]\nb: *a', 'it is neither JSON nor YAML: Alias'],
    ['more YAML than is read', 'a: b\n'.repeat(20_000), 'too long to be read as YAML (64 KiB at most)'],
    ['control characters', '"\u001b[2J', 'it is neither JSON nor YAML: '],
  ])('is refused with a printable line: %s', (_, text, words) => {
    const { problem } = readBoundedDocument(text) as { problem: string };
    expect(problem).toContain(words);
    expect(problem).toMatch(/^[ -~…]{1,200}$/);
  });

  test('of any size is read where it is JSON', () => {
    const labels = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`l${index}`, 'x']));
    expect(readBoundedDocument(JSON.stringify(labels))).toEqual(success(labels));
  });

  test('finding 16: keys are not compared with one another: the last of equal ones counts, as in JSON', () => {
    expect(readBoundedDocument('a: 1\nb: 2\na: 3\n')).toEqual(success({ a: 3, b: 2 }));
    expect(readBoundedDocument('{"a": 1, "a": 3}')).toEqual(success({ a: 3 }));
  });

  // Each takes 0.1 to 0.4 s at the cap, where the deep tier has them, and half of that for half the length. The bound is
  // the test's own timeout.
  test.each(Object.entries(shapes))('finding 16: ends soon: %s', (_, make) => {
    const length = byTier({ default: maxYamlCharacters / 4, deep: maxYamlCharacters });
    const text = make(length);
    expect(text.length).toBeGreaterThan(length - 16);
    expect(text.length).toBeLessThanOrEqual(length);
    expect(Object.keys(readBoundedDocument(text))).toHaveLength(2);
  });
});
