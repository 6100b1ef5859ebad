import { fc } from '../../../harness/determinism/properties.ts';
import { describe, expect, test } from 'vitest';
import { decodePem, pemBlocks, toPem } from '../../../../core/encoding/pem.ts';
import { pemBlock } from '../../../harness/x509/requests.ts';

const labels = ['ONE', 'TWO', 'THREE'];
const one = pemBlock('ONE', Buffer.from('first'));
const two = pemBlock('TWO', Buffer.alloc(100, 7));
const three = pemBlock('THREE', Buffer.from('third'));

function decode(text: string): string[] | string {
  const blocks = decodePem(Buffer.from(text, 'utf8'), labels);
  return blocks.ok ? blocks.value.map(({ label, content }) => `${label} ${content.length}`) : blocks.problem;
}

describe('accepted', () => {
  test.each([
    ['one block', one, ['ONE 5']],
    ['all of them', one + two + three, ['ONE 5', 'TWO 100', 'THREE 5']],
    ['some of them', one + three, ['ONE 5', 'THREE 5']],
    ['CRLF', (one + two).replaceAll('\n', '\r\n'), ['ONE 5', 'TWO 100']],
    ['mixed line ends', one + two.replaceAll('\n', '\r\n'), ['ONE 5', 'TWO 100']],
    ['no line end at the end', one.trimEnd(), ['ONE 5']],
    ['empty lines around blocks', `\n\r\n${one}\n\n${two}\n`, ['ONE 5', 'TWO 100']],
    ['one long line', `-----BEGIN ONE-----\n${'QUFB'.repeat(100)}\n-----END ONE-----\n`, ['ONE 300']],
    ['short lines', '-----BEGIN ONE-----\nQU\nFB\n-----END ONE-----\n', ['ONE 3']],
  ])('%s', (_, text, expected) => {
    expect(decode(text)).toEqual(expected);
  });
});

describe('refused, saying what to mend', () => {
  const edit = (from: string, to: string): string => one.replace(from, to);
  test.each([
    ['nothing', '', 'has no ONE block'],
    ['line ends', '\n\n', 'has no ONE block'],
    ['text before', `Certificate Request:\n${one}`, 'text before the first block'],
    ['a space before', ` ${one}`, 'text before the first block'],
    ['a byte order mark', `\ufeff${one}`, 'text before the first block'],
    ['text between', `${one}and\n${two}`, 'text after a block'],
    ['text after', `${one}x`, 'text after a block'],
    ['a NUL after', `${one}\0`, 'text after a block'],
    ['a space after', `${one} `, 'text after a block'],
    ['another label', pemBlock('NEW ONE', Buffer.from('x')), 'another kind than ONE, TWO, THREE'],
    ['another label later', one + pemBlock('PRIVATE KEY', Buffer.from('x')), 'another kind than ONE, TWO, THREE'],
    ['the first block twice', one + one, 'a second ONE block'],
    ['a later block twice', one + two + two, 'a second TWO block'],
    ['wrong order', one + three + two, 'a TWO block out of order'],
    ['not the first label first', two + one, 'does not start with a ONE block'],
    ['not the first label at all', two, 'does not start with a ONE block'],
    ['a lower-case label', pemBlock('one', Buffer.from('x')), 'another kind'],
    ['a header', edit('\n', '\nProc-Type: 4,ENCRYPTED\n\n'), 'a header in the ONE block'],
    ['no end', one.slice(0, one.indexOf('-----END')), 'lacks the line -----END ONE-----'],
    ['another end', edit('END ONE', 'END TWO'), 'lacks the line -----END ONE-----'],
    ['a begin inside', edit('\n', '\n-----BEGIN ONE-----\n'), 'lacks the line -----END ONE-----'],
    ['dashes missing', edit('-----END', '----END'), 'lacks the line -----END ONE-----'],
    ['a trailing space on the begin line', edit('ONE-----\n', 'ONE----- \n'), 'text before'],
    ['content on the begin line', edit('ONE-----\n', 'ONE-----'), 'text before'],
    ['an empty line in the content', edit('\n', '\n\n'), 'not canonical base64'],
    ['a space in the content', edit('Zmly', 'Zm ly'), 'not canonical base64'],
    ['a tab after the content', edit('c3Q=', 'c3Q=\t'), 'not canonical base64'],
    ['padding missing', edit('c3Q=', 'c3Q'), 'not canonical base64'],
    ['too much padding', edit('c3Q=', 'c3Q=='), 'not canonical base64'],
    ['padding in the middle', edit('Zmly', 'Zg=='), 'not canonical base64'],
    ['bits behind the end', edit('c3Q=', 'c3R='), 'not canonical base64'],
    ['base64url', '-----BEGIN ONE-----\n-_-_\n-----END ONE-----\n', 'not canonical base64'],
    ['not ASCII', edit('Zmly', 'Zmlý'), 'not canonical base64'],
    ['a lone CR', one.replaceAll('\n', '\r'), 'text before'],
  ])('%s', (_, text, problem) => {
    expect(decode(text)).toContain(problem);
  });
});

test('what toPem writes comes back, and is what the reference writes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (content) => {
      const text = toPem('ONE', content);
      expect(text).toBe(pemBlock('ONE', content));
      expect(decode(text)).toEqual([`ONE ${content.length}`]);
    }),
    { numRuns: 100 },
  );
});

test('pemBlocks finds the blocks of one label and skips everything else', () => {
  const unended = '-----BEGIN ONE-----\nQUFB\n';
  expect(pemBlocks(`# first\n${one}subject=x\n${two}\n${one.trimEnd()}`, 'ONE')).toEqual([one, one.trimEnd()]);
  expect(pemBlocks(`${two}${unended}`, 'ONE')).toEqual([]);
  expect(pemBlocks(unended + one, 'ONE')).toEqual([one]);
});

test('a body of many short lines costs no stack', () => {
  const lines = 'QUFB\n'.repeat(25_000);
  expect(decode(`-----BEGIN ONE-----\n${lines}-----END ONE-----\n`)).toEqual(['ONE 75000']);
});
