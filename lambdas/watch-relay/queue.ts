import type { Clock } from './clock.ts';

/** Which request: the UID says which, the name where to read it, the signer which metrics it counts in. */
export interface RequestKey {
  readonly uid: string;
  readonly name: string;
  readonly signerName: string;
}

interface Entry {
  readonly key: RequestKey;
  state: 'ready' | 'busy' | 'delayed' | 'gone';
  /** What came while a worker had it: seen again (the worker may have looked at an old state), or forgotten. */
  meanwhile: 'nothing' | 'seen' | 'forgotten';
  /** Tries that ended in a retry. */
  failures: number;
  cancelDelay?: () => void;
}

/**
 * The requests that wait for their certificate: keys only, each once, first come first served.
 * As client-go's workqueue, with one difference: seeing a key again does not cut its delay short, since what delays
 * it (a busy endpoint, a missing right) does not get better by a change of the object.
 */
export interface RequestQueue {
  add(key: RequestKey): void;
  /** The next one, now this worker's alone until `done` or `retry`. */
  take(): { readonly key: RequestKey; readonly failures: number } | undefined;
  done(key: RequestKey): void;
  retry(key: RequestKey, delayMilliseconds: number): void;
  /** Answered by somebody, or deleted. A worker that has it finishes, and it does not come back. */
  forget(uid: string): void;
  counts(): { readonly ready: number; readonly delayed: number };
  /** Nothing is ready ever after. */
  close(): void;
}

export function createRequestQueue(clock: Clock, onReady: () => void): RequestQueue {
  const entries = new Map<string, Entry>();
  /** In order of readiness from `head` on. May hold entries that have been forgotten meanwhile: `take` passes them. */
  let line: Entry[] = [];
  let head = 0;
  let ready = 0;
  let delayed = 0;
  let closed = false;

  function enqueue(entry: Entry): void {
    entry.state = 'ready';
    ready += 1;
    line.push(entry);
    onReady();
  }

  function leave(entry: Entry): void {
    if (entry.state === 'ready') ready -= 1;
    if (entry.state === 'delayed') delayed -= 1;
    entry.cancelDelay?.();
    entry.state = 'gone';
    entries.delete(entry.key.uid);
  }

  return {
    add(key) {
      if (closed) return;
      const known = entries.get(key.uid);
      if (known === undefined) {
        const entry: Entry = { key, state: 'ready', meanwhile: 'nothing', failures: 0 };
        entries.set(key.uid, entry);
        enqueue(entry);
      } else if (known.state === 'busy') known.meanwhile = 'seen';
    },

    take() {
      if (closed) return undefined;
      while (head < line.length) {
        const entry = line[head];
        head += 1;
        // Cut off what has been handed out, seldom enough that it costs nothing per key.
        if (head >= 1_024 && head * 2 >= line.length) {
          line = line.slice(head);
          head = 0;
        }
        if (entry?.state !== 'ready') continue;
        entry.state = 'busy';
        ready -= 1;
        return { key: entry.key, failures: entry.failures };
      }
      return undefined;
    },

    done({ uid }) {
      const entry = entries.get(uid);
      if (entry?.state !== 'busy') return;
      if (entry.meanwhile !== 'seen') return leave(entry);
      entry.meanwhile = 'nothing';
      entry.failures = 0;
      enqueue(entry);
    },

    retry({ uid }, delayMilliseconds) {
      const entry = entries.get(uid);
      if (entry?.state !== 'busy') return;
      if (entry.meanwhile === 'forgotten') return leave(entry);
      entry.meanwhile = 'nothing'; // the next try reads the object anew anyway
      entry.failures += 1;
      entry.state = 'delayed';
      delayed += 1;
      entry.cancelDelay = clock.after(delayMilliseconds, () => {
        delayed -= 1;
        enqueue(entry);
      });
    },

    forget(uid) {
      const entry = entries.get(uid);
      // A worker's entry stays until the worker is through: or the key, seen again, would get a second worker.
      if (entry?.state === 'busy') entry.meanwhile = 'forgotten';
      else if (entry !== undefined) leave(entry);
    },

    counts: () => ({ ready, delayed }),

    close() {
      closed = true;
      for (const entry of entries.values()) leave(entry);
      line = [];
    },
  };
}
