/** How a case of a provider must end. */
import type { Violations } from '../../../core/outcome/outcome.ts';

/** A good end by its name, or a code and words of the one check that must have caught the case. */
export type Expected<Good extends string = 'accepted', Code extends string = RefusalOrLater> =
  Good | readonly [code: Code, check: string];

type RefusalOrLater = 'AttestationInvalid' | 'IdentityNotAllowed' | 'temporary';

/** The code and every message. */
export function refused(problem: Violations): string {
  return `${problem[0].code}: ${problem.map(({ message }) => message).join('; ')}`;
}

/** Whether a case ended as it says it must. */
export function hasEndedAs(expect: Expected<string, string>, outcome: string): boolean {
  if (typeof expect === 'string') return outcome === expect;
  const [code, check] = expect;
  return outcome.startsWith(`${code}: `) && outcome.includes(check);
}
