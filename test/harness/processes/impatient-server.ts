import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** Answers as soon as it has the head, keeps the connection open, and reads nothing more until `read` is called. */
export interface ImpatientServer {
  readonly url: string;
  /** Connections so far, and how many of them the client has ended. */
  readonly counts: { opened: number; ended: number };
  /** Takes what clients still send, and sees who has gone. */
  read(): void;
  close(): void;
}

/** More than loopback takes for a server that does not read. */
export const tooMuchToSend = 'x'.repeat(16 * 1_048_576);

export async function serveImpatiently(
  status: number,
  headers: readonly string[],
  body: string,
): Promise<ImpatientServer> {
  const sockets = new Set<Socket>();
  const counts = { opened: 0, ended: 0 };
  const head = [`HTTP/1.1 ${status} x`, ...headers, `content-length: ${Buffer.byteLength(body)}`, '', body];
  const server = createServer((socket) => {
    counts.opened += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => (counts.ended += 1));
    socket.once('data', () => {
      socket.pause();
      socket.write(head.join('\r\n'));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    read: () => sockets.forEach((socket) => socket.resume()),
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
