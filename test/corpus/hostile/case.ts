/** What a hostile case is: a name, an input, and what may be answered. */
import type { RefusalCode } from '../../../core/outcome/outcome.ts';
import type { HttpEvent } from '../../../adapters/lambda/http.ts';

/** The end a case may come to: issued, or the code of the first violation, or the outcome that has no code. */
export type Ending = 'issued' | 'ignored' | 'invalid' | 'notFound' | 'methodNotAllowed' | 'answered' | RefusalCode;

export type HostileInput =
  /** Goes into an otherwise ordinary, approved object. */
  | { readonly request: Uint8Array; readonly signerName?: string; readonly usages?: readonly string[] }
  /** The whole HTTP event; not always of the right type. */
  | { readonly event: HttpEvent };

export interface HostileCase {
  readonly id: string;
  /** One of these, and for anything but `issued` the reason is in the answer. */
  readonly expected: readonly Ending[];
  /** Made when it is sent, since some are megabytes. */
  readonly input: () => HostileInput;
}

/** A case over the text of `spec.request`. */
export function requestCase(
  id: string,
  expected: Ending | readonly Ending[],
  request: () => Uint8Array | string,
): HostileCase {
  return {
    id,
    expected: typeof expected === 'string' ? [expected] : expected,
    input: () => ({ request: Buffer.from(request()) }),
  };
}
