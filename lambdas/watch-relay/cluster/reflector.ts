import { ThrottledError } from '../../../core/ports/errors.ts';
import type { ApiRefusal, JsonObject, RequestApi } from '../../../core/ports/kubernetes-api.ts';
import { resourceVersionOf } from '../objects/request-phase.ts';
import { fullJitter, sleep } from '../runtime/clock.ts';
import type { Backoff, Clock, Random } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';

/** As client-go: the server ends each watch after a while, spread so that not all clients return together. */
const watchSeconds = { least: 300, spread: 300 };
/** Bookmarks come about every minute. Nothing for this long: the connection is dead and nobody has told us. */
const silenceMilliseconds = 150_000;
/** So many silent watches in a row: not the connection, but a resourceVersion that lies in the server's future. */
const maxSilentWatches = 2;
/** A watch that ends sooner than this without an event did not really begin. client-go's "very short watch". */
const shortWatchMilliseconds = 1_000;
/** Small pages, since each is in memory as a whole while it is parsed. */
const pageLimit = 100;
const reconnect: Backoff = { baseMilliseconds: 800, capMilliseconds: 30_000 };

export interface ReflectorHandlers {
  /** `bytes` of its JSON, when known without counting. */
  seen(object: JsonObject, bytes?: number): void;
  deleted(object: JsonObject): void;
  /** A list is complete: all that existed has been seen. */
  synced(): void;
  /** Why a watch or list ended that did not reach its planned end; for logs and metrics. */
  restarted(why: RestartReason): void;
  unreadable(message: string): void;
  /** An object changed that was too large to be read. */
  oversized(bytes: number): void;
}

export type RestartReason = 'expired' | 'broken' | 'silent' | 'refused' | 'listFailed';

