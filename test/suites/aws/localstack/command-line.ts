/** The command line as a process, with the login of LocalStack's root. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { compileCache } from '../../../harness/processes/processes.ts';
import type { AttestedSigner } from './attested-signer.ts';

const commandLine = join(import.meta.dirname, '../../../../cli/countersign.ts');

/** What it printed: to standard output, or why it failed. */
export async function countersign(
  { emulator }: Pick<AttestedSigner, 'emulator'>,
  ...args: readonly string[]
): Promise<{ readonly status: unknown; readonly out: string }> {
  const env = { ...emulator.environment, ...compileCache(), PATH: process.env['PATH'] };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [commandLine, ...args], { env, timeout: 60_000 });
    return { status: 0, out: stdout };
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    return { status: code, out: stderr ?? '' };
  }
}
