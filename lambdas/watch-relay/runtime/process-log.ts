import { pino } from 'pino';
import { printableFields } from './log.ts';
import type { Log } from './log.ts';

/** A write for each line would add half to the cost of logging it, and more for the reader of the log. */
const batchCharacters = 16_384;
/** The longest delay of a line. */
const waitMilliseconds = 200;
const errorLevel = 50;

/**
 * JSON lines on standard output, in batches. An error is written at once, with all lines before it. When the process
 * exits by itself, also after an uncaught exception, it writes the rest. A process that is killed (SIGKILL, out of memory, any
 * signal that index.ts does not handle) loses at most the lines of its last 200 ms.
 */
export function createProcessLog(level: string, descriptor = 1): Log {
  // Writes synchronously, waits for a slow reader, and discards lines after its reader is gone. Its own buffer is not used:
  // one flush writes only the first part of it, so a line could wait for two periods.
  const destination = pino.destination({ dest: descriptor, sync: true });
  let batch = '';
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (batch === '') return;
    const lines = batch;
    batch = '';
    destination.write(lines);
  };
  const stream = {
    // Makes pino set `lastLevel` before each line.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    write(line: string): void {
      batch += line;
      if (stream.lastLevel >= errorLevel || batch.length >= batchCharacters) flush();
      // The timer must not delay the exit, which writes the rest.
      else timer ??= setTimeout(flush, waitMilliseconds).unref();
    },
  };
  process.on('exit', flush);
  // `"level":"error"` as in the logs of the functions and in the documentation; pino's own levels are numbers.
  const formatters = { level: (label: string) => ({ level: label }), log: printableFields };
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters }, stream);
}
