import { createServer } from 'node:https';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/x509/test-certificates.ts';
import type { ReceivedRequest } from '../../../harness/aws/sigv4-verifier.ts';

/** A front door as AWS's: TLS, a check of each call, and the endpoint behind it for calls that pass. */
export interface FrontDoor {
  readonly url: string;
  readonly caPem: string;
  /** What the check said of each call. */
  readonly verdicts: readonly unknown[];
  close(): void;
}

/** `check` gives true, or why not. `names`: of its certificate, for clients that come through a proxy. */
export async function startFrontDoor(
  upstream: string,
  check: (request: ReceivedRequest) => unknown,
  names: readonly string[] = [],
): Promise<FrontDoor> {
  const authority = await createTestAuthority('front door');
  const serving = await authority.issue({ subject: [{ CN: ['door'] }], extensions: loopbackServerExtensions(names) });
  const verdicts: unknown[] = [];

  async function answer(request: ReceivedRequest): Promise<readonly [number, Record<string, string>, string]> {
    const verdict = await check(request);
    verdicts.push(verdict);
    // In API Gateway's words.
    if (verdict !== true) return [403, { 'content-type': 'application/json' }, '{"message":"Forbidden"}'];
    const body = Buffer.from(request.body);
    const passed = await fetch(`${upstream}${request.target}`, { method: request.method, body });
    const outcome = passed.headers.get('x-countersign-outcome');
    return [passed.status, outcome === null ? {} : { 'x-countersign-outcome': outcome }, await passed.text()];
  }

  const server = createServer({ key: serving.keyPem, cert: serving.certificatePem }, (incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const { method = '', url: target = '' } = incoming;
      answer({ method, target, headers: single(incoming.headers), body: Buffer.concat(chunks) }).then(
        ([status, headers, text]) => response.writeHead(status, headers).end(text),
        () => response.destroy(),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caPem: authority.certificatePem,
    verdicts,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function single(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
