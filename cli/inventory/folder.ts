import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

/** The files below a folder whose names match. Throws CommandFailure if no name matches: a wrong folder must not look like an empty one. */
export async function filesIn(folder: string, names: RegExp, what: string, io: Io): Promise<readonly string[]> {
  const files = (await list(folder, io)).filter((file) => names.test(file));
  if (files.length === 0) throw new CommandFailure(exitCodes.notFound, `${folder} has no ${what}`);
  return files;
}

async function list(folder: string, io: Io): Promise<readonly string[]> {
  try {
    return await io.files(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ENOENT') throw new CommandFailure(exitCodes.notFound, `there is no folder ${folder}`);
    throw new CommandFailure(exitCodes.configuration, `the folder ${folder} cannot be read (${code})`);
  }
}
