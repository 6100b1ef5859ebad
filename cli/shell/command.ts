/** `completion` and `version`: what shells and scripts ask about the program itself. */
import { Argument } from 'commander';
import { version } from '../../core/version.ts';
import { formatOutput } from '../output/output.ts';
import type { CliCommand } from '../runtime/command.ts';
import type { Io } from '../runtime/io.ts';
import { candidates } from './candidates.ts';
import { completionScripts, shells } from './scripts.ts';
import type { Shell } from './scripts.ts';

export function shellCommands(program: CliCommand, io: Io): void {
  program
    .command('completion')
    .description('print the completion of commands, options and their values for a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .notes(
      'kubectl completes its plugin `kubectl countersign` too, if kubectl_complete-countersign is on the PATH: the npm package has it.',
    )
    .examples(
      'source <(countersign completion bash)                                             # in ~/.bashrc',
      'source <(countersign completion zsh)                                              # in ~/.zshrc, after compinit',
      'countersign completion fish > ~/.config/fish/completions/countersign.fish',
    )
    .runs(async (shell: Shell) => io.out(completionScripts[shell]));

  program
    .command('__complete', { hidden: true })
    .description('answer the completion scripts')
    .argument('[words...]')
    .allowUnknownOption()
    .runs(async (words: readonly string[]) => {
      const found = candidates(program, words);
      if (found.kind === 'words') for (const { text, description } of found.words) io.outFields([text, description]);
      io.out(found.kind === 'words' ? ':4\n' : ':0\n');
    });

  program
    .command('version')
    .description('print the version, the commit that it was built from, and Node’s version')
    .formats('text', 'json', 'yaml')
    .examples('countersign version', 'countersign version -o json')
    .runs(async ({ output }: { readonly output: string }) => {
      const { commit, node, platform } = io.program;
      const built = commit === undefined ? '' : `, commit ${commit}`;
      const text = () => `countersign ${version}${built}, Node ${node}, ${platform}\n`;
      io.out(formatOutput(output, { version, ...io.program }, text));
    });
}