export interface ReflectorPorts {
  readonly api: RequestApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/**
 * Sees every request of one signer at least once in its newest state: a list, then a watch from there, for ever.
 * Keeps nothing but the resourceVersion. While a watch can go on from it there is no second list, and no polling.
 */
export async function reflect(
  signerName: string,
  handlers: ReflectorHandlers,
  ports: ReflectorPorts,
  signal: AbortSignal,
): Promise<void> {
  const { clock, random } = ports;
  /** Where to watch on from; unset when only a list can tell. */
  let from: string | undefined;
  let failures = 0;
  let silent = 0;
  while (!signal.aborted) {
    if (failures > 0) await sleep(clock, fullJitter(failures - 1, reconnect, random), signal);
    if (signal.aborted) return;
    if (from === undefined) {
      from = await listAll(signerName, handlers, ports, signal);
      if (signal.aborted) return;
      if (from === undefined) {
        handlers.restarted('listFailed');
        failures += 1;
        continue;
      }
      handlers.synced();
    }

    const watched = await watchFrom(signerName, from, handlers, ports, signal);
    if (signal.aborted) return;
    if (watched.end !== 'ended') handlers.restarted(watched.end);
    silent = watched.end === 'silent' && !watched.alive ? silent + 1 : 0;
    const lost = watched.end === 'expired' || silent >= maxSilentWatches;
    if (lost) silent = 0;
    from = lost ? undefined : watched.resourceVersion;
    // Back at once only after the server's own planned end; after anything else not all clients at the same moment.
    if (!watched.alive) failures += 1;
    else failures = watched.end === 'ended' ? 0 : 1;
  }
}

/** Pages through the list and forgets each object at once. Gives the resourceVersion, or nothing: begin again later. */
async function listAll(
  signerName: string,
  handlers: ReflectorHandlers,
  { api, log }: ReflectorPorts,
  signal: AbortSignal,
): Promise<string | undefined> {
  let limit = pageLimit;
  let token: string | undefined;
  try {
    for (;;) {
      const query = { signerName, limit, ...(token === undefined ? {} : { continue: token }) };
      const answer = await api.list(query, signal);
      if (!answer.ok) {
        // A node may fill a page with megabytes per request: smaller pages, down to one object, which etcd bounds.
        if (answer.why === 'TooLarge' && limit > 1) {
          limit = Math.max(1, Math.floor(limit / 8));
          continue;
        }
        // Expired: the token outlived etcd's history. The pages seen so far are not wrong, but the rest is a new list.
        log.warn({ signerName, why: answer.why, detail: answer.message }, 'list refused');
        return undefined;
      }
      for (const item of answer.value.items) handlers.seen(item);
      limit = Math.min(pageLimit, limit * 2);
      token = answer.value.continue;
      if (token === undefined) return answer.value.resourceVersion;
    }
  } catch (error) {
    if (!signal.aborted) log.warn({ signerName, detail: errorMessage(error) }, 'list failed');
    return undefined;
  }
}

interface Watched {
  readonly end: 'ended' | Exclude<RestartReason, 'listFailed'>;
  /** The newest state seen: events and bookmarks move it forward. */
  readonly resourceVersion: string;
  /** It worked for a while: what comes next is not a failure of the same kind. */
  readonly alive: boolean;
}

async function watchFrom(
  signerName: string,
  from: string,
  handlers: ReflectorHandlers,
  { api, clock, random, log }: ReflectorPorts,
  signal: AbortSignal,
): Promise<Watched> {
  let resourceVersion = from;
  let events = 0;
  const begun = clock.monotonic();
  const hearing = listenForSilence(clock);
  const ended = (end: Watched['end']): Watched => {
    const alive = events > 0 || (end !== 'silent' && clock.monotonic() - begun >= shortWatchMilliseconds);
    return { end, resourceVersion, alive };
  };
  const refused = (why: ApiRefusal | 'Unavailable', detail: string): Watched => {
    log.info({ signerName, why, detail }, 'watch ended by the server');
    // A resourceVersion it cannot read (another etcd, restored) is as good as expired.
    return ended(why === 'Expired' || why === 'Invalid' ? 'expired' : 'refused');
  };

  try {
    const timeoutSeconds = Math.round(watchSeconds.least + watchSeconds.spread * random());
    const watching = AbortSignal.any([signal, hearing.signal]);
    const answer = await api.watch({ signerName, resourceVersion, timeoutSeconds }, watching);
    if (!answer.ok) return refused(answer.why, answer.message);
    for await (const event of answer.value) {
      hearing.heard();
      switch (event.type) {
        case 'ADDED':
        case 'MODIFIED':
          handlers.seen(event.object, event.bytes);
          break;
        case 'DELETED':
          handlers.deleted(event.object);
          break;
        case 'BOOKMARK':
          break;
        case 'ERROR':
          return refused(event.why, event.message);
        case 'OVERSIZED':
          handlers.oversized(event.bytes);
          continue;
        case 'UNREADABLE':
          handlers.unreadable(event.message);
          continue;
      }
      events += 1;
      resourceVersion =
        (event.type === 'BOOKMARK' ? event.resourceVersion : resourceVersionOf(event.object)) ?? resourceVersion;
    }
    return ended('ended');
  } catch (error) {
    if (hearing.signal.aborted && !signal.aborted) return ended('silent');
    if (!signal.aborted) log.info({ signerName, detail: errorMessage(error) }, 'watch broken');
    return ended(error instanceof ThrottledError ? 'refused' : 'broken');
  } finally {
    hearing.stop();
  }
}

/** One timer at a time, however many events there are: it looks when it fires whether anything was heard meanwhile. */
function listenForSilence(clock: Clock): { signal: AbortSignal; heard: () => void; stop: () => void } {
  const controller = new AbortController();
  let last = clock.monotonic();
  let cancel = (): void => {};
  const wait = (milliseconds: number): void => {
    cancel = clock.after(milliseconds, () => {
      const left = last + silenceMilliseconds - clock.monotonic();
      if (left > 0) wait(left);
      else controller.abort(new Error('silent'));
    });
  };
  wait(silenceMilliseconds);
  return {
    signal: controller.signal,
    heard: () => {
      last = clock.monotonic();
    },
    stop: () => cancel(),
  };
}
