/** How many connections a server holds, and whose it closes when there are too many. */
import type { Server, Socket } from 'node:net';

export interface ConnectionLimits {
  readonly total: number;
  /** Of one remote address, strangers only. */
  readonly perAddress: number;
}

export interface BoundConnections {
  /** Its caller has been authenticated: it counts, and is not closed for others. A TLS socket or its TCP socket. */
  keep(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): void;
}

/**
 * A new connection is always taken, and where there are too many the oldest stranger's is closed: its own address's at
 * `perAddress`, at `total` that of the address that has most of them. Node's own bound (`maxConnections`) turns the new one
 * away, so that idle connections of a stranger shut out kubelet or the caller.
 */
export function boundConnections(server: Server, { total, perAddress }: ConnectionLimits): BoundConnections {
  /** By address, the oldest first; then by port. */
  const strangers = new Map<string, Map<number, Socket>>();
  let open = 0;

  function forget(address: string, port: number): void {
    const own = strangers.get(address);
    own?.delete(port);
    if (own?.size === 0) strangers.delete(address);
  }

  function closeOldest(own: Map<number, Socket>): void {
    const [oldest] = own.values();
    oldest?.destroy();
  }

  function most(): Map<number, Socket> | undefined {
    let found: Map<number, Socket> | undefined;
    for (const own of strangers.values()) if (own.size > (found?.size ?? 0)) found = own;
    return found;
  }

  server.on('connection', (socket: Socket) => {
    const { remoteAddress: address, remotePort: port } = socket;
    if (address === undefined || port === undefined) return void socket.destroy(); // it is gone already
    open += 1;
    const own = strangers.get(address) ?? new Map<number, Socket>();
    strangers.set(address, own.set(port, socket));
    socket.once('close', () => {
      open -= 1;
      if (strangers.get(address)?.get(port) === socket) forget(address, port);
    });
    if (own.size > perAddress) closeOldest(own);
    else if (open > total) closeOldest(most() ?? own);
  });

  return {
    keep({ remoteAddress, remotePort }) {
      if (remoteAddress !== undefined && remotePort !== undefined) forget(remoteAddress, remotePort);
    },
  };
}
