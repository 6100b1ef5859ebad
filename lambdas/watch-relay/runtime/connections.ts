/** Limits the connections of a server. */
import type { Server, Socket } from 'node:net';

export interface ConnectionLimits {
  readonly total: number;
  /** Of one remote address, unauthenticated ones only. */
  readonly perAddress: number;
}

export interface BoundConnections {
  /** An authenticated connection counts, but is not closed in favour of others. A TLS socket or its TCP socket. */
  keep(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): void;
}

/**
 * Accepts every new connection, and closes the oldest unauthenticated one if there are too many: at `perAddress` of the same
 * address, at `total` of the address with the most. Node's own limit (`maxConnections`) refuses the new connection, so an
 * attacker's idle connections would exclude kubelet or the caller.
 */
export function boundConnections(server: Server, { total, perAddress }: ConnectionLimits): BoundConnections {
  /** Unauthenticated connections by address and port, the oldest first. */
  const unauthenticated = new Map<string, Map<number, Socket>>();
  let open = 0;

  function forget(address: string, port: number): void {
    const own = unauthenticated.get(address);
    own?.delete(port);
    if (own?.size === 0) unauthenticated.delete(address);
  }

  function closeOldest(own: Map<number, Socket>): void {
    const [oldest] = own.values();
    oldest?.destroy();
  }

  function most(): Map<number, Socket> | undefined {
    let found: Map<number, Socket> | undefined;
    for (const own of unauthenticated.values()) if (own.size > (found?.size ?? 0)) found = own;
    return found;
  }

  server.on('connection', (socket: Socket) => {
    const { remoteAddress: address, remotePort: port } = socket;
    if (address === undefined || port === undefined) return void socket.destroy(); // closed already
    open += 1;
    const own = unauthenticated.get(address) ?? new Map<number, Socket>();
    unauthenticated.set(address, own.set(port, socket));
    socket.once('close', () => {
      open -= 1;
      if (unauthenticated.get(address)?.get(port) === socket) forget(address, port);
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
