/**
 * The result of decoding or validation: the value, or the problem. Decisions are unions with a `kind` instead; a temporary
 * failure is thrown.
 */
export type Result<T, Problem> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: Problem };

export function success<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function failure<Problem>(problem: Problem): { readonly ok: false; readonly problem: Problem } {
  return { ok: false, problem };
}
