/** Records what a step finds. */
import { errorMessage } from '../../core/outcome/error-message.ts';
import type { EmulatorLimits, Limit } from './emulator.ts';

export interface Finding {
  /** What must hold, or what was looked at. */
  readonly what: string;
  /** `seen`: an observation without a judgement. `notShown`: not shown by this run, for the reason in `why`. */
  readonly outcome: 'holds' | 'fails' | 'seen' | 'notShown';
  readonly detail: string;
  /** Why it is not shown; the same text for everything that has the same reason. */
  readonly why?: string;
}

export interface CheckRecorder {
  /**
   * Runs the check, which returns what it saw or throws what is wrong. `limit`: if the emulator has this limit, a failure is
   * `notShown`; if the emulator passes all the same, the check holds. A right that the login lacks is always a failure.
   */
  readonly check: (what: string, work: () => Promise<string>, limit?: Limit) => Promise<void>;
  readonly seen: (what: string, detail: string) => void;
  /** Nothing was tried. */
  readonly notShown: (what: string, why: string) => void;
}

export function recorder(
  limits: EmulatorLimits | undefined,
): CheckRecorder & { readonly findings: readonly Finding[] } {
  const findings: Finding[] = [];
  return {
    findings,
    async check(what, work, limit) {
      try {
        findings.push({ what, outcome: 'holds', detail: await work() });
      } catch (error) {
        if (error instanceof NotShown) {
          findings.push({ what, outcome: 'notShown', why: error.message, detail: error.message });
          return;
        }
        const why = limit === undefined || isRefusal(error) ? undefined : limits?.[limit];
        const detail = errorMessage(error).slice(0, 1_000);
        findings.push(
          why === undefined
            ? { what, outcome: 'fails', detail }
            : { what, outcome: 'notShown', why, detail: `${why} (${detail})` },
        );
      }
    },
    seen: (what, detail) => void findings.push({ what, outcome: 'seen', detail }),
    notShown: (what, why) => void findings.push({ what, outcome: 'notShown', why, detail: why }),
  };
}

/** Thrown by a check whose subject did not come in time: AWS promises no time for it. */
export class NotShown extends Error {
  override readonly name = 'NotShown';
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && /AccessDenied|NotAuthorized|UnauthorizedOperation/.test(error.name);
}

/** Resolves with the refusal's name if AWS refuses; throws if it does not, or if it refuses for another reason. */
export async function refusedBy(call: Promise<unknown>, pattern = /AccessDenied|NotAuthorized/): Promise<string> {
  const answer: unknown = await call.catch((error: unknown) => error);
  if (!(answer instanceof Error)) throw new Error('AWS permitted it');
  if (pattern.test(answer.name)) return answer.name;
  throw new Error(`${answer.name}: ${answer.message}`);
}
