import { errorMessage } from '../../core/outcome/error-message.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import { signAnswer } from './answers.ts';
import type { HttpHandler } from './http.ts';
import { logEntry, writeLog } from './log.ts';

/**
 * The handler that `connect` makes, once for each process. If `connect` throws, a handler that refuses every call and logs
 * what raises the alarm: after a thrown error Lambda would only start another process, with nothing in the log to filter on.
 */
export function serveOrRefuse<Handler>(connect: () => Handler): Handler | HttpHandler {
  try {
    return connect();
  } catch (thrown) {
    const error = new MisconfigurationError(errorMessage(thrown));
    const answer = signAnswer({ kind: 'busy', why: 'Internal', retryAfterSeconds: 5 }, undefined);
    return async () => {
      writeLog('info')(logEntry(answer, 0, { why: 'Internal', error }));
      return answer;
    };
  }
}
