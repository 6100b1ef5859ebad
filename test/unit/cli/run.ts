/** Runs the command line's main function with files of the test, and returns all its output. */
import { processIo } from '../../../cli/world.ts';
import type { Io } from '../../../cli/runtime/io.ts';
import { main } from '../../../cli/main.ts';

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export const now = Date.parse('2026-06-01T12:00:00Z');

/** `files` by path, `-` for standard input; everything else of the world is the real one. */
export async function run(
  argv: readonly string[],
  {
    files = {},
    environment = {},
    world = {},
  }: {
    files?: Readonly<Record<string, string | Uint8Array>>;
    environment?: Record<string, string>;
    world?: Partial<Omit<Io, 'environment' | 'err' | 'fileExists' | 'lines' | 'out' | 'outFields' | 'read'>>;
  } = {},
): Promise<Ran> {
  const printed = { out: '', err: '' };
  const real = processIo();
  const io: Io = {
    ...real,
    colours: false,
    now: () => now,
    ...world,
    out: (text) => void (printed.out += text),
    outFields: (fields) => void (printed.out += `${fields.join('\t')}\n`),
    err: (text) => void (printed.err += text),
    environment,
    fileExists: (path) => files[path] !== undefined || (path.startsWith('/') && real.fileExists(path)),
    read: async (path) => (files[path] === undefined ? real.read(path) : Buffer.from(files[path])),
    async *lines(path) {
      const text = files[path];
      if (text === undefined) yield* real.lines(path);
      else yield* Buffer.from(text).toString().replace(/\n$/, '').split('\n');
    },
  };
  const code = await main(argv, io);
  return { code, ...printed };
}
