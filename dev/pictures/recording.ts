/**
 * `npm run demo -- hijack` as a terminal shows it: docs/pictures/hijack.ansi is the output of one real run, with its colours, and
 * hijack.svg shows that file. A test plays the demo again and compares: only times and ids may differ.
 */
import { colours, document, escapeXml } from './svg.ts';

const fontSize = 13;
/** The widest of the monospaced fonts that are asked for. */
const advance = 0.61 * fontSize;
const lineHeight = 18;
const padding = 20;
const bar = 36;

/** This terminal is dark in both colour schemes. */
const { page: ground, box: barColour, ink, soft, no, yes, line: button } = colours.dark;

const style = `text{font:${fontSize}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:${ink};white-space:pre}
.bold{font-weight:700}.red{fill:${no}}.green{fill:${yes}}.soft{fill:${soft}}`;

const classes: Readonly<Record<string, string>> = { 1: 'bold', 31: 'red', 32: 'green' };

/** What differs from run to run: ids of instances, requests, certificates and keys, and times. */
const changing = [
  /\bi-[0-9a-f]{17}\b/g,
  /(?<=countersign-demo-)[0-9a-f]{5}\b/g,
  /(?<=serial )[0-9a-f]{32}\b/g,
  /(?<=embedded:)[0-9a-f]{16}/g,
  /\d+\.\d(?= s$)/gm,
];

export const withoutChanging = (output: string): string =>
  changing.reduce((text, pattern) => text.replaceAll(pattern, '…'), output);

const title = 'npm run demo -- hijack';
const description =
  'The output of the demo: an attacker with a bootstrap token requests the name of another machine in four ways, and each request is denied with its reason. Each machine gets a certificate for its own name.';

export function drawRecording(output: string): string {
  const lines = output.trimEnd().split('\n');
  const columns = Math.max(...lines.map((line) => plain(line).length));
  const width = Math.ceil(columns * advance) + 2 * padding;
  const height = bar + (lines.length + 2) * lineHeight + padding;
  return document({
    width,
    height,
    title,
    description,
    style,
    body: [
      `<rect width="${width}" height="${height}" rx="8" fill="${ground}"/>`,
      `<path d="M0 ${bar}V8a8 8 0 0 1 8-8H${width - 8}a8 8 0 0 1 8 8V${bar}z" fill="${barColour}"/>`,
      ...[0, 1, 2].map((index) => `<circle cx="${padding + index * 20}" cy="${bar / 2}" r="6" fill="${button}"/>`),
      row(`<tspan class="soft">$</tspan> <tspan class="bold">${title}</tspan>`, 0),
      ...lines.flatMap((line, index) => (line === '' ? [] : [row(spans(line), index + 2)])),
    ],
  });
}

const row = (content: string, index: number): string =>
  `<text x="${padding}" y="${bar + (index + 1) * lineHeight + 6}">${content}</text>`;

/** The escape sequences that `dev/demo/terminal.ts` writes. */
const sequence = new RegExp(String.raw`\u001B\[(\d+)m(.*?)\u001B\[0m`, 'g');
const plain = (line: string): string => line.replaceAll(sequence, '$2');

/** Escape characters survive escapeXml, so the sequences are still there. */
const spans = (line: string): string =>
  escapeXml(line).replaceAll(
    sequence,
    (_, code: string, text: string) => `<tspan class="${classes[code] ?? ''}">${text}</tspan>`,
  );
