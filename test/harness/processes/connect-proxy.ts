/** A forward proxy on loopback: it opens tunnels (CONNECT, RFC 9110 §9.3.6) to the hosts it knows, and refuses everything else. */
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';

export interface ConnectProxy {
  readonly url: string;
  /** `host:port` of each tunnel that a client asked for. */
  readonly tunnels: readonly string[];
  /** Header Proxy-Authorization of each of them. */
  readonly logins: readonly (string | undefined)[];
  /** Method and URL of each request that was no CONNECT. */
  readonly others: readonly string[];
  /** Status with which tunnels are refused from now on; undefined: they are opened. */
  refuse: number | undefined;
  close(): Promise<void>;
}

/** `hosts`: `host:port` as clients name it → URL of the loopback server that is there. */
export async function startConnectProxy(hosts: Readonly<Record<string, string>>): Promise<ConnectProxy> {
  const tunnels: string[] = [];
  const logins: (string | undefined)[] = [];
  const others: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((incoming, outgoing) => {
    others.push(`${incoming.method} ${incoming.url}`);
    outgoing.writeHead(405).end();
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('connect', (request, client: Socket) => {
    const place = request.url ?? '';
    tunnels.push(place);
    logins.push(request.headers['proxy-authorization']);
    const there = hosts[place];
    const status = proxy.refuse ?? (there === undefined ? 502 : undefined);
    if (status !== undefined || there === undefined)
      return void client.end(`HTTP/1.1 ${status ?? 502} Refused\r\n\r\n`);
    const { hostname, port } = new URL(there);
    const far = connect(Number(port), hostname, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(far).pipe(client);
    });
    sockets.add(far);
    far.on('error', () => client.destroy());
    far.once('close', () => void (sockets.delete(far), client.destroy()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: ConnectProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tunnels,
    logins,
    others,
    refuse: undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
  return proxy;
}
