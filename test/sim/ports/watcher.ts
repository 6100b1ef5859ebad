/**
 * A watch on the simulated API server: it tells late, twice, and of different objects in another order; it breaks, ends
 * and falls silent. What the port promises stays true: every change comes, or the watch ends so that its client knows.
 */
import type { WatchEvent } from '../../../core/ports/kubernetes-api.ts';
import { bytesOf, short } from './stored.ts';
import type { Change } from '../../harness/kubernetes/request-server.ts';
import type { Process, Runtime } from '../runtime.ts';

export interface Watcher {
  push(change: Change): void;
  /** Its time is over, as was agreed. */
  expire(): void;
  listen(process: Process, signal: AbortSignal): AsyncIterable<WatchEvent>;
}

const bookmarkMilliseconds = 60_000;

export function createWatcher(runtime: Runtime, signerName: string, gone: () => void, newest: () => string): Watcher {
  const random = runtime.callRandom();
  /** Happened, and not told yet. */
  const waiting: Change[] = [];
  /** Told, and not read yet. */
  const told: WatchEvent[] = [];
  let ended: { readonly error?: Error } | undefined;
  let silent = false;
  let newestTold = 0;
  let wake = (): void => {};

  function tell({ version, type, object }: Change): void {
    newestTold = Math.max(newestTold, version);
    told.push({ type, object, bytes: bytesOf(object) });
    wake();
  }

  function deliver(): void {
    if (ended !== undefined || silent || waiting.length === 0) return;
    const troubled = runtime.troubled();
    if (troubled && random.chance(runtime.rates.watch)) return trouble();
    // Of different objects in any order, of one object as they happened.
    const at = troubled && random.chance(0.2) ? random.below(waiting.length) : 0;
    const name = waiting[at]?.object.metadata.name;
    if (at > 0 && waiting[0]?.object.metadata.name !== name) runtime.count('trouble: a watch tells in another order');
    const first = waiting.findIndex(({ object }) => object.metadata.name === name);
    const [change] = waiting.splice(first, 1);
    if (change === undefined) return;
    tell(change);
    if (!troubled || !random.chance(runtime.rates.duplicate)) return;
    runtime.count('trouble: a watch tells twice');
    // Again at once, or when the world has moved on.
    if (random.chance(0.5)) tell(change);
    else runtime.timeline.after(random.between(0, 5_000), () => void (ended === undefined && !silent && tell(change)));
  }

  function trouble(): void {
    // What was overtaken is told first: a client that goes on from its newest must have missed nothing before that.
    for (const change of waiting.splice(0).filter(({ version }) => version < newestTold)) tell(change);
    const how = random.chance(0.1)
      ? 'falls silent'
      : random.pick(['breaks', 'is told 410', 'is told of a failure', 'is ended']);
    runtime.count(`trouble: a watch ${how}`);
    runtime.tell(() => `watch of ${short(signerName)} ${how}`);
    if (how === 'falls silent') {
      silent = true;
      return;
    }
    if (how === 'is told 410') told.push({ type: 'ERROR', why: 'Expired', message: 'too old' });
    if (how === 'is told of a failure') told.push({ type: 'ERROR', why: 'Unavailable', message: 'etcd' });
    end(how === 'breaks' ? new Error('connection reset') : undefined);
  }

  function end(error?: Error): void {
    ended ??= error === undefined ? {} : { error };
    gone();
    wake();
  }

  function bookmark(): void {
    if (ended !== undefined || silent) return;
    // It says that all before it was told.
    if (waiting.length === 0) {
      told.push({ type: 'BOOKMARK', resourceVersion: newest() });
      wake();
    }
    runtime.timeline.after(bookmarkMilliseconds, bookmark);
  }
  runtime.timeline.after(bookmarkMilliseconds * random.next(), bookmark);

  return {
    push(change) {
      if (ended !== undefined || change.object.spec['signerName'] !== signerName) return;
      waiting.push(change);
      runtime.timeline.after(random.between(1, runtime.troubled() && random.chance(0.1) ? 3_000 : 40), deliver);
    },
    expire: () => void (silent || end()),
    listen(process, signal) {
      signal.addEventListener('abort', () => end(signal.reason as Error), { once: true });
      return {
        async *[Symbol.asyncIterator]() {
          for (;;) {
            const event = told.shift();
            if (event !== undefined) yield event;
            else if (ended?.error !== undefined) throw ended.error;
            else if (ended !== undefined) return;
            else await new Promise<void>((resolve) => (wake = () => process.wake(resolve)));
          }
        },
      };
    },
  };
}
