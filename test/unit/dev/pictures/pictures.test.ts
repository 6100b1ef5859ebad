/** The pictures of docs/pictures/: generated ones equal their sources, and all can be read by everybody. */
import { globSync, readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { main } from '../../../../dev/demo.ts';
import { createTerminal } from '../../../../dev/demo/terminal.ts';
import { generatedPictures, recordingPath } from '../../../../dev/pictures/generated.ts';
import { withoutChanging } from '../../../../dev/pictures/recording.ts';
import { drawSequence } from '../../../../dev/pictures/sequence.ts';
import { colours, colourStyle, textWidth } from '../../../../dev/pictures/svg.ts';

const root = resolve(import.meta.dirname, '../../../..');
const files = globSync('docs/pictures/*.svg', { cwd: root });
const read = (file: string): string => readFileSync(resolve(root, file), 'utf8');

test.each(generatedPictures().map(({ path, svg }) => [basename(path), path, svg] as const))(
  '%s is what `npm run pictures` writes',
  (_, path, svg) => {
    expect(readFileSync(path, 'utf8')).toBe(svg);
  },
);

describe('the recording of the hijack demo', () => {
  const recorded = readFileSync(recordingPath, 'utf8');

  test("equals today's output, apart from times and ids", async () => {
    let output = '';
    expect(await main(['hijack'], { terminal: createTerminal((text) => (output += text), true) })).toBe(0);
    expect(output).not.toBe(recorded);
    expect(withoutChanging(output)).toBe(withoutChanging(recorded));
  });

  test.each([
    ['Denied', 'Approved'],
    ['TofuNodeTaken', 'TofuReuse'],
    ['\u001B[32m✓', '\u001B[31m✗'],
    ['account 000011112222', 'account 000011112223'],
    ['23.9 h', '24.9 h'],
  ])('a recording with another %s would be found', (from, to) => {
    expect(recorded).toContain(from);
    expect(withoutChanging(recorded.replace(from, to))).not.toBe(withoutChanging(recorded));
  });
});

/** Names of elements that are opened and not closed, or closed in the wrong order. */
function unbalanced(svg: string): string[] {
  const open: string[] = [];
  for (const [, end, name, empty] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (end === '/') {
      if (open.pop() !== name) return [name!];
    } else if (empty !== '/') open.push(name!);
  }
  return open;
}

describe.each(files)('%s', (file) => {
  const svg = read(file);

  test('has a name and a description, loads nothing, and is well-formed', () => {
    expect(svg).toMatch(
      /^<svg [^>]*role="img" aria-labelledby="title description">\n<title id="title">[^<]{10,}<\/title>\n<desc id="description">[^<]{80,}<\/desc>/,
    );
    expect(svg).not.toMatch(/href|url\(|<script|<image|<foreignObject|@import/);
    expect(unbalanced(svg.replaceAll(/<!--.*?-->/g, ''))).toEqual([]);
    expect(svg.replaceAll(/&(amp|lt|gt|quot);/g, '')).not.toContain('&');
  });

  test('has its own background, in the colours of both schemes, and stands in a page with a text', () => {
    if (basename(file) === 'hijack.svg') expect(svg).toContain(`fill="${colours.dark.page}"`);
    else {
      expect(svg.replaceAll('\n', '')).toContain(colourStyle());
      expect(svg).toMatch(/<rect class="page" width="\d+" height="\d+"/);
    }
    const pages = globSync('{README.md,docs/**/*.md}', { cwd: root }).map(read).join('\n');
    expect(pages).toMatch(new RegExp(`!\\[[^\\]]{20,}\\]\\([^)]*pictures/${basename(file)}\\)`));
  });
});

test('an element that is not closed is found', () => {
  expect(unbalanced('<svg><g><path d="M0"/></svg>')).toEqual(['svg']);
  expect(unbalanced('<svg><g></g>')).toEqual(['svg']);
});

/** WCAG 2.2, "relative luminance" and "contrast ratio". */
function contrast(one: string, other: string): number {
  const luminance = (colour: string): number => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5]
      .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
      .map((part) => (part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light! + 0.05) / (dark! + 0.05);
}

test.each(['light', 'dark'] as const)('the texts of the %s scheme can be read on both of its backgrounds', (scheme) => {
  const { page, box, ink, soft, no, yes } = colours[scheme];
  for (const colour of [ink, soft, no, yes])
    for (const ground of [page, box]) expect(contrast(colour, ground), `${colour} on ${ground}`).toBeGreaterThan(4.5);
  expect(contrast(page, page)).toBe(1);
});

const head = 'sequenceDiagram\naccTitle: a\naccDescr: b\nparticipant A as one\nparticipant B as two\n';

test.each([
  ['A->>C: x', 'no participant C'],
  ['A=>B: x', 'not in the part of Mermaid'],
  ['loop x', 'not in the part of Mermaid'],
  ['end', 'no box is open'],
])('the source line %s is refused with its number', (line, why) => {
  expect(() => drawSequence(head + line)).toThrow(`line 6: ${why}`);
});

test('a source without a name for screen readers is refused', () => {
  expect(() => drawSequence('sequenceDiagram\nparticipant A as one\n')).toThrow('accTitle');
  expect(() => drawSequence('graph TD')).toThrow('sequenceDiagram');
});

test('a text with markup is escaped, and a longer text makes room', () => {
  const width = (svg: string): number => Number(/width="(\d+)"/.exec(svg)![1]);
  const short = drawSequence(`${head}A->>B: x\n`);
  const long = drawSequence(`${head}A->>B: <b> & ${'x'.repeat(60)}\n`);
  expect(long).toContain('&lt;b&gt; &amp; xxx');
  expect(width(long) - width(short)).toBeGreaterThan(textWidth('x'.repeat(40), 14));
});
