/** Which certificates a command reads: by the time at which they expire. */
import { InvalidArgumentError, Option } from 'commander';
import type { Instant } from '../../core/ports/instant.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

export const dayMilliseconds = 86_400_000;
/** Longer than the default maxTtl of a profile (30 days) and than the certificates of most clusters. */
const defaultRangeDays = 366;

export interface RangeFlags {
  readonly expiring?: number;
  readonly from?: Instant;
  readonly to?: Instant;
}

export interface Range {
  readonly from: Instant;
  readonly to: Instant;
}

export function addRange(command: CliCommand): CliCommand {
  return command
    .addOption(
      new Option('--expiring <duration>', 'those that expire from now until then, such as 30d or 12h')
        .argParser(durationMilliseconds)
        .conflicts(['from', 'to']),
    )
    .option('--from <time>', 'those that expire at or after this time, such as 2026-05-01 (default: now)', instant)
    .option(
      '--to <time>',
      `those that expire before this time (default: ${defaultRangeDays} days after --from)`,
      instant,
    );
}

export function rangeOf({ expiring, from, to }: RangeFlags, io: Io): Range {
  const start = from ?? io.now();
  const range = { from: start, to: to ?? start + (expiring ?? defaultRangeDays * dayMilliseconds) };
  if (range.to > range.from) return range;
  throw new CommandFailure(exitCodes.usage, '--to must be after --from, which is now unless it is given');
}

/** The records of the ca function's signatures that can belong to a signature in the range: they are written shortly before. */
export function signaturesIn({ from, to }: Range, now: Instant): Range {
  return { from: from - 300_000, to: Math.min(to, now) };
}

/** A day or a time with its zone (RFC 3339): a time without a zone would be that of the machine. */
export function instant(text: string): Instant {
  const known = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text);
  const time = known ? Date.parse(text) : NaN;
  if (Number.isNaN(time)) throw new InvalidArgumentError('It must look like 2026-05-01 or 2026-05-01T12:00:00Z.');
  return time;
}

const units: Readonly<Record<string, number>> = { d: dayMilliseconds, h: 3_600_000, m: 60_000, s: 1_000 };

export function durationMilliseconds(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([dhms])$/.exec(text) ?? [];
  const milliseconds = Number(count) * (units[unit] ?? 0);
  if (milliseconds === 0) throw new InvalidArgumentError('It must look like 30d, 12h or 90m.');
  return milliseconds;
}
