/** Limits the connections of a server. */
import type { Server, Socket } from 'node:net';

export interface ConnectionLimits {
  readonly total: number;
  /** Unauthenticated connections of one remote address. */
  readonly perAddress: number;
}

export interface BoundConnections {
  /** Marks a connection (TLS socket or its TCP socket) as authenticated: it counts, but is not closed for a new one. */
  keep(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): void;
}

/**
 * Accepts every new connection and closes an old unauthenticated one if there are too many: above `perAddress` the oldest
 * of the same address, above `total` the oldest of the address with the most. Node's own limit (`maxConnections`) refuses
 * the new connection, so an attacker's idle connections would exclude kubelet or the caller.
 */
export function boundConnections(server: Server, { total, perAddress }: ConnectionLimits): BoundConnections {
  /** Closes an unauthenticated connection. By address and port, the oldest first. */
  const unauthenticated = new Map<string, Map<number, () => void>>();
  let open = 0;

  function forget(address: string, port: number): void {
    const ofAddress = unauthenticated.get(address);
    ofAddress?.delete(port);
    if (ofAddress?.size === 0) unauthenticated.delete(address);
  }

  function closeOldest(ofAddress: Map<number, () => void>): void {
    const [close] = ofAddress.values();
    close?.();
  }

  function busiestAddress(): Map<number, () => void> | undefined {
    let found: Map<number, () => void> | undefined;
    for (const ofAddress of unauthenticated.values()) if (ofAddress.size > (found?.size ?? 0)) found = ofAddress;
    return found;
  }

  server.on('connection', (socket: Socket) => {
    const { remoteAddress: address, remotePort: port } = socket;
    if (address === undefined || port === undefined) return void socket.destroy(); // closed already
    open += 1;
    const ofAddress = unauthenticated.get(address) ?? new Map<number, () => void>();
    let counts = true;
    const uncount = (): void => {
      if (!counts) return;
      counts = false;
      open -= 1;
      if (unauthenticated.get(address)?.get(port) === close) forget(address, port);
    };
    const close = (): void => {
      // Before the event `close`, so that of connections that come together each closes another one.
      uncount();
      socket.destroy();
    };
    unauthenticated.set(address, ofAddress.set(port, close));
    socket.once('close', uncount);
    if (ofAddress.size > perAddress) closeOldest(ofAddress);
    else if (open > total) closeOldest(busiestAddress() ?? ofAddress);
  });

  return {
    keep({ remoteAddress, remotePort }) {
      if (remoteAddress !== undefined && remotePort !== undefined) forget(remoteAddress, remotePort);
    },
  };
}
