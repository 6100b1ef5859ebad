/**
 * `npm run cdk -- …`: the CDK command line, by the pinned Node. It starts where the operator stands, chooses the configuration
 * file once, and passes it to the app (lib/app.ts) as COUNTERSIGN_CONFIG.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const root = resolve(import.meta.dirname, '..');
const here = process.cwd();

/** Options of CDK with a path. CDK runs in the checkout, where the operator does not stand. */
const paths = {
  output: { type: 'string', short: 'o' },
  'outputs-file': { type: 'string', short: 'O' },
  template: { type: 'string' },
} as const;

/** `--or FILE`: the file of the checkout to use if the operator has none. Only `npm run synth` passes it. */
const own = { config: { type: 'string' }, or: { type: 'string' } } as const;

/** These need no app, so they need no file either: an environment to bootstrap, and questions about CDK itself. */
const withoutApp =
  /^((aws:\/\/)?[0-9]{12}\/[a-z0-9-]+|-h|--help|--version|--show-template|doctor|docs?|notices|acknowledge|ack)$/;

function fail(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(3);
}

/** The arguments for CDK, with absolute paths. */
function argumentsForCdk(args: readonly string[]): { readonly rest: string[]; config?: string; or?: string } {
  const { values, tokens } = parseArgs({
    args: [...args],
    options: { ...paths, ...own },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const rest: (string | undefined)[] = [...args];
  for (const token of tokens) {
    if (token.kind !== 'option' || token.value === undefined) continue;
    const { index, inlineValue, name, rawName, value } = token;
    const last = inlineValue ? index : index + 1;
    if (Object.hasOwn(own, name)) rest.fill(undefined, index, last + 1);
    else if (Object.hasOwn(paths, name)) rest[last] = `${inlineValue ? `${rawName}=` : ''}${resolve(here, value)}`;
  }
  const { config, or } = values;
  return {
    rest: rest.filter((arg) => arg !== undefined),
    ...(typeof config === 'string' ? { config } : {}),
    ...(typeof or === 'string' ? { or } : {}),
  };
}

/** Exits if there is no file. */
function chooseFile(named: string | undefined, or: string | undefined): string {
  if (named !== undefined) {
    const file = resolve(here, named);
    return existsSync(file) ? file : fail(`there is no ${file}`);
  }
  const file = join(here, 'countersign.yaml');
  if (existsSync(file)) return file;
  if (or !== undefined) return join(root, or);
  return fail(`there is no countersign.yaml in ${here}; --config FILE or COUNTERSIGN_CONFIG names another one`);
}

const { rest, config, or } = argumentsForCdk(process.argv.slice(2));
if (rest.length > 0 && !rest.some((arg) => withoutApp.test(arg))) {
  process.env['COUNTERSIGN_CONFIG'] = chooseFile(config ?? (process.env['COUNTERSIGN_CONFIG'] || undefined), or);
  process.env['CDK_APP'] ??= 'node lib/app.ts';
}
process.chdir(root);
process.argv = [process.execPath, 'cdk', ...rest];
// The program of CDK, in this process: signals and the exit code are its own.
createRequire(import.meta.url)('aws-cdk/bin/cdk');
