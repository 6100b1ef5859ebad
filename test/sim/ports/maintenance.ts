/** What starts a look at machines: the schedule of EventBridge, and hints over HTTP. Each can be lost, and tries no more than once. */
import { call } from '../call.ts';
import { startProcess } from '../runtime.ts';
import type { Runtime } from '../runtime.ts';
import type { Functions } from './functions.ts';

export interface Maintenance {
  /** A scheduled run. */
  readonly retire: () => void;
  /** A hint about the machines of these nodes. */
  readonly look: (nodeNames: readonly string[]) => void;
}

export function createMaintenance(runtime: Runtime, functions: Pick<Functions, 'retire'>): Maintenance {
  const start = (port: string, method: string, about: string, act: () => Promise<void>): void => {
    // The caller does not wait for the answer.
    call(runtime, startProcess(runtime, port), { port, method, about, act, told: () => 'done' }).catch(() => {});
  };
  return {
    retire: () => start('schedule', 'retire', '', () => functions.retire('scheduled')),
    look: (nodeNames) => start('http', 'look', nodeNames.join(', '), () => functions.retire({ nodeNames })),
  };
}
