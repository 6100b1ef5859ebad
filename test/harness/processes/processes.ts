import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** A server under test: started by us, stopped by its process id, its output kept in a file. */
export interface RunningProcess {
  readonly name: string;
  readonly pid: number;
  readonly logPath: string;
  /** How it ended, or undefined while it runs. */
  ended(): string | undefined;
  logTail(lines?: number): string;
  /** Resolves when the process is gone. Asks first; insists after five seconds, or when it was told to. */
  stop(signal?: 'SIGTERM' | 'SIGKILL', insistAfterMs?: number): Promise<void>;
}

const STOP_GRACE_MS = 5_000;
/** For tests of how a process ends when it is asked to: a busy machine is no reason to kill it. */
export const patientStopMs = 60_000;

export function startProcess(options: {
  name: string;
  command: string;
  args: readonly string[];
  logPath: string;
  env?: NodeJS.ProcessEnv;
}): RunningProcess {
  const { name, command, args, logPath } = options;
  // A file and not a pipe: the server goes on without a reader, and the file outlives a crash of the test.
  const log = openSync(logPath, 'a');
  const child = spawn(command, args, { stdio: ['ignore', log, log], env: options.env ?? process.env });
  closeSync(log);
  const { pid } = child;
  if (pid === undefined) {
    child.on('error', () => {}); // the same failure again, as an event that is not needed
    throw new Error(`${name}: cannot start ${command}`);
  }
  guard(`+pid ${pid}`);
  let ended: string | undefined;
  const exited = new Promise<void>((resolve) => {
    child.on('exit', (code, signal) => {
      guard(`-pid ${pid}`);
      ended = signal === null ? `exit code ${code}` : signal;
      resolve();
    });
  });
  child.unref(); // a forgotten server must not keep the test run alive; the guard ends it

  return {
    name,
    pid,
    logPath,
    ended: () => ended,
    logTail: (lines = 25) => readFileSync(logPath, 'utf8').trimEnd().split('\n').slice(-lines).join('\n'),
    async stop(signal = 'SIGTERM', insistAfterMs = STOP_GRACE_MS) {
      if (ended !== undefined) return;
      child.ref();
      child.kill(signal);
      const insist = setTimeout(() => child.kill('SIGKILL'), insistAfterMs);
      await exited;
      clearTimeout(insist);
    },
  };
}

/** The compile cache of this test run (test/run-vitest.ts), for a Node process that gets no other variable of this process. */
export function compileCache(): Readonly<Record<string, string>> {
  const folder = process.env['NODE_COMPILE_CACHE'];
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}

/** Waits for `probe` to say yes. A process that dies, or is not ready in time, is an error that shows the log's end. */
export async function waitUntilReady(
  server: RunningProcess,
  probe: () => Promise<boolean> | boolean,
  timeoutMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const ended = server.ended();
    if (ended !== undefined) throw new Error(`${server.name} ended (${ended}):\n${server.logTail()}`);
    try {
      if (await probe()) return;
    } catch {
      // not listening yet
    }
    if (performance.now() > deadline) {
      throw new Error(`${server.name} was not ready after ${timeoutMs / 1000} s:\n${server.logTail()}`);
    }
    await sleep(50);
  }
}

/** Whether it failed because another process took the port between our look and its bind. */
export function lostPortRace(server: RunningProcess): boolean {
  return server.ended() !== undefined && /address already in use/i.test(server.logTail(200));
}

/**
 * A port without a listener now. For servers that cannot choose one themselves and must keep it over a restart: taken
 * from below the range the kernel gives to outgoing connections, so that none of these grabs it in between.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const free = await new Promise<boolean>((resolve) => {
      const server = createServer();
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

/** For a start whose error shows the server's log: once more elsewhere when another process was faster. */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (attempt === 5 || !/address already in use/i.test(String(error))) throw error;
    }
  }
}

/** A folder of our own under the system's temporary one; removed by `remove`, or by the guard if we never get there. */
export function temporaryFolder(purpose: string): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), `countersign-${purpose}-`));
  guard(`+dir ${path}`);
  return {
    path,
    remove() {
      rmSync(path, { recursive: true, force: true });
      guard(`-dir ${path}`);
    },
  };
}

/*
 * The guard: a shell that holds the list of our servers, folders and loopback addresses, and the reading end of a pipe
 * of which this process has the only other end. However this process goes — finished, interrupted, killed — the kernel
 * closes that end, and the shell kills and removes what is still on the list. An exit handler would miss the last two.
 */
const GUARD_SCRIPT = `
trap '' INT TERM HUP
entries=
while read -r line; do
  case $line in
    +*) entries="$entries
\${line#+}" ;;
    -*) entries=$(printf '%s\\n' "$entries" | grep -vxF -e "\${line#-}") ;;
  esac
done
printf '%s\\n' "$entries" | while read -r kind value; do [ "$kind" != pid ] || kill -KILL "$value"; done
printf '%s\\n' "$entries" | while read -r kind value; do [ "$kind" != dir ] || rm -rf "$value"; done
printf '%s\\n' "$entries" | while read -r kind value; do [ "$kind" != address ] || ip address del "$value" dev lo; done
`;

let guardProcess: ChildProcess | undefined;

/** `+kind value` puts it on the list, `-kind value` takes it off; kinds: pid, dir, address. */
export function guard(line: string): void {
  if (guardProcess === undefined) {
    // Its own process group: Ctrl-C in a terminal goes to every process of ours, and must not reach this one.
    guardProcess = spawn('/bin/sh', ['-c', GUARD_SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    guardProcess.unref();
    (guardProcess.stdin as unknown as { unref(): void }).unref(); // a socket underneath
  }
  guardProcess.stdin?.write(`${line}\n`);
}
