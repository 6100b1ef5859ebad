/** The command line as a process, with the login of LocalStack's root. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { compileCache } from '../../../harness/processes/processes.ts';
import type { AttestedSigner } from './attested-signer.ts';

const commandLine = join(import.meta.dirname, '../../../../cli/countersign.ts');

/** What it printed: to standard output, or why it failed. `report`: standard output, also of a command whose answer is no. */
export async function countersign(
  { emulator, login = {} }: Pick<AttestedSigner, 'emulator'> & { readonly login?: Readonly<Record<string, string>> },
  ...args: readonly string[]
): Promise<{ readonly status: unknown; readonly out: string; readonly report: string }> {
  const env = { ...emulator.environment, ...login, ...compileCache(), PATH: process.env['PATH'] };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [commandLine, ...args], { env, timeout: 60_000 });
    return { status: 0, out: stdout, report: stdout };
  } catch (error) {
    const { code, stderr, stdout } = error as { code?: unknown; stderr?: string; stdout?: string };
    return { status: code, out: stderr ?? '', report: stdout ?? '' };
  }
}
