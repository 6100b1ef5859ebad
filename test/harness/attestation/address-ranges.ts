/** Address ranges as the configuration resolves them, for settings that a test writes by hand. */
import { parseRange } from '../../../core/policy/patterns.ts';
import type { AddressRange } from '../../../core/policy/patterns.ts';

export function ranges(...texts: readonly string[]): readonly AddressRange[] {
  return texts.map((text) => {
    const range = parseRange(text);
    if (range === undefined) throw new Error(`${text} is no address and no block of addresses`);
    return range;
  });
}
