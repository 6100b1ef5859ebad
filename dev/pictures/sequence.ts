/** Draws a sequence diagram as SVG. Deterministic: the same source gives the same bytes on every machine. */
import { readSequence } from './sequence-source.ts';
import type { Message, Note, Sequence, Step } from './sequence-source.ts';
import { colourStyle, document, escapeXml, textWidth } from './svg.ts';

const fontSize = 14;
const lineHeight = 18;
const margin = 24;
const headPadding = 14;
const gap = 14;
/** The room beside the text of a message, between two lifelines. */
const air = 26;
/** How far the line of a message of a participant to itself reaches. */
const selfWidth = 30;

const style = `${colourStyle()}
text{font:${fontSize}px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;fill:var(--ink)}
.page{fill:var(--page)}.head{fill:var(--box);stroke:var(--line)}.head+text{font-weight:600}
.area{fill:none;stroke:var(--line);stroke-dasharray:2 4}.place{fill:var(--soft);font-size:13px}
.life{stroke:var(--line)}.note{fill:var(--box);stroke:none}.call,.answer,.refusal{fill:none;stroke:var(--ink);stroke-width:1.5}
.answer{stroke-dasharray:5 4}.refusal{stroke:var(--no)}.no{fill:var(--no);font-weight:600}.tip{fill:var(--ink)}.behind{fill:var(--page)}
.number{fill:var(--soft);font-size:12px}`;

export function drawSequence(source: string): string {
  const sequence = readSequence(source);
  const columns = columnsOf(sequence);
  const headLines = Math.max(...sequence.participants.map(({ label }) => label.length));
  const top = margin + (sequence.boxes.length > 0 ? 30 : 0);
  const headHeight = headLines * lineHeight + 16;
  const body: string[] = [];
  let y = top + headHeight + gap;
  let number = 0;
  for (const step of sequence.steps) {
    const drawn = step.kind === 'note' ? drawNote(step, columns, y) : drawMessage(step, columns, y, ++number);
    body.push(...drawn.elements);
    y += drawn.height;
  }
  const bottom = y + gap;
  const right = columnAt(columns, columns.length - 1);
  const width = right.x + right.half + margin + 8;

  const rest = Math.max(0, ...sequence.steps.map((step) => rightEdge(step, columns))) - (width - margin);
  const fullWidth = Math.ceil(width + Math.max(0, rest));

  const frame = [
    `<rect class="page" width="${fullWidth}" height="${bottom + margin}" rx="8"/>`,
    ...sequence.boxes.flatMap(({ title, first, last }) => {
      const [from, to] = [columnAt(columns, first), columnAt(columns, last)];
      const x = from.x - from.half - 8;
      return [
        `<rect class="area" x="${x}" y="${margin - 12}" width="${to.x + to.half + 8 - x}" height="${bottom + 8 - margin + 12}" rx="8"/>`,
        `<text class="place" x="${x + 12}" y="${margin + 8}">${escapeXml(title)}</text>`,
      ];
    }),
    ...sequence.participants.flatMap(({ label }, index) => {
      const { x, half } = columnAt(columns, index);
      return [
        `<path class="life" d="M${x} ${top + headHeight}V${bottom}"/>`,
        `<rect class="head" x="${x - half}" y="${top}" width="${half * 2}" height="${headHeight}" rx="6"/>`,
        text(label, x, top + headHeight / 2 - ((label.length - 1) * lineHeight) / 2 + 5, 'text-anchor="middle"'),
      ];
    }),
  ];
  return document({
    width: fullWidth,
    height: bottom + margin,
    title: sequence.title,
    description: sequence.description,
    style,
    body: [...frame, ...body],
  });
}

interface Column {
  /** The middle, where the lifeline is. */
  readonly x: number;
  /** Half of the width of the head. */
  readonly half: number;
}

/** Sources name participants that they declare, so that every index has a column. */
function columnAt(columns: readonly Column[], index: number): Column {
  const column = columns[index];
  if (column === undefined) throw new RangeError(`no column ${index}`);
  return column;
}

const widthOf = (lines: readonly string[], bold = false): number =>
  Math.max(...lines.map((line) => textWidth(line, fontSize, bold)));
const numberWidth = 22;

