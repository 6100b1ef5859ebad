/** What the build commands share: flags, `--help`, exit codes. */
import { resolve } from 'node:path';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { errorMessage } from '../core/outcome/error-message.ts';
import { root } from './bundle.ts';

/** Something that the build needs is not on this machine; the message says what, and how to get it. */
export class MissingTool extends Error {
  override readonly name = 'MissingTool';
}

interface Command<Options extends NonNullable<ParseArgsConfig['options']>> {
  readonly name: string;
  readonly help: string;
  readonly options: Options;
  readonly run: (
    out: string,
    flags: ReturnType<typeof parseArgs<{ args: string[]; options: Options }>>['values'],
  ) => Promise<void>;
}

/** `out` is the folder of `--out`, seen from the repository, or dist/. Returns the exit code: 0 made, 1 failed, 2 usage, 3 a tool is missing. */
export async function buildCommand<const Options extends NonNullable<ParseArgsConfig['options']>>(
  argv: readonly string[],
  { name, help, options, run }: Command<Options>,
): Promise<number> {
  const shared = { out: { type: 'string' }, help: { type: 'boolean', short: 'h' } } as const;
  let values;
  try {
    ({ values } = parseArgs({ args: [...argv], options: { ...options, ...shared } }));
  } catch (error) {
    process.stderr.write(`${name}: ${errorMessage(error)}\n${help}`);
    return 2;
  }
  const { out, help: asked } = values as { out?: string; help?: boolean };
  if (asked === true) {
    process.stdout.write(help);
    return 0;
  }
  try {
    await run(resolve(root, out ?? 'dist'), values);
    return 0;
  } catch (error) {
    process.stderr.write(`${name}: ${errorMessage(error)}\n`);
    return error instanceof MissingTool ? 3 : 1;
  }
}
