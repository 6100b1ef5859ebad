/** Inputs changed at random: each must be refused by a known name, or be what its oracle expects. The same seed gives the same changes. */
import { isRefusalCode } from '../../../core/outcome/outcome.ts';
import type { Violation } from '../../../core/outcome/outcome.ts';
import { mulberry32 } from './mulberry32.ts';

/** A whole number from 0 to below the limit. */
export type Random = (below: number) => number;

export interface Attempt {
  /** Empty: accepted. */
  readonly violations: readonly Violation[];
  /** What must not happen. */
  readonly fault?: string;
}

export interface Campaign {
  readonly refused: number;
  readonly accepted: number;
  /** At most about ten. */
  readonly faults: readonly string[];
  /** Of all refusals, without numbers and what the messages quote. */
  readonly reasons: ReadonlySet<string>;
}

/** `attempt` makes one changed input and puts it to what is tested. A thrown error is a fault. */
export async function runCampaign(
  seed: number,
  count: number,
  attempt: (random: Random) => Promise<Attempt>,
): Promise<Campaign> {
  const next = mulberry32(seed);
  const random: Random = (below) => Math.floor(next() * below);
  const reasons = new Set<string>();
  const faults: string[] = [];
  let accepted = 0;
  let refused = 0;
  for (let number = 0; number < count && faults.length < 10; number += 1) {
    const place = `seed ${seed}, number ${number}`;
    try {
      const { violations, fault } = await attempt(random);
      if (violations.length === 0) accepted += 1;
      else refused += 1;
      if (fault !== undefined) faults.push(`${place}: ${fault}`);
      for (const { code, message } of violations) {
        if (!isRefusalCode(code) || message.length > 400) faults.push(`${place}: ${code} ${message}`);
        reasons.add(`${code}: ${message.replaceAll(/"[^"]*"|\d+/g, '…')}`);
      }
    } catch (error) {
      faults.push(`${place}: ${String(error)}`);
    }
  }
  return { refused, accepted, faults, reasons };
}

/** Flips, sets, inserts, removes, cuts or copies; mostly without a change of length, which a strict reader would notice first. */
export function nick(bytes: Buffer, random: Random): Buffer {
  const at = random(bytes.length);
  const copy = Buffer.from(bytes);
  switch (random(8)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return Buffer.concat([bytes.subarray(0, at), Buffer.of(random(256)), bytes.subarray(at)]);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]);
    case 3:
      // A piece of the bytes over another one.
      bytes.copy(copy, at, random(bytes.length), bytes.length);
      return copy;
    case 4:
    case 5:
      copy[at] = (copy[at] ?? 0) ^ (1 << random(8));
      return copy;
    default:
      copy[at] = random(256);
      return copy;
  }
}
