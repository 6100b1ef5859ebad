import { MisconfigurationError } from '../../core/ports/errors.ts';
import { signAnswer } from './answers.ts';
import type { HttpHandler } from './http.ts';
import { logEntry } from './log.ts';
import type { CallLogEntry } from './log.ts';

/** What serves instead when a function was not put together right: it answers nobody, and each call raises the alarm. */
export function refuseToServe(problems: readonly string[], log: (entry: CallLogEntry) => void): HttpHandler {
  const error = new MisconfigurationError(problems.join('; '));
  const answer = signAnswer({ kind: 'busy', why: 'Internal', retryAfterSeconds: 5 }, undefined);
  return async () => {
    log(logEntry(answer, 0, { why: 'Internal', error }));
    return answer;
  };
}
