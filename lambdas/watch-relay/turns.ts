/**
 * Whose request is next. Everybody who asks has a line of his own, by signer, and the lines take turns: a thousand
 * requests of one token delay that token and nobody else. Nodes that are in the cluster already come first, since
 * theirs are certificates that expire; but never only they, so that one who floods as a node starves nobody. Within a
 * line what is begun is finished first: of a thousand nodes the first has its certificate at once, and not when the last
 * one is approved.
 */

/** What a request's turn depends on: who asked, as the API server authenticated him. */
export interface Turn {
  readonly requester: string;
  readonly signerName: string;
  readonly line: Line;
  /** Approved: only its certificate is missing. Before all others of its requester. */
  readonly begun: boolean;
}

/** `renewal`: of a node in the cluster. */
export type Line = 'renewal' | 'other';
export const lines: readonly Line[] = ['renewal', 'other'];

/** While others wait too, of so many turns one is theirs. */
export const renewalsInARow = 7;

export interface Turns<T> {
  /** At the end of its line. */
  push(item: T, turn: Turn): Place<T>;
  /** Out of its line, wherever in it; nothing, if it is out already. */
  leave(place: Place<T>): void;
  /** The next one; its requester has one more under way until `over`. */
  next(): T | undefined;
  over(turn: Turn): void;
  /** How many wait of that requester. */
  waiting(turn: Turn): number;
  /** The most that wait of any one. */
  longest(): number;
}

/*
 * Fifty thousand may wait, each of a requester of its own: links rather than lists with room to grow, and no function
 * for each.
 */

export interface Place<T> {
  readonly item: T;
  /** Unset once it is out. */
  queue: Queue<T> | undefined;
  before: Place<T> | undefined;
  behind: Place<T> | undefined;
}

/** Who waits of one requester for one signer, begun or not. First in, first out. */
interface Queue<T> {
  readonly signerName: string;
  readonly begun: boolean;
  readonly requester: Requester<T>;
  first: Place<T> | undefined;
  last: Place<T> | undefined;
  /** The same requester's that is served after this one. */
  next: Queue<T> | undefined;
}

interface Requester<T> {
  readonly name: string;
  readonly line: Line;
  /** Those where somebody waits, in the order in which they are served next; only a few. */
  queues: Queue<T> | undefined;
  waiting: number;
  underWay: number;
}

/** `atOnce`: how many of one requester may be under way, so that a flood leaves room for whoever comes next. */
export function createTurns<T>(atOnce: number): Turns<T> {
  /** By line, too: one name may be said to be in a group once and not another time. */
  const requesters: Readonly<Record<Line, Map<string, Requester<T>>>> = { renewal: new Map(), other: new Map() };
  /** Who may be served now, by line, in the order in which they are served next. */
  const eligible: Readonly<Record<Line, Set<Requester<T>>>> = { renewal: new Set(), other: new Set() };
  let renewals = 0;

  function settle(requester: Requester<T>): void {
    const ready = requester.waiting > 0 && requester.underWay < atOnce;
    const line = eligible[requester.line];
    // Who is in it keeps his place.
    if (!ready) line.delete(requester);
    else line.add(requester);
    if (requester.waiting === 0 && requester.underWay === 0) requesters[requester.line].delete(requester.name);
  }

  function choose(): Line | undefined {
    const { renewal, other } = eligible;
    if (renewal.size > 0 && (renewals < renewalsInARow || other.size === 0)) return 'renewal';
    return other.size > 0 ? 'other' : undefined;
  }

  return {
    push(item, { requester: name, signerName, line, begun }) {
      let requester = requesters[line].get(name);
      if (requester === undefined) {
        requester = { name, line, queues: undefined, waiting: 0, underWay: 0 };
        requesters[line].set(name, requester);
      }
      let queue = requester.queues;
      while (queue !== undefined && (queue.signerName !== signerName || queue.begun !== begun)) queue = queue.next;
      if (queue === undefined) {
        queue = { signerName, begun, requester, first: undefined, last: undefined, next: undefined };
        append(queue);
      }
      const place: Place<T> = { item, queue, before: queue.last, behind: undefined };
      if (queue.last === undefined) queue.first = place;
      else queue.last.behind = place;
      queue.last = place;
      requester.waiting += 1;
      settle(requester);
      return place;
    },

    leave(place) {
      const requester = place.queue?.requester;
      if (requester === undefined) return;
      takeOut(place);
      settle(requester);
    },

    next() {
      const line = choose();
      if (line === undefined) return undefined;
      renewals = line === 'renewal' ? renewals + 1 : 0;
      const [requester] = eligible[line];
      const queue = nextOf(requester?.queues);
      const place = queue?.first;
      if (requester === undefined || queue === undefined || place === undefined) throw new Error('somebody waits');
      // Behind the other signers, and the requester behind the others.
      remove(queue);
      append(queue);
      takeOut(place);
      requester.underWay += 1;
      eligible[line].delete(requester);
      settle(requester);
      return place.item;
    },

    over({ line, requester: name }) {
      const requester = requesters[line].get(name);
      if (requester === undefined) return;
      requester.underWay -= 1;
      settle(requester);
    },

    waiting: ({ line, requester }) => requesters[line].get(requester)?.waiting ?? 0,

    longest() {
      let most = 0;
      for (const line of lines) for (const { waiting } of requesters[line].values()) most = Math.max(most, waiting);
      return most;
    },
  };
}

/** The first with something begun, or else the first. */
function nextOf<T>(queues: Queue<T> | undefined): Queue<T> | undefined {
  let queue = queues;
  while (queue !== undefined && !queue.begun) queue = queue.next;
  return queue ?? queues;
}

/** A queue that is left empty goes, too: whoever comes to it next is behind the other signers. */
function takeOut<T>(place: Place<T>): void {
  const { queue, before, behind } = place;
  if (queue === undefined) return;
  place.queue = undefined;
  place.before = undefined;
  place.behind = undefined;
  if (before === undefined) queue.first = behind;
  else before.behind = behind;
  if (behind === undefined) queue.last = before;
  else behind.before = before;
  const { requester } = queue;
  requester.waiting -= 1;
  if (queue.first === undefined) remove(queue);
}

function append<T>(queue: Queue<T>): void {
  const { requester } = queue;
  queue.next = undefined;
  let last = requester.queues;
  while (last?.next !== undefined) last = last.next;
  if (last === undefined) requester.queues = queue;
  else last.next = queue;
}

function remove<T>(queue: Queue<T>): void {
  const { requester } = queue;
  if (requester.queues === queue) {
    requester.queues = queue.next;
    return;
  }
  let before = requester.queues;
  while (before !== undefined && before.next !== queue) before = before.next;
  if (before !== undefined) before.next = queue.next;
}
