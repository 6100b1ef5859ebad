/** The events of one watch between the API server that sends them and the client that iterates. */
import type { WatchEvent } from '../../../core/ports/kubernetes-api.ts';

export interface EventQueue {
  /** Ignored once the watch has ended. */
  push(event: WatchEvent): void;
  /** The client gets what was sent before, then the end, or the error. */
  end(error?: Error): void;
  /** Called once: when the watch ends, or when its client iterates no more. */
  whenEnded(run: () => void): void;
  readonly events: AsyncIterable<WatchEvent>;
}

export function createEventQueue(signal: AbortSignal): EventQueue {
  const waiting: WatchEvent[] = [];
  let ended: { readonly error?: Error } | undefined;
  let wake = (): void => {};
  let atEnd = (): void => {};

  function end(error?: Error): void {
    if (ended !== undefined) return;
    ended = error === undefined ? {} : { error };
    atEnd();
    wake();
  }
  signal.addEventListener('abort', () => end(signal.reason as Error), { once: true });

  async function* iterate(): AsyncGenerator<WatchEvent, void, undefined> {
    try {
      for (;;) {
        const event = waiting.shift();
        if (event !== undefined) yield event;
        else if (ended === undefined) await new Promise<void>((resolve) => (wake = resolve));
        else if (ended.error !== undefined) throw ended.error;
        else return;
      }
    } finally {
      end();
    }
  }

  return {
    push(event) {
      if (ended !== undefined) return;
      waiting.push(event);
      wake();
    },
    end,
    whenEnded: (run) => void (atEnd = run),
    events: iterate(),
  };
}
