/** Files of the dev server's embedded stores. */
import { CommandFailure, exitCodes } from './exit.ts';
import type { Io } from './io.ts';

/** Throws CommandFailure. Opening a missing file would create it, so that after a typing error in the folder a command would find no data. */
export function requireEmbeddedFile(file: string, io: Pick<Io, 'fileExists'>): void {
  if (io.fileExists(file)) return;
  throw new CommandFailure(
    exitCodes.notFound,
    `there is no ${file}`,
    'the dev server keeps a cluster NAME in its --data folder under NAME: --data ./data/NAME',
  );
}
