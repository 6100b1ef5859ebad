import { main } from '../../../dev/serve.ts';

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
  const ended = main(['--port', '0', ...args], { out, err: (text) => (errors += text) }, () => stopping.promise);
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
