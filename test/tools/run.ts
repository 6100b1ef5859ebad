import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const HEARTBEAT_MS = 30_000;
const OUTPUT_LINES = 20;

/** Runs a long command and reports the elapsed time. On failure it returns the reason with the end of the output. */
export async function run(
  task: { readonly title: string; readonly seconds: number; readonly progress: (line: string) => void },
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env: NodeJS.ProcessEnv },
): Promise<string | undefined> {
  const { title, seconds, progress } = task;
  const started = performance.now();
  const elapsed = () => duration((performance.now() - started) / 1000);
  progress(`${title} (about ${duration(seconds)} on two idle processors)`);
  const heartbeat = setInterval(() => progress(`${title}: ${elapsed()} so far`), HEARTBEAT_MS);
  try {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const keep = (chunk: Buffer) => (output = (output + chunk.toString()).slice(-10_000));
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    const end = await new Promise<string>((resolve) => {
      child.on('error', (error) => resolve(error.message));
      child.on('close', (code) => resolve(`exit code ${code}`));
    });
    if (end === 'exit code 0') {
      progress(`${title}: done in ${elapsed()}`);
      return undefined;
    }
    const tail = output.trimEnd().split('\n').slice(-OUTPUT_LINES).join('\n  ');
    return `\`${basename(command)} ${args[0]}\` failed (${end}):\n  ${tail}`;
  } finally {
    clearInterval(heartbeat);
  }
}

/** `45 s`, `3 min 5 s` */
function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const rest = whole % 60;
  return `${Math.floor(whole / 60)} min${rest === 0 ? '' : ` ${rest} s`}`;
}

/** The first line that a program prints, on either stream. Undefined when the program does not run or fails. */
export function firstLine(command: string, args: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  const result = spawnSync(command, args, { encoding: 'utf8', timeout: 10_000, env, cwd: '/' });
  return result.status === 0 ? (result.stdout || result.stderr).split('\n', 1)[0] : undefined;
}

/**
 * A new name beside the final one, so that a rename to the final name is atomic. Files of killed builds are removed. The
 * process ID separates this build from a compiler of a killed build that may still be writing its result.
 */
export function temporaryName(path: string): string {
  const folder = dirname(path);
  const prefix = `.${basename(path)}.part-`;
  mkdirSync(folder, { recursive: true });
  for (const entry of readdirSync(folder)) {
    if (entry.startsWith(prefix)) rmSync(join(folder, entry), { recursive: true, force: true });
  }
  return join(folder, `${prefix}${process.pid}`);
}
