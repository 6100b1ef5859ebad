/**
 * Reads a sequence diagram in a part of Mermaid's language (https://mermaid.js.org/syntax/sequenceDiagram.html), so that the
 * sources are in a known language, and any Mermaid viewer shows them too:
 *
 *   sequenceDiagram
 *     accTitle: TEXT                     accDescr: TEXT
 *     box transparent TITLE … end        around participants
 *     participant ID as LABEL
 *     A->>B: TEXT                        a call; -->> an answer; -x a refusal
 *     Note over A,B: TEXT                Note over A: TEXT
 *
 * `<br/>` breaks a line in labels, notes and texts.
 */
import { errorMessage } from '../../core/outcome/error-message.ts';

export interface Participant {
  readonly id: string;
  readonly label: readonly string[];
}

/** `call` is drawn solid, `answer` dashed, `refusal` red and with a cross. */
export type Message = {
  readonly kind: 'call' | 'answer' | 'refusal';
  readonly from: number;
  readonly to: number;
  readonly text: readonly string[];
};

/** `first` and `last` are indices of participants. */
export type Note = {
  readonly kind: 'note';
  readonly first: number;
  readonly last: number;
  readonly text: readonly string[];
};
export type Step = Message | Note;

export interface Sequence {
  readonly title: string;
  readonly description: string;
  readonly participants: readonly Participant[];
  readonly boxes: readonly { readonly title: string; readonly first: number; readonly last: number }[];
  readonly steps: readonly Step[];
}

const arrows: Readonly<Record<string, Message['kind']>> = { '->>': 'call', '-->>': 'answer', '-x': 'refusal' };

/** Throws an error that names the line: the sources are ours. */
export function readSequence(source: string): Sequence {
  const participants: Participant[] = [];
  const boxes: { title: string; first: number; last: number }[] = [];
  const steps: Step[] = [];
  let [title, description] = ['', ''];
  let open: { title: string; first: number } | undefined;
  const [heading, ...lines] = source.split('\n').map((line) => line.trim());
  if (heading !== 'sequenceDiagram') throw new Error('line 1: "sequenceDiagram" is missing');

  const indexOf = (id: string): number => {
    const index = participants.findIndex((participant) => participant.id === id);
    if (index === -1) throw new Error(`no participant ${id}`);
    return index;
  };
  const statements: readonly (readonly [RegExp, (...parts: string[]) => void])[] = [
    [/^$|^%%/, () => {}],
    [/^accTitle: (.+)$/, (text = '') => (title = text)],
    [/^accDescr: (.+)$/, (text = '') => (description = text)],
    [/^box transparent (.+)$/, (text = '') => (open = { title: text, first: participants.length })],
    [
      /^end$/,
      () => {
        if (open === undefined) throw new Error('no box is open');
        boxes.push({ ...open, last: participants.length - 1 });
        open = undefined;
      },
    ],
    [/^participant (\w+) as (.+)$/, (id = '', label = '') => participants.push({ id, label: linesOf(label) })],
    [
      /^Note over (\w+): (.+)$/,
      (id = '', text = '') => steps.push({ kind: 'note', first: indexOf(id), last: indexOf(id), text: linesOf(text) }),
    ],
    [
      /^Note over (\w+),(\w+): (.+)$/,
      (first = '', last = '', text = '') =>
        steps.push({ kind: 'note', first: indexOf(first), last: indexOf(last), text: linesOf(text) }),
    ],
    [
      /^(\w+?)(-->>|->>|-x)(\w+): (.+)$/,
      (from = '', arrow = '', to = '', text = '') =>
        steps.push({ kind: arrows[arrow] ?? 'call', from: indexOf(from), to: indexOf(to), text: linesOf(text) }),
    ],
  ];
  lines.forEach((line, index) => {
    try {
      for (const [pattern, obey] of statements) {
        const found = pattern.exec(line);
        if (found !== null) return obey(...found.slice(1));
      }
      throw new Error('not in the part of Mermaid that is read here');
    } catch (error) {
      throw new Error(`line ${index + 2}: ${errorMessage(error)}: ${line}`, { cause: error });
    }
  });
  if (title === '' || description === '') throw new Error('accTitle and accDescr are missing');
  return { title, description, participants, boxes, steps };
}

const linesOf = (text: string): string[] => text.split('<br/>');
