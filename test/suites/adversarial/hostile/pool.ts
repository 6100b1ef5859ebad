/**
 * Puts cases to workers one at a time each, so that whatever goes wrong has a name. A worker that hangs or dies is
 * replaced and the run goes on.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import type { FromWorker, StartWorker, ToWorker } from './messages.ts';

/** How a case ended, whatever the answer says. */
export type Report =
  | { readonly end: 'answered'; readonly answer: FromWorker }
  | { readonly end: 'hung'; readonly afterMilliseconds: number }
  | { readonly end: 'crashed'; readonly how: string };

export interface Job<T> {
  readonly about: T;
  /** Made when it is sent; cases may be megabytes. */
  readonly message: () => ToWorker;
}

export interface Pool {
  /** PEM of the CA whose certificates the workers issue. */
  readonly caCertificate: string;
  /** Every job once, reported in the order in which they end. */
  run<T>(jobs: Iterable<Job<T>>, report: (about: T, result: Report, sent: ToWorker) => void): Promise<void>;
  restarts(): number;
  close(): Promise<void>;
}

export interface PoolOptions {
  readonly workers?: number;
  /** A thousand times what a case takes: on a machine that is busy with something else, too, only a hang takes so long. */
  readonly watchdogMilliseconds?: number;
  readonly heapMegabytes?: number;
}

interface Worker {
  readonly child: ChildProcess;
  readonly lastWords: () => string;
}

export async function openPool({
  workers = 2,
  watchdogMilliseconds = 30_000,
  heapMegabytes = 64,
}: PoolOptions = {}): Promise<Pool> {
  const authority = await createTestAuthority('hostile input');
  const start: StartWorker = { caCertificate: authority.certificatePem, caKey: authority.keyPem };
  let restarts = 0;
  const lanes = await Promise.all(Array.from({ length: workers }, () => startWorker(start, heapMegabytes)));

  async function ask(lane: number, message: ToWorker): Promise<Report> {
    const worker = lanes[lane];
    if (worker === undefined) throw new Error('the pool is closed');
    const result = await oneAnswer(worker, message, watchdogMilliseconds);
    if (result.end !== 'answered') {
      restarts++;
      await stop(worker.child);
      lanes[lane] = await startWorker(start, heapMegabytes);
    }
    return result;
  }

  return {
    caCertificate: authority.certificatePem,
    async run(jobs, report) {
      const queue = jobs[Symbol.iterator]();
      await Promise.all(
        lanes.map(async (_, lane) => {
          for (let next = queue.next(); next.done !== true; next = queue.next()) {
            const { about, message } = next.value;
            const sent = message();
            report(about, await ask(lane, sent), sent);
          }
        }),
      );
    },
    restarts: () => restarts,
    async close() {
      await Promise.all(lanes.splice(0).map(({ child }) => stop(child)));
    },
  };
}

async function startWorker(start: StartWorker, heapMegabytes: number): Promise<Worker> {
  const child = fork(join(import.meta.dirname, 'worker.ts'), {
    execArgv: [`--max-old-space-size=${heapMegabytes}`],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: {},
  });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-8_000);
  });
  // Of V8's and Node's last pages the lines that say what happened, not where.
  const lastWords = () =>
    stderr
      .split('\n')
      .filter((line) => line.trim() !== '' && !/^ *(at |\d+: 0x|---|\[\d+:0x)/.test(line))
      .slice(-6)
      .join(' | ')
      .slice(-1_000);
  const died = once(child, 'exit').then(() => {
    throw new Error(`a worker did not start: ${lastWords()}`);
  });
  // Afterwards a death is a report, not an error.
  died.catch(() => {});
  child.send(start);
  await Promise.race([once(child, 'message'), died]);
  return { child, lastWords };
}

function oneAnswer({ child, lastWords }: Worker, message: ToWorker, limit: number): Promise<Report> {
  return new Promise((resolve) => {
    const finish = (report: Report): void => {
      clearTimeout(watchdog);
      child.off('message', onMessage);
      child.off('exit', onExit);
      resolve(report);
    };
    const onMessage = (answer: FromWorker): void => finish({ end: 'answered', answer });
    const onExit = (code: number | null, signal: string | null): void => {
      // Its last words may still be in the pipe.
      void turn().then(() => finish({ end: 'crashed', how: `${signal ?? `exit code ${code}`}: ${lastWords()}` }));
    };
    const watchdog = setTimeout(() => {
      // An answer that lay waiting while this process itself was busy is not late.
      void turn()
        .then(() => turn())
        .then(() => finish({ end: 'hung', afterMilliseconds: limit }));
    }, limit);
    child.on('message', onMessage);
    child.on('exit', onExit);
    child.send(message, (error) => {
      // Gone before it was sent to: `exit` tells, unless it has told already.
      if (error !== null && child.exitCode !== null) onExit(child.exitCode, child.signalCode);
    });
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
