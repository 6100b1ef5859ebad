/** `--probe`: asks running relays whether they are healthy and ready, as the test of the Helm chart does. It needs no login. */
import { request } from 'node:http';
import { isIPv6 } from 'node:net';
import { exchange, wholeAnswer } from '../../../adapters/http/exchange.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';
import { escapeHidden } from '../../../core/outcome/printable-text.ts';
import { sleep } from '../runtime/clock.ts';
import type { Clock } from '../runtime/clock.ts';
import type { ListenAddress } from '../settings/flag-values.ts';

export interface ProbeOptions {
  readonly target: Required<ListenAddress>;
  /** A relay that has just started is not ready yet. */
  readonly patienceMilliseconds: number;
  /** All addresses of a host name; a headless Service has one for each replica. */
  readonly lookup: (host: string) => Promise<readonly string[]>;
  readonly clock: Clock;
  /** One line for each relay, with the reasons of one that is not ready. */
  readonly print: (line: string) => void;
}

const answerMilliseconds = 5_000;
const readAnswer = wholeAnswer(65_536);
const never = new AbortController().signal;

/** Whether every relay there became healthy and ready in time. */
export async function probeRelays(options: ProbeOptions): Promise<boolean> {
  const { target, patienceMilliseconds, clock, print } = options;
  const giveUp = clock.monotonic() + patienceMilliseconds;
  for (;;) {
    const states = await statesOf(options);
    const good = states.every(({ problem }) => problem === undefined);
    if (good || clock.monotonic() >= giveUp) {
      for (const { place, problem } of states) print(`${place}: ${escapeHidden(problem ?? 'healthy and ready')}`);
      if (!good)
        print(`not every relay at ${target.host}:${target.port} became ready in ${patienceMilliseconds / 1_000} s`);
      return good;
    }
    await sleep(clock, 1_000, never);
  }
}

interface State {
  readonly place: string;
  readonly problem: string | undefined;
}

async function statesOf({ target: { host, port }, lookup }: ProbeOptions): Promise<readonly State[]> {
  let addresses: readonly string[];
  try {
    addresses = await lookup(host);
  } catch (error) {
    return [{ place: host, problem: `the name has no address: ${errorMessage(error)}` }];
  }
  return Promise.all(
    addresses.map(async (address) => ({
      place: `${isIPv6(address) ? `[${address}]` : address}:${port}`,
      problem: (await problemAt(address, port, '/healthz')) ?? (await problemAt(address, port, '/readyz')),
    })),
  );
}

async function problemAt(address: string, port: number, path: string): Promise<string | undefined> {
  try {
    const { status, body } = await exchange({
      timeoutMilliseconds: answerMilliseconds,
      send: () => request({ host: address, port, path, agent: false }).end(),
      read: readAnswer,
    });
    return status === 200 ? undefined : `${path} is ${status}: ${body.toString('utf8').trim().split('\n').join('; ')}`;
  } catch (error) {
    return `${path}: ${errorMessage(error)}`;
  }
}
