/** Reports the parts of a run that fail, so that the others are still measured. */
import type { Missing } from './results.ts';
import { errorMessage } from '../core/outcome/error-message.ts';

export interface Report {
  readonly leftOut: Missing[];
  readonly failed: Missing[];
  readonly say: (what: string) => void;
}

export async function tryAndReport<T>(
  { failed, say }: Report,
  what: string,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    const why = errorMessage(error);
    say(`${what} FAILED: ${why}`);
    failed.push({ what, why });
    return undefined;
  }
}

/** Reports what is not measured because this machine lacks what it needs. */
export function leaveOut({ leftOut, say }: Report, what: string, why: string): void {
  if (leftOut.some((known) => known.what === what && known.why === why)) return; // reported before
  say(`${what}: left out, ${why}`);
  leftOut.push({ what, why });
}
