/**
 * `countersign kubeadm renew`, killed by SIGKILL at step n; of a write the half is on the disk then.
 *
 *   node killed-renewal.ts <n> <arguments of the command line>
 */
import { writeSync, openSync } from 'node:fs';
import { CliCommand } from '../../../../cli/runtime/command.ts';
import { kubeadmCommands } from '../../../../cli/kubeadm/command.ts';
import { thisHost } from '../../../../cli/kubeadm/host.ts';
import type { Host } from '../../../../cli/kubeadm/host.ts';
import { processIo } from '../../../../cli/world.ts';

const [at = '0', ...argv] = process.argv.slice(2);
let steps = 0;

function dies(name: string, args: readonly unknown[]): void {
  steps += 1;
  if (steps !== Number(at)) return;
  const [path, content] = args;
  if (name === 'writeNew' && Buffer.isBuffer(content))
    writeSync(openSync(String(path), 'wx'), content.subarray(0, content.length / 2));
  process.kill(process.pid, 'SIGKILL');
  // The signal is on its way; nothing more may happen.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

const host = Object.fromEntries(
  Object.entries(thisHost).map(([name, work]) => [
    name,
    ['makeFolder', 'writeNew', 'rename', 'remove', 'run', 'sync'].includes(name)
      ? (...args: unknown[]) => {
          dies(name, args);
          return (work as (...given: unknown[]) => unknown)(...args);
        }
      : work,
  ]),
) as unknown as Host;

const program = new CliCommand('countersign', (code) => {
  process.exitCode = code;
});
kubeadmCommands(program, processIo(), host);
await program.parseAsync(argv, { from: 'user' });
process.stderr.write(`steps: ${steps}\n`);
