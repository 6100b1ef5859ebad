import { ThrottledError } from '../../../core/ports/errors.ts';
import type { ApiRefusal, JsonObject, ListWatch } from '../../../core/ports/kubernetes-api.ts';
import { resourceVersionOf } from '../objects/request-phase.ts';
import { fullJitter, sleep } from '../runtime/clock.ts';
import type { Backoff, Clock, Random } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';

/** Like client-go: the server ends each watch after a random time, so that clients do not reconnect together. */
const watchSeconds = { least: 300, spread: 300 };
/** Bookmarks arrive about every minute. After this long without an event the connection is assumed dead. */
const silenceMilliseconds = 150_000;
/** After this many silent watches in a row the cause is the resourceVersion: the server has not reached it. */
const maxSilentWatches = 2;
/** A shorter watch without an event counts as a failure, like client-go's "very short watch". */
const shortWatchMilliseconds = 1_000;
/** Small, since a whole page is in memory while it is parsed. */
const pageLimit = 100;
const reconnect: Backoff = { baseMilliseconds: 800, capMilliseconds: 30_000 };

export interface ReflectorHandlers {
  /** A list begins. The objects that it does not have by `synced` exist no more. */
  listing?(): void;
  /** The API server answered a list, opened a watch, or sent an event or a bookmark. */
  heard?(): void;
  /** The API server refused a list. */
  listRefused?(why: ApiRefusal): void;
  /** `bytes`: the size of its JSON, if known. */
  seen(object: JsonObject, bytes?: number): void;
  deleted(object: JsonObject): void;
  /** A list is complete. */
  synced(): void;
  /** A watch or list ended before its planned end. */
  restarted(why: RestartReason): void;
  unreadable(message: string): void;
  /** An object that is too large to be read has changed. */
  oversized(bytes: number): void;
}

export type RestartReason = 'expired' | 'broken' | 'silent' | 'refused' | 'listFailed';

export interface ReflectorPorts {
  readonly source: ListWatch;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/**
 * Delivers the newest state of every object of `source` at least once: a list, then watches, until `signal`. It keeps
 * only the resourceVersion, and lists again only if a watch cannot continue from it. `subject`: fields of its log lines.
 */
export async function reflect(
  subject: Readonly<Record<string, string>>,
  handlers: ReflectorHandlers,
  ports: ReflectorPorts,
  signal: AbortSignal,
): Promise<void> {
  const { clock, random } = ports;
  /** Where the next watch starts; undefined if a list is needed. */
  let from: string | undefined;
  let failures = 0;
  let silentWatches = 0;
  while (!signal.aborted) {
    if (failures > 0) await sleep(clock, fullJitter(failures - 1, reconnect, random), signal);
    if (signal.aborted) return;
    if (from === undefined) {
      from = await listAll(subject, handlers, ports, signal);
      if (signal.aborted) return;
      if (from === undefined) {
        handlers.restarted('listFailed');
        failures += 1;
        continue;
      }
      handlers.synced();
    }

    const watched = await watchFrom(subject, from, handlers, ports, signal);
    if (signal.aborted) return;
    if (watched.end !== 'ended') handlers.restarted(watched.end);
    silentWatches = watched.end === 'silent' && !watched.alive ? silentWatches + 1 : 0;
    const relist = watched.end === 'expired' || silentWatches >= maxSilentWatches;
    if (relist) silentWatches = 0;
    from = relist ? undefined : watched.resourceVersion;
    // Only a watch that reached its planned end is restarted at once: after a failure all clients would reconnect together.
    if (!watched.alive) failures += 1;
    else failures = watched.end === 'ended' ? 0 : 1;
  }
}

/** Returns the list's resourceVersion; undefined if the list failed. Keeps no object. */
async function listAll(
  subject: Readonly<Record<string, string>>,
  handlers: ReflectorHandlers,
  { source, log }: ReflectorPorts,
  signal: AbortSignal,
): Promise<string | undefined> {
  let limit = pageLimit;
  let token: string | undefined;
  handlers.listing?.();
  try {
    for (;;) {
      const query = { limit, ...(token === undefined ? {} : { continue: token }) };
      const answer = await source.list(query, signal);
      if (!answer.ok) {
        // A node can create requests of megabytes each. So pages get smaller, down to one object, whose size etcd limits.
        if (answer.problem.why === 'TooLarge' && limit > 1) {
          limit = Math.max(1, Math.floor(limit / 8));
          continue;
        }
        // Expired: etcd has compacted the list's revision. The objects delivered so far are valid; the rest needs a new list.
        handlers.listRefused?.(answer.problem.why);
        log.warn({ ...subject, why: answer.problem.why, detail: answer.problem.message }, 'list refused');
        return undefined;
      }
      handlers.heard?.();
      for (const item of answer.value.items) handlers.seen(item);
      limit = Math.min(pageLimit, limit * 2);
      token = answer.value.continue;
      if (token === undefined) return answer.value.resourceVersion;
    }
  } catch (error) {
    if (!signal.aborted) log.warn({ ...subject, detail: errorMessage(error) }, 'list failed');
    return undefined;
  }
}

interface Watched {
  readonly end: 'ended' | Exclude<RestartReason, 'listFailed'>;
  /** The resourceVersion of the last event or bookmark. */
  readonly resourceVersion: string;
  /** The watch worked for a while, so the count of failures starts over. */
  readonly alive: boolean;
}

async function watchFrom(
  subject: Readonly<Record<string, string>>,
  from: string,
  handlers: ReflectorHandlers,
  { source, clock, random, log }: ReflectorPorts,
  signal: AbortSignal,
): Promise<Watched> {
  let resourceVersion = from;
  let events = 0;
  const begun = clock.monotonic();
  const watchdog = startWatchdog(clock);
  const ended = (end: Watched['end']): Watched => {
    const alive = events > 0 || (end !== 'silent' && clock.monotonic() - begun >= shortWatchMilliseconds);
    return { end, resourceVersion, alive };
  };
  const refused = (why: ApiRefusal | 'Unavailable', detail: string): Watched => {
    log.info({ ...subject, why, detail }, 'watch ended by the server');
    // A resourceVersion that is invalid for the server (a restored etcd) is treated as expired, and so is a resource that is not
    // served any more: the list asks in which version it is.
    return ended(why === 'Expired' || why === 'Invalid' || why === 'NotFound' ? 'expired' : 'refused');
  };

  try {
    const timeoutSeconds = Math.round(watchSeconds.least + watchSeconds.spread * random());
    const watching = AbortSignal.any([signal, watchdog.signal]);
    const answer = await source.watch({ resourceVersion, timeoutSeconds }, watching);
    if (!answer.ok) return refused(answer.problem.why, answer.problem.message);
    handlers.heard?.();
    for await (const event of answer.value) {
      watchdog.reset();
      handlers.heard?.();
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
    if (watchdog.signal.aborted && !signal.aborted) return ended('silent');
    if (!signal.aborted) log.info({ ...subject, detail: errorMessage(error) }, 'watch broken');
    return ended(error instanceof ThrottledError ? 'refused' : 'broken');
  } finally {
    watchdog.stop();
  }
}

/** Aborts `signal` if `reset` is not called for `silenceMilliseconds`. One timer serves any number of events. */
function startWatchdog(clock: Clock): { signal: AbortSignal; reset: () => void; stop: () => void } {
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
    reset: () => {
      last = clock.monotonic();
    },
    stop: () => cancel(),
  };
}
