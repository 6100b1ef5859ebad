/** `completion` prints a script for a shell, `__complete` answers it. */
import { Argument } from 'commander';
import type { CliCommand } from '../runtime/command.ts';
import type { Io } from '../runtime/io.ts';
import { candidates } from './candidates.ts';
import { completionScripts, shells } from './scripts.ts';
import type { Shell } from './scripts.ts';

export function completionCommands(program: CliCommand, io: Io): void {
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
}
