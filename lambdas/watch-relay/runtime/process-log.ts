import { pino } from 'pino';
import { printableFields } from './log.ts';
import type { Log } from './log.ts';

/** A write for each line costs half as much again as making the line, and more of whoever reads them. */
const batchCharacters = 16_384;
/** No line waits longer, however few there are: whoever follows the log sees what happens now. */
const waitMilliseconds = 200;
const errorLevel = 50;

/**
 * JSON lines on standard output, a few at a time. Errors are written at once, with all that waited. On any exit of our
 * own, an uncaught exception's too, the rest is written; a process that is killed (SIGKILL, SIGQUIT, out of memory; any
 * signal that index.ts does not wait for) loses the lines of its last 200 ms at most.
 */
export function createProcessLog(level: string, descriptor = 1): Log {
  // Writes at once whatever it is given, waits for a reader who is slow, and does without one who has gone.
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
    // With this pino tells the level of the line that it is about to write.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    write(line: string): void {
      batch += line;
      if (stream.lastLevel >= errorLevel || batch.length >= batchCharacters) flush();
      // It must not keep a stopped relay around: the exit writes the rest.
      else timer ??= setTimeout(flush, waitMilliseconds).unref();
    },
  };
  process.on('exit', flush);
  // `"level":"error"`, as the functions write it and as every page of the documentation says; pino's own are numbers.
  const formatters = { level: (label: string) => ({ level: label }), log: printableFields };
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters }, stream);
}
