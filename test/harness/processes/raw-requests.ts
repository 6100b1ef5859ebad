import type { Socket } from 'node:net';

/** What can stand in a request line though it is no path: no client of ours sends it, a stranger can. Latin-1. */
export const strangeTargets: readonly string[] = [
  '//',
  '//?x',
  '/\\',
  'http://[',
  'http://[/healthz',
  'http://relay:99999/healthz',
  'http://relay/healthz',
  '*',
  '?',
  '#',
  '/%',
  '/%ff%00',
  '/\x80',
  '//\x80\xff',
  `//${'['.repeat(40)}`,
];

/** The status of the answer; `closed` when the other side ends the connection without one. */
export function statusOf(
  open: () => Socket,
  target: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Readonly<Record<string, string>> } = {},
): Promise<number | 'closed'> {
  return new Promise((resolve, reject) => {
    const socket = open();
    let heard = '';
    socket.setTimeout(20_000, () => socket.destroy(new Error(`no answer to ${method} ${target}`)));
    socket.on('data', (chunk: Buffer) => {
      heard += chunk.toString('latin1');
      const status = /^HTTP\/1\.1 (\d{3}) .*\r\n/.exec(heard)?.[1];
      if (status === undefined) return;
      resolve(Number(status));
      socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? resolve('closed') : reject(error),
    );
    socket.on('close', () => resolve('closed'));
    const lines = Object.entries({ host: '127.0.0.1', 'content-length': '0', ...headers });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    socket.write(Buffer.from(`${method} ${target} HTTP/1.1\r\n${head}\r\n`, 'latin1'));
  });
}
