import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { compileCache } from '../processes/processes.ts';
import type { Emulator } from './emulator.ts';

const root = resolve(import.meta.dirname, '../../..');
const account = '000000000000';

export interface Cdk {
  /** Once for each account and region, before anything is deployed. */
  bootstrap(): Promise<void>;
  /** All stacks, or those named. Outputs by stack and name. */
  deploy(...stacks: readonly string[]): Promise<Readonly<Record<string, Readonly<Record<string, string>>>>>;
}

/**
 * The ordinary `cdk` on this project's stacks, as an operator runs it, with an emulator for AWS. It finds that one by the
 * environment alone, and writes only into `folder`. The app is a test's, whose functions find the emulator likewise.
 */
export function cdkOn(emulator: Emulator, options: { readonly configuration: string; readonly folder: string }): Cdk {
  const { configuration, folder } = options;
  const outputsFile = join(folder, 'outputs.json');

  async function run(...args: readonly string[]): Promise<void> {
    const cdk = join(root, 'node_modules/aws-cdk/bin/cdk');
    const app = `${process.execPath} ${join(import.meta.dirname, 'cdk-app.ts')}`;
    // Two commands that write to one folder at the same time fail, and suites run side by side.
    const output = `--output=${join(folder, 'cdk.out')}`;
    const command = [cdk, `--app=${app}`, output, '--no-notices', '--no-version-reporting', ...args];
    try {
      await promisify(execFile)(process.execPath, command, {
        cwd: root,
        timeout: 170_000,
        maxBuffer: 64 * 1024 * 1024,
        env: {
          ...emulator.environment,
          ...compileCache(),
          PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`,
          HOME: folder,
          TMPDIR: folder,
          AWS_EC2_METADATA_DISABLED: 'true',
          CDK_DISABLE_CLI_TELEMETRY: 'true',
          CI: 'true', // progress to standard output, nothing asked
          COUNTERSIGN_CONFIG: configuration,
        },
      });
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      const said = `${stdout}\n${stderr}`.trim().split('\n').slice(-40).join('\n');
      throw new Error(`cdk ${args[0]} failed:\n${said}`, { cause: error });
    }
  }

  return {
    bootstrap: () => run('bootstrap', `aws://${account}/${emulator.client.region}`),
    async deploy(...stacks) {
      await run(
        'deploy',
        ...(stacks.length === 0 ? ['--all'] : stacks),
        '--require-approval=never',
        // Without a change set: `cdk` looks every five seconds whether one is ready.
        '--method=direct',
        `--outputs-file=${outputsFile}`,
      );
      if (!existsSync(outputsFile)) throw new Error('cdk deploy gave no outputs');
      return JSON.parse(readFileSync(outputsFile, 'utf8')) as Awaited<ReturnType<Cdk['deploy']>>;
    },
  };
}
