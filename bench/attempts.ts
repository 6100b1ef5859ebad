/** How a run goes on whatever becomes of its parts. */
import { quietShare } from './process-usage.ts';
import type { Missing } from './results.ts';

export interface Report {
  readonly leftOut: Missing[];
  readonly failed: Missing[];
  readonly say: (what: string) => void;
}

/** The rest is worth having whatever becomes of one. */
export async function attempted<T>(
  { failed, say }: Report,
  what: string,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    say(`${what} FAILED: ${why}`);
    failed.push({ what, why });
    return undefined;
  }
}

/** Chosen by what others did, never by what came out. */
export async function quietest<T extends { readonly othersShare: number } | undefined>(
  attempts: number,
  say: (what: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  let best = await work();
  for (let attempt = 1; attempt < attempts && best !== undefined && best.othersShare > quietShare; attempt++) {
    say('not quiet; again');
    const again = await work();
    if (again !== undefined && again.othersShare < best.othersShare) best = again;
  }
  return best;
}

/** Not a failure: this machine has no means for it. */
export function leaveOut({ leftOut, say }: Report, what: string, why: string): void {
  if (leftOut.some((known) => known.what === what && known.why === why)) return; // said at an earlier attempt
  say(`${what}: left out, ${why}`);
  leftOut.push({ what, why });
}
