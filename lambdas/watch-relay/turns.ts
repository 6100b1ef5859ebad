/**
 * Whose request is next. Everybody who asks has a line of his own, by signer, and the lines take turns: a thousand
 * requests of one token delay that token and nobody else. Nodes that are in the cluster already come first, since
 * theirs are certificates that expire; but never only they, so that one who floods as a node starves nobody.
 */

/** What a request's turn depends on: who asked, as the API server authenticated him. */
export interface Turn {
  readonly requester: string;
  readonly signerName: string;
  readonly line: Line;
}

/** `renewal`: of a node in the cluster. */
export type Line = 'renewal' | 'other';
export const lines: readonly Line[] = ['renewal', 'other'];

/** While others wait too, of so many turns one is theirs. */
export const renewalsInARow = 7;

export interface Turns<T> {
  /** At the end of its line. The answer takes it out again. */
  push(item: T, turn: Turn): () => void;
  /** The next one; its requester has one more under way until `over`. */
  next(): T | undefined;
  over(turn: Turn): void;
  /** How many wait of that requester. */
  waiting(turn: Turn): number;
  /** The most that wait of any one. */
  longest(): number;
}

interface Waiting<T> {
  readonly item: T;
  out: boolean;
}

/** First in, first out. What was taken out stays until its turn would have come. */
interface Queue<T> {
  entries: Waiting<T>[];
  head: number;
}

interface Requester<T> {
  readonly line: Line;
  /** By signer, in the order in which they are served next. Only those where somebody waits, or did. */
  readonly queues: Map<string, Queue<T>>;
  waiting: number;
  underWay: number;
}

/** `atOnce`: how many of one requester may be under way, so that a flood leaves room for whoever comes next. */
export function createTurns<T>(atOnce: number): Turns<T> {
  const requesters = new Map<string, Requester<T>>();
  /** Who may be served now, by line, in the order in which they are served next. */
  const eligible: Readonly<Record<Line, Set<string>>> = { renewal: new Set(), other: new Set() };
  let renewals = 0;

  function settle(name: string, requester: Requester<T>): void {
    const ready = requester.waiting > 0 && requester.underWay < atOnce;
    const line = eligible[requester.line];
    // Who is in it keeps his place.
    if (!ready) line.delete(name);
    else line.add(name);
    if (requester.waiting === 0 && requester.underWay === 0) requesters.delete(name);
  }

  function choose(): Line | undefined {
    const { renewal, other } = eligible;
    if (renewal.size > 0 && (renewals < renewalsInARow || other.size === 0)) return 'renewal';
    return other.size > 0 ? 'other' : undefined;
  }

  return {
    push(item, turn) {
      const { signerName, line } = turn;
      const name = nameOf(turn);
      const requester: Requester<T> = requesters.get(name) ?? { line, queues: new Map(), waiting: 0, underWay: 0 };
      requesters.set(name, requester);
      const queue: Queue<T> = requester.queues.get(signerName) ?? { entries: [], head: 0 };
      requester.queues.set(signerName, queue);
      const entry: Waiting<T> = { item, out: false };
      queue.entries.push(entry);
      requester.waiting += 1;
      settle(name, requester);
      return () => {
        if (entry.out) return;
        entry.out = true;
        requester.waiting -= 1;
        settle(name, requester);
      };
    },

    next() {
      const line = choose();
      if (line === undefined) return undefined;
      renewals = line === 'renewal' ? renewals + 1 : 0;
      const [name = ''] = eligible[line];
      const requester = requesters.get(name);
      if (requester === undefined) throw new Error('whoever is eligible is known');
      const entry = shift(requester.queues);
      entry.out = true;
      requester.waiting -= 1;
      requester.underWay += 1;
      eligible[line].delete(name); // to the end
      settle(name, requester);
      return entry.item;
    },

    over(turn) {
      const name = nameOf(turn);
      const requester = requesters.get(name);
      if (requester === undefined) return;
      requester.underWay -= 1;
      settle(name, requester);
    },

    waiting: (turn) => requesters.get(nameOf(turn))?.waiting ?? 0,
    longest: () => [...requesters.values()].reduce((most, { waiting }) => Math.max(most, waiting), 0),
  };
}

/** By line, too: one name may be said to be in a group once and not another time. */
function nameOf({ line, requester }: Turn): string {
  return `${line} ${requester}`;
}

/** The first of the signer whose turn it is, which then goes behind the other signers. */
function shift<T>(queues: Map<string, Queue<T>>): Waiting<T> {
  for (const [signerName, queue] of queues) {
    queues.delete(signerName);
    for (let entry = take(queue); entry !== undefined; entry = take(queue)) {
      if (entry.out) continue;
      if (queue.head < queue.entries.length) queues.set(signerName, queue);
      return entry;
    }
  }
  throw new Error('somebody waits');
}

function take<T>(queue: Queue<T>): Waiting<T> | undefined {
  const entry = queue.entries[queue.head];
  if (entry === undefined) return undefined;
  queue.head += 1;
  // Cut off what has been handed out, seldom enough that it costs nothing per request.
  if (queue.head >= 1_024 && queue.head * 2 >= queue.entries.length) {
    queue.entries = queue.entries.slice(queue.head);
    queue.head = 0;
  }
  return entry;
}
