/** An attacker between a node and its API server, with a certificate of their own CA. */
import { createServer as createTlsServer, request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import {
  createTestAuthority,
  loopbackServerExtensions,
  type TestAuthority,
} from '../../../harness/x509/test-certificates.ts';

export interface Stranger {
  readonly endpoint: string;
  readonly authority: TestAuthority;
  /** What he got to see, `METHOD path`, and whether a token was shown to him. */
  readonly seen: readonly { readonly call: string; readonly bearer: boolean }[];
  stop(): Promise<void>;
}

export interface Trick {
  /** What he makes of a cluster-info he read; unchanged when absent. */
  readonly clusterInfo?: (data: Record<string, string>, authority: TestAuthority) => Record<string, string>;
  /** The first connection is his; from the second on he only passes bytes on, and the real server's TLS is seen. */
  readonly onlyFirst?: boolean;
}

export async function startStranger(real: string, { clusterInfo = (data) => data, onlyFirst = false }: Trick) {
  const authority = await createTestAuthority('stranger');
  const own = await authority.issue({ subject: [{ CN: ['kube-apiserver'] }], extensions: loopbackServerExtensions() });
  const seen: { call: string; bearer: boolean }[] = [];

  const tls = createTlsServer({ key: own.keyPem, cert: own.certificatePem }, (incoming, outgoing) => {
    seen.push({
      call: `${incoming.method} ${incoming.url}`,
      bearer: incoming.headers.authorization !== undefined,
    });
    const { authorization: _, ...headers } = incoming.headers;
    const onward = request(new URL(incoming.url ?? '/', real), {
      method: incoming.method ?? 'GET',
      headers: { ...headers, host: new URL(real).host },
      rejectUnauthorized: false,
    });
    onward.on('response', (answer: IncomingMessage) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () => {
        const object = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { data?: Record<string, string> };
        if (object.data !== undefined) object.data = clusterInfo(object.data, authority);
        outgoing.writeHead(answer.statusCode ?? 500, { 'content-type': 'application/json' });
        outgoing.end(JSON.stringify(object));
      });
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });
  const tlsPort = await listening(tls);

  let connections = 0;
  const door = createServer((socket) => {
    const mine = !onlyFirst || connections++ === 0;
    const target = connect(mine ? tlsPort : Number(new URL(real).port), '127.0.0.1');
    for (const [from, to] of [
      [socket, target],
      [target, socket],
    ] as const) {
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
    socket.pipe(target).pipe(socket);
  });
  const port = await listening(door);
  const stranger: Stranger = {
    endpoint: `127.0.0.1:${port}`,
    authority,
    seen,
    async stop() {
      tls.closeAllConnections();
      await Promise.all([tls, door].map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
  return stranger;
}

function listening(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}
