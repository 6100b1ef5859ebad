/** What the mutants of mutants.test.ts are planted in. */
const limit = 7;
const digits = /^[0-9]+$/;

export function isSmall(value: unknown): boolean {
  if (typeof value !== 'number') return digits.test(String(value));
  if (value > limit) return false;
  // No case has a negative number.
  if (value < 0) return false;
  return true;
}
