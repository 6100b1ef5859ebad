import { Agent, createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FunctionUrlProxy {
  /** On loopback, without path. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * A Function URL of an emulator under an address that resolves: its own name does nowhere, and is in the Host header
 * only, by which the emulator knows which function is meant.
 */
export async function startFunctionUrlProxy(functionUrl: string, emulatorUrl: string): Promise<FunctionUrlProxy> {
  const { host } = new URL(functionUrl);
  const { hostname, port } = new URL(emulatorUrl);
  const agent = new Agent({ keepAlive: true });
  const forward = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { method, url, headers } = incoming;
    const onward = request({ hostname, port, agent, method, path: url, headers: { ...headers, host } });
    onward.on('error', () => outgoing.destroy());
    onward.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('error', () => outgoing.destroy());
      answer.pipe(outgoing);
    });
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  };
  const server = createServer(forward);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
