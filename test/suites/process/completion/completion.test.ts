/** The completions in the shells themselves: bash, zsh and fish load the script that the program prints, and complete lines. */
import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { requestStates } from '../../../../cli/requests/request-view.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('shells');
const root = resolve(import.meta.dirname, '../../../..');
const folder = temporaryFolder('completion');
afterAll(() => folder.remove());

const environment = {
  PATH: [join(folder.path, 'bin'), dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter),
  HOME: folder.path,
  TERM: 'dumb',
};
const call = async (program: string, ...args: readonly string[]): Promise<string> =>
  (await promisify(execFile)(program, args, { env: environment, cwd: folder.path, timeout: 120_000 })).stdout;

beforeAll(async () => {
  mkdirSync(join(folder.path, 'bin'));
  symlinkSync(join(root, 'cli/countersign.mjs'), join(folder.path, 'bin/countersign'));
  writeFileSync(join(folder.path, 'request.json'), '{}');
  for (const shell of ['bash', 'zsh', 'fish'])
    writeFileSync(join(folder.path, shell), await call('countersign', 'completion', shell));
});

const quoted = (word: string): string => `'${word}'`;

/** The words as bash splits the line: at blanks and at `=`. */
async function inBash(line: string): Promise<readonly string[]> {
  const words = line.split(/ |(=)/).filter((word) => word !== undefined);
  const script = `
    source ./bash
    COMP_WORDS=(${words.map(quoted).join(' ')}); COMP_CWORD=${words.length - 1}
    found=$(complete -p countersign); found="\${found#*-F }"
    "\${found%% *}"
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  return lines(await call('bash', '--norc', '-c', script));
}

/** In a terminal of zsh's own: what `compadd` gets is printed by a function before it. */
async function inZsh(line: string): Promise<readonly string[]> {
  writeFileSync(
    join(folder.path, '.zshrc'),
    `autoload -Uz compinit && compinit -u -d $HOME/.dump
source ./zsh
PS1='> '
compadd() {
  local -a given
  builtin compadd -A given "$@"
  # Descriptions are added for a second time, for show.
  [[ \${@[(I)-O]} == 0 && \${@[(I)-D]} == 0 && \${@[(I)-A]} == 0 ]] && print -rl -- "\${given[@]}" >> $HOME/added
  builtin compadd "$@"
}
`,
  );
  const script = `
    zmodload zsh/zpty
    : > added
    zpty z zsh -i
    zpty -r z seen '*> ' && zpty -w -n z ${quoted(`${line}\t`)}
    for i in {1..600}; do [[ -s added ]] && break; sleep 0.1; done
    zpty -d z
    cat added`;
  return lines(await call('zsh', '-f', '-c', script));
}

async function inFish(line: string): Promise<readonly string[]> {
  const script = `source ./fish; complete -C ${quoted(line)}`;
  return lines(await call('fish', '--no-config', '-c', script)).map((found) => found.split('\t', 1)[0] ?? '');
}

function lines(text: string): readonly string[] {
  return [...new Set(text.split('\n').filter((line) => line !== ''))].toSorted();
}

const shells: readonly (readonly [string, typeof inBash])[] = [
  ['bash', inBash],
  ['zsh', inZsh],
  ['fish', inFish],
];

describe.skipIf(skip).each(byTier({ default: shells.slice(0, 1), deep: shells }))('%s', (shell, complete) => {
  test.each<[string, readonly string[]]>([
    ['countersign csr ex', ['explain']],
    ['countersign kubeadm ', ['renew', 'sign']],
    ['countersign csr list --sta', ['--state']],
    ['countersign csr list --state ', requestStates.toSorted()],
    ['countersign csr list -o j', ['json']],
    ['countersign csr explain req', ['request.json']],
    // zsh tells nothing if there is nothing to add.
    ...(shell === 'zsh' ? [] : [['countersign --kube', []] satisfies [string, readonly string[]]]),
  ])('%s', async (line, expected) => {
    expect(await complete(line)).toEqual(expected);
  });

  test('a value behind the option’s =', async () => {
    // bash takes the `=` for the end of a word.
    expect(await complete('countersign csr list --output=j')).toEqual([shell === 'bash' ? 'json' : '--output=json']);
  });
});
