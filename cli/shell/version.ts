import { version } from '../../core/version.ts';
import { formatOutput } from '../output/output.ts';
import type { CliCommand } from '../runtime/command.ts';
import type { Io } from '../runtime/io.ts';

export function versionCommand(program: CliCommand, io: Io): void {
  program
    .command('version')
    .description('print the version, the commit that it was built from, and Node’s version')
    .formats('table', 'json', 'yaml')
    .examples('countersign version', 'countersign version -o json')
    .runs(async ({ output }: { readonly output: string }) => {
      const { commit, node, platform } = io.program;
      const built = commit === undefined ? '' : `, commit ${commit}`;
      const text = () => `countersign ${version}${built}, Node ${node}, ${platform}\n`;
      io.out(formatOutput(output, { version, ...io.program }, text));
    });
}
