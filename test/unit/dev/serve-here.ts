import { main } from '../../../cli/main.ts';
import type { Io } from '../../../cli/runtime/io.ts';
import { processIo } from '../../../cli/world.ts';
import { serveDev } from '../../../dev/serve/dev-server.ts';

export interface ServedHere {
  readonly output: () => string;
  readonly errors: () => string;
  /** Gives the exit code. */
  readonly stop: () => Promise<number>;
}

/** The dev server in the process of the test, on a free port. For tests that need no process of its own. */
export async function serveHere(...args: readonly string[]): Promise<ServedHere> {
  const [listening, stopping] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let [output, errors] = ['', ''];
  const out = (text: string): void => {
    output += text;
    if (output.includes('Stop with Ctrl-C')) listening.resolve();
  };
  const io: Io = {
    ...processIo(),
    out,
    err: (text) => void (errors += text),
    serveDev: (settings) => serveDev(settings, io, () => stopping.promise),
  };
  const ended = main(['dev', '--port', '0', ...args], io);
  await Promise.race([listening.promise, ended]);
  if (!output.includes('Stop with Ctrl-C')) throw new Error(`serve ended: ${errors}`);
  return {
    output: () => output,
    errors: () => errors,
    stop: () => {
      stopping.resolve();
      return ended;
    },
  };
}
