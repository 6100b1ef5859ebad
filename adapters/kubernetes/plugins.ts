/** Exec plugins of a kubeconfig: programs that print credentials. */
import { spawn } from 'node:child_process';
import type { ChildProcess, SpawnOptions } from 'node:child_process';

type Run = (command: string, args: readonly string[], options: SpawnOptions) => ChildProcess;

/**
 * Ends a plugin that runs longer, with all it started: the library waits for it for good, and each further try would leave
 * one more behind. The library has no setting for it; how it runs plugins is a field of its object for them.
 */
export function boundPlugins(config: object, milliseconds: number): void {
  const { authenticators } = config as { readonly authenticators: readonly { execFn?: Run }[] };
  for (const authenticator of authenticators)
    if (authenticator.execFn !== undefined)
      authenticator.execFn = (command, args, options) => runFor(milliseconds, command, args, options);
}

function runFor(milliseconds: number, command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  // In a process group of its own: a script's children hold its output open after it.
  const child = spawn(command, args, { ...options, detached: true });
  const timer = setTimeout(() => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It ended meanwhile.
    }
  }, milliseconds);
  child.once('close', () => clearTimeout(timer));
  child.once('error', () => clearTimeout(timer));
  return child;
}
