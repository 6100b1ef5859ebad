/** Clocks that differ: AWS refuses signatures of more than five minutes' difference, and evidence and tokens are judged by their times. */
import type { CheckRow } from '../output/check-rows.ts';

/** A login of a relay is accepted with 30 seconds of leeway (docs/signing-api.md). */
const mostSeconds = 30;

/** `theirs`: the time of a clock that was read between `before` and `after`, in whole seconds. */
export function clockRow(whose: string, theirs: number, before: number, after: number): CheckRow {
  const row = { id: 'clock', check: `the clock here is that of ${whose}, within ${mostSeconds} s` } as const;
  // It was cut to whole seconds, and read at an unknown moment of the call.
  const ahead = Math.max(0, before - (theirs + 999));
  const behind = Math.max(0, theirs - after);
  const seconds = Math.round((ahead > 0 ? ahead : behind) / 1_000);
  if (seconds === 0) return { ...row, result: 'pass', seen: 'the same' };
  const seen = `${seconds} s ${ahead > 0 ? 'ahead' : 'behind'}`;
  if (seconds <= mostSeconds) return { ...row, result: 'pass', seen };
  return { ...row, result: 'fail', seen, mend: 'set one of the two by NTP: timedatectl status' };
}