/** Each column stands as far right as its left neighbours and the messages between them need. */
function columnsOf({ participants, steps, boxes }: Sequence): readonly Column[] {
  const columns: Column[] = [];
  participants.forEach(({ label }, index) => {
    const half = Math.ceil(widthOf(label, true) / 2) + headPadding;
    const before = columns[index - 1];
    const apart = boxes.some(({ first }) => first === index) ? 34 : 18;
    let x = before === undefined ? margin + half + 8 : before.x + before.half + half + apart;
    for (const step of steps) {
      if (step.kind === 'note') continue;
      const [left, right] = [Math.min(step.from, step.to), Math.max(step.from, step.to)];
      const needed = widthOf(step.text, step.kind === 'refusal') + numberWidth + air;
      if (right === index && left < index) x = Math.max(x, columnAt(columns, left).x + needed);
      if (left === right && left === index - 1)
        x = Math.max(x, columnAt(columns, left).x + selfWidth + needed - air / 2);
    }
    columns.push({ x: Math.ceil(x), half });
  });
  return columns;
}

function rightEdge(step: Step, columns: readonly Column[]): number {
  if (step.kind === 'note') return noteSpan(step, columns).right;
  return step.from === step.to ? columnAt(columns, step.from).x + selfWidth + numberWidth + widthOf(step.text) + 8 : 0;
}

interface Drawn {
  readonly elements: readonly string[];
  readonly height: number;
}

function drawMessage(
  { kind, from, to, text: lines }: Message,
  columns: readonly Column[],
  y: number,
  number: number,
): Drawn {
  const [start, end] = [columnAt(columns, from).x, columnAt(columns, to).x];
  const className = kind === 'refusal' ? 'class="no"' : '';
  if (from === to) {
    const height = Math.max(lines.length * lineHeight, 22);
    const label = text(lines, start + selfWidth + 6 + numberWidth, y + 16, className);
    return {
      elements: [
        behind(lines, start + selfWidth + 4, y + 2),
        `<path class="${kind}" d="M${start} ${y + 6}h${selfWidth - 6}a6 6 0 0 1 6 6v${height - 14}a6 6 0 0 1-6 6h-${selfWidth - 16}"/>`,
        tip(kind, start + 2, y + height + 4, -1),
        numberAt(number, start + selfWidth + 6, y + 16),
        label,
      ],
      height: height + gap + 8,
    };
  }
  const direction = end > start ? 1 : -1;
  const left = Math.min(start, end);
  const line = y + lines.length * lineHeight + 5;
  return {
    elements: [
      behind(lines, left + 6, y + 1),
      numberAt(number, left + 10, y + 14),
      text(lines, left + 10 + numberWidth, y + 14, className),
      `<path class="${kind}" d="M${start} ${line}H${end - direction * 8}"/>`,
      tip(kind, end - direction, line, direction),
    ],
    height: line - y + gap,
  };
}

/** Covers the lifelines that a text crosses. */
const behind = (lines: readonly string[], x: number, y: number): string =>
  `<rect class="behind" x="${x}" y="${y}" width="${widthOf(lines) + numberWidth + 4}" height="${lines.length * lineHeight}"/>`;

const numberAt = (number: number, x: number, y: number): string =>
  `<text class="number" x="${x}" y="${y}">${number}</text>`;

/** The end of a line: an arrow, or a cross where something is refused. */
const tip = (kind: Message['kind'], x: number, y: number, direction: number): string =>
  kind === 'refusal'
    ? `<path class="refusal" d="M${x - direction * 8 - 5} ${y - 5}l10 10m0-10l-10 10"/>`
    : `<path class="tip" d="M${x} ${y}l${-direction * 10}-5v10z"/>`;

function noteSpan({ first, last, text: lines }: Note, columns: readonly Column[]): { left: number; right: number } {
  const [from, to] = [columnAt(columns, first), columnAt(columns, last)];
  const middle = (from.x + to.x) / 2;
  const half = Math.max(widthOf(lines) / 2 + 14, (to.x - from.x) / 2 + 20);
  const left = Math.max(margin, middle - half);
  return { left, right: left + half * 2 };
}

function drawNote(note: Note, columns: readonly Column[], y: number): Drawn {
  const { left, right } = noteSpan(note, columns);
  const height = note.text.length * lineHeight + 14;
  return {
    elements: [
      `<rect class="note" x="${left}" y="${y}" width="${right - left}" height="${height}" rx="4"/>`,
      text(note.text, (left + right) / 2, y + 20, 'text-anchor="middle"'),
    ],
    height: height + gap,
  };
}

function text(lines: readonly string[], x: number, y: number, attributes: string): string {
  const more = attributes === '' ? '' : ` ${attributes}`;
  const spans = lines.map((line, index) => `<tspan x="${x}" y="${y + index * lineHeight}">${escapeXml(line)}</tspan>`);
  return `<text${more}>${spans.join('')}</text>`;
}
