/** Whether an answer is one that a hostile request may get: said once for the corpus, the mutations and the long run. */
import { isRefusalCode } from '../../../../core/outcome/outcome.ts';
import type { Ending } from '../../../corpus/hostile/case.ts';
import type { FromWorker } from './messages.ts';
import type { Report } from './pool.ts';

/** A request's text goes into conditions, Events and logs; so much of it, and no more, is let through. */
const longestMessage = 16_384;
/** A request object is at most 1.5 MiB. */
const mostMegabytes = 200;

export interface Verdict {
  readonly ending: Ending | undefined;
  /** Empty when the answer is one of ours, complete and harmless. */
  readonly faults: readonly string[];
}

interface StatusBody {
  readonly message?: unknown;
  readonly details?: { readonly causes?: readonly { readonly reason?: unknown; readonly message?: unknown }[] };
  readonly error?: { readonly message?: unknown };
}

export function judge(report: Report): Verdict {
  switch (report.end) {
    case 'hung':
      return { ending: undefined, faults: [`HANG: no answer after ${report.afterMilliseconds} ms`] };
    case 'crashed':
      return { ending: undefined, faults: [`CRASH: ${report.how}`] };
    case 'answered':
      return judgeAnswer(report.answer);
  }
}

function judgeAnswer({ status, headers, body, grownMegabytes }: FromWorker): Verdict {
  const faults: string[] = [];
  const outcome = headers['x-countersign-outcome'];
  if (status >= 500) faults.push(`STATUS ${status}`);
  if (outcome === undefined) faults.push('no x-countersign-outcome header');
  if (grownMegabytes > mostMegabytes) faults.push(`MEMORY: grew by ${Math.round(grownMegabytes)} MB`);
  if (Object.values(headers).some((value) => !/^[ -~]*$/.test(value))) faults.push('a header with control characters');
  if (status === 200) return { ending: outcome === 'issued' ? 'issued' : 'answered', faults };

  const parsed = parse(body);
  if (parsed === undefined) return { ending: undefined, faults: [...faults, 'body is not JSON'] };
  const causes = parsed.details?.causes ?? [];
  const texts = [parsed.message, parsed.error?.message, ...causes.map(({ message }) => message)];
  faults.push(...texts.flatMap(faultsOfText));
  const expected = expectedOutcome[status];
  if (expected !== undefined && outcome !== expected) faults.push(`outcome ${outcome} with status ${status}`);
  if (expected !== 'refused') return { ending: endings[status], faults };

  const codes = causes.map(({ reason }) => reason);
  if (codes.length === 0) faults.push('a refusal without a code');
  faults.push(...codes.filter((code) => !isRefusalCode(code)).map((code) => `code ${String(code)} is not in the list`));
  const [first] = codes;
  return { ending: isRefusalCode(first) ? first : undefined, faults };
}

const expectedOutcome: Readonly<Record<number, string>> = {
  400: 'invalid',
  404: 'invalid',
  405: 'invalid',
  409: 'ignored',
  413: 'refused',
  415: 'invalid',
  422: 'refused',
};
const endings: Readonly<Record<number, Ending>> = {
  400: 'invalid',
  404: 'notFound',
  405: 'methodNotAllowed',
  409: 'ignored',
  415: 'invalid',
};

function parse(body: string): StatusBody | undefined {
  try {
    return JSON.parse(body) as StatusBody;
  } catch {
    return undefined;
  }
}

/** Controls, bidi and other format characters, line separators, halves of surrogate pairs. */
function faultsOfText(text: unknown): readonly string[] {
  if (typeof text !== 'string' || text === '') return ['a message is missing'];
  return [
    ...(text.length > longestMessage ? [`a message of ${text.length} characters`] : []),
    ...(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(text)
      ? ['a message with characters that are not plainly visible']
      : []),
  ];
}
