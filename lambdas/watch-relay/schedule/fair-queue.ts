/**
 * Whose request is next. Everybody who asks has a line of his own, by signer, and the lines take turns: a thousand
 * requests of one token delay that token and nobody else. Nodes that are in the cluster already come first, since
 * theirs are certificates that expire; but never only they, so that one who floods as a node starves nobody. Within a
 * line what is begun is finished first: of a thousand nodes the first has its certificate at once, and not when the last
 * one is approved; but never only that either, since it may fail and come back for ever. What cannot be worked on now,
 * since whoever is asked for it bears no more, holds up nothing else.
 */

/** What the endpoint is asked for a request: to sign it, to look at its machine's proof, or to decide by rules alone. */
export type AskingStep = 'sign' | 'prove' | 'decide';
export const askingSteps: readonly AskingStep[] = ['sign', 'prove', 'decide'];
/** What is to be done next with a request. `refuse`: it is oversized, and the relay refuses it without asking. */
export type Step = AskingStep | 'refuse';
export const steps: readonly Step[] = [...askingSteps, 'refuse'];

/** One for each step. */
export function byStep<T>(make: () => T): Record<Step, T> {
  return { sign: make(), prove: make(), decide: make(), refuse: make() };
}

/** What a request's turn depends on: who asked, as the API server authenticated him. */
export interface Turn {
  readonly requester: string;
  readonly signerName: string;
  readonly line: Line;
  /** `sign`: it is begun, only its certificate is missing. Before others of its requester. */
  readonly step: Step;
  /** How many of its requester's places it takes while it is under way; 1 unless given. */
  readonly weight?: number;
}

/** `renewal`: of a node in the cluster. */
export type Line = 'renewal' | 'other';
export const lines: readonly Line[] = ['renewal', 'other'];

/** While others wait too, of so many turns one is theirs. */
export const renewalsInARow = 7;
/** And of a requester's own turns, while others of his wait. */
export const begunInARow = 7;

export interface Turns<T> {
  /** At the end of its line. */
  push(item: T, turn: Turn): Place<T>;
  /** Out of its line, wherever in it; nothing, if it is out already. */
  leave(place: Place<T>): void;
  /** The next one of those steps; its requester has one more under way until `over`. */
  next(of: readonly Step[]): T | undefined;
  /** Whether it is anybody's turn with that step. */
  ready(step: Step): boolean;
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
  readonly weight: number;
  /** Unset once it is out. */
  queue: Queue<T> | undefined;
  before: Place<T> | undefined;
  behind: Place<T> | undefined;
}

/** Who waits of one requester for one signer and step. First in, first out. */
interface Queue<T> {
  readonly signerName: string;
  readonly step: Step;
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
  /** How many of the last turns were for what is begun. */
  begun: number;
}

/**
 * `atOnce`: how many of one requester may be under way, so that a flood leaves room for whoever comes next. A heavy one
 * begins while there is any place left.
 */
export function createTurns<T>(atOnce: number): Turns<T> {
  /** By line, too: one name may be said to be in a group once and not another time. */
  const requesters: Readonly<Record<Line, Map<string, Requester<T>>>> = { renewal: new Map(), other: new Map() };
  /** Who may be served now, by line and step, in the order in which they are served next; and since when, in turns. */
  const eligible: Readonly<Record<Line, Readonly<Record<Step, Map<Requester<T>, number>>>>> = {
    renewal: byStep(() => new Map()),
    other: byStep(() => new Map()),
  };
  let renewals = 0;
  let places = 0;

  function settle(requester: Requester<T>): void {
    const free = requester.waiting > 0 && requester.underWay < atOnce;
    for (const step of steps) {
      const line = eligible[requester.line][step];
      if (!free || !waitsFor(step, requester)) line.delete(requester);
      // Who is in it keeps his place.
      else if (!line.has(requester)) line.set(requester, (places += 1));
    }
    if (requester.waiting === 0 && requester.underWay === 0) requesters[requester.line].delete(requester.name);
  }

  /** Of a line: who has waited longest for his turn with one of those steps. */
  function first(line: Line, of: readonly Step[]): Requester<T> | undefined {
    let longest: readonly [Requester<T>, number] | undefined;
    for (const step of of) {
      const [head] = eligible[line][step];
      if (head !== undefined && (longest === undefined || head[1] < longest[1])) longest = head;
    }
    return longest?.[0];
  }

  function choose(of: readonly Step[]): Requester<T> | undefined {
    const [renewal, other] = [first('renewal', of), first('other', of)];
    return renewal !== undefined && (renewals < renewalsInARow || other === undefined) ? renewal : other;
  }

  return {
    push(item, { requester: name, signerName, line, step, weight = 1 }) {
      let requester = requesters[line].get(name);
      if (requester === undefined) {
        requester = { name, line, queues: undefined, waiting: 0, underWay: 0, begun: 0 };
        requesters[line].set(name, requester);
      }
      let queue = requester.queues;
      while (queue !== undefined && (queue.signerName !== signerName || queue.step !== step)) queue = queue.next;
      if (queue === undefined) {
        queue = { signerName, step, requester, first: undefined, last: undefined, next: undefined };
        append(queue);
      }
      const place: Place<T> = { item, weight, queue, before: queue.last, behind: undefined };
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

    next(of) {
      const requester = choose(of);
      if (requester === undefined) return undefined;
      const { line } = requester;
      renewals = line === 'renewal' ? renewals + 1 : 0;
      const queue = nextOf(requester, of);
      const place = queue?.first;
      if (queue === undefined || place === undefined) throw new Error('somebody waits');
      // Behind the other signers, and the requester behind the others.
      remove(queue);
      append(queue);
      takeOut(place);
      requester.underWay += place.weight;
      requester.begun = queue.step === 'sign' ? requester.begun + 1 : 0;
      for (const step of steps) eligible[line][step].delete(requester);
      settle(requester);
      return place.item;
    },

    ready: (step) => lines.some((line) => eligible[line][step].size > 0),

    over({ line, requester: name, weight = 1 }) {
      const requester = requesters[line].get(name);
      if (requester === undefined) return;
      requester.underWay -= weight;
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

/** The first that is begun, and now and then, or else, the first that is not. */
function nextOf<T>({ queues, begun }: Requester<T>, of: readonly Step[]): Queue<T> | undefined {
  let sign: Queue<T> | undefined;
  let other: Queue<T> | undefined;
  for (let queue = queues; queue !== undefined; queue = queue.next) {
    if (!of.includes(queue.step)) continue;
    if (queue.step === 'sign') sign ??= queue;
    else other ??= queue;
  }
  return begun < begunInARow ? (sign ?? other) : (other ?? sign);
}

function waitsFor<T>(step: Step, { queues }: Requester<T>): boolean {
  let queue = queues;
  while (queue !== undefined && queue.step !== step) queue = queue.next;
  return queue !== undefined;
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
