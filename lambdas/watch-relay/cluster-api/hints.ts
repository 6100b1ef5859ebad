/**
 * Names of nodes whose Machine or Node is being deleted, told to attest, which then asks the platform about their machines. A hint
 * only makes attest look earlier than its schedule does, so a lost one does no harm, and none is repeated.
 */
import { errorMessage } from '../../../core/outcome/error-message.ts';
import { mostNodeNames } from '../../../core/ports/signing-endpoint.ts';
import type { LookEndpoint } from '../../../core/ports/signing-endpoint.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';

/** One call in this time. A scale-in of 1 000 nodes is told within two minutes; attest asks the platform about each name. */
const pauseMilliseconds = 2_000;
/** More names than this wait for the schedule of attest. */
const capacity = 1_000;

/**
 * RFC 1123, as the API server checks the names of Nodes. A Machine can name any text in its nodeRef, and attest refuses a call with one
 * wrong name.
 */
const nodeNamePattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

export type HintResult = 'sent' | 'failed' | 'dropped';

export interface HintPorts {
  readonly attest: LookEndpoint;
  readonly clock: Clock;
  readonly log: Log;
  readonly count: (result: HintResult, nodeNames: number) => void;
}

export interface Hints {
  add(nodeName: string): void;
  /** Sends nothing more. */
  close(): void;
}

export function createHints({ attest, clock, log, count }: HintPorts, signal: AbortSignal): Hints {
  const waiting = new Set<string>();
  let cancel: (() => void) | undefined;
  let closed = false;

  function schedule(): void {
    if (closed || cancel !== undefined || waiting.size === 0) return;
    // Names that come within the pause share a call, also the first ones.
    cancel = clock.after(pauseMilliseconds, () => void send());
  }

  async function send(): Promise<void> {
    const nodeNames = [...waiting].slice(0, mostNodeNames);
    for (const name of nodeNames) waiting.delete(name);
    const detail = await tell(nodeNames);
    if (detail === undefined) count('sent', nodeNames.length);
    else if (!signal.aborted) {
      count('failed', nodeNames.length);
      log.info({ nodeNames: nodeNames.length, detail }, 'hint not taken; attest looks on its schedule');
    }
    cancel = undefined;
    schedule();
  }

  /** Why it failed. */
  async function tell(nodeNames: readonly string[]): Promise<string | undefined> {
    try {
      const answer = await attest.look(nodeNames, signal);
      return answer.kind === 'accepted' ? undefined : answer.kind;
    } catch (error) {
      return errorMessage(error);
    }
  }

  return {
    add(nodeName) {
      if (closed || waiting.has(nodeName)) return;
      if (waiting.size >= capacity || nodeName.length > 253 || !nodeNamePattern.test(nodeName))
        return count('dropped', 1);
      waiting.add(nodeName);
      schedule();
    },
    close() {
      closed = true;
      cancel?.();
    },
  };
}
