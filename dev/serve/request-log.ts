/** The log of the dev server. */
import { pino } from 'pino';
import type { CallLogEntry } from '../../adapters/lambda/log.ts';

export interface Output {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}
/** One line of text per request on a terminal, otherwise JSON on standard error. */
export function requestLog({ out, err }: Output): (entry: CallLogEntry) => void {
  if (process.stdout.isTTY) return (entry) => out(`${logLine(entry)}\n`);
  const formatters = { level: (label: string) => ({ level: label }) };
  const log = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters }, { write: err });
  return ({ level, ...entry }) => log[level](entry);
}

function logLine({
  outcome,
  status,
  uid,
  name,
  signerName,
  decision,
  identity,
  codes,
  why,
  path,
  error,
  durationMilliseconds,
}: CallLogEntry): string {
  const details = [
    name ?? path,
    signerName,
    uid,
    decision,
    identity,
    codes?.join(','),
    why,
    error === undefined ? undefined : JSON.stringify(error),
  ];
  const time = new Date().toTimeString().slice(0, 8);
  return [
    time,
    status,
    outcome.padEnd(7),
    ...details.filter((detail) => detail !== undefined),
    `${durationMilliseconds} ms`,
  ].join('  ');
}
