import { errorMessage } from '../../core/outcome/error-message.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import { signAnswer } from './answers.ts';
import type { HttpHandler } from './http.ts';
import { logEntry, writeLog } from './log.ts';

/**
 * Returns the handler that `connect` makes. If `connect` throws, it returns a handler that refuses every call and logs
 * the error that raises the alarm. An uncaught error would make Lambda start processes without a log line to filter on.
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
