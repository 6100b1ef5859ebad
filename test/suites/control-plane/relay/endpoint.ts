import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { webcrypto } from 'node:crypto';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the endpoint does with a request. `held` answers when `release` is called. */
export type Manner = 'issues' | 'refuses' | 'is busy' | 'holds' | 'is a broken proxy';

/**
 * A sign endpoint whose manners a test can choose, to see what the relay makes of them on a real API server. It signs
 * any key with an untrusted CA: the real handler has its own suites.
 */
export interface TestEndpoint {
  readonly url: string;
  behave(manner: Manner): void;
  /** Answers what was held, and from now on at once. */
  release(): void;
  /** Names of the requests it was asked for, in order. */
  readonly asked: readonly string[];
  held(): number;
  close(): void;
}

interface Posted {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: { readonly request: string };
  readonly status: object;
}

export const refusalMessage = 'subject organization is not system:nodes; RSA 1024 is too short';

export async function startTestEndpoint(): Promise<TestEndpoint> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const ca = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificates = new Map<string, Promise<string>>();
  const asked: string[] = [];
  let waiting: (() => void)[] = [];
  let manner: Manner = 'issues';

  async function sign({ spec }: Posted): Promise<string> {
    const request = new x509.Pkcs10CertificateRequest(Buffer.from(spec.request, 'base64').toString('latin1'));
    const certificate = await x509.X509CertificateGenerator.create({
      subject: request.subject,
      issuer: 'CN=test',
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + 3_600_000),
      signingAlgorithm: algorithm,
      publicKey: request.publicKey,
      signingKey: ca.privateKey,
    });
    return Buffer.from(`${certificate.toString('pem').trimEnd()}\n`).toString('base64');
  }

  async function answer(object: Posted, response: ServerResponse): Promise<void> {
    const { name, uid } = object.metadata;
    asked.push(name);
    if (manner === 'holds') await new Promise<void>((resolve) => waiting.push(resolve));
    switch (manner) {
      case 'issues':
      case 'holds': {
        const certificate = certificates.get(uid) ?? sign(object);
        certificates.set(uid, certificate);
        const body = { ...object, status: { ...object.status, certificate: await certificate } };
        return send(response, 200, 'issued', body);
      }
      case 'refuses': {
        const [first = '', second = ''] = refusalMessage.split('; ');
        const causes = [
          { reason: 'SignerValidationFailure', message: first },
          { reason: 'KeyNotPermitted', message: second },
        ];
        return send(response, 422, 'refused', {
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          details: { causes },
        });
      }
      case 'is busy':
        return send(response, 503, 'busy', { retryAfterSeconds: 1 });
      case 'is a broken proxy':
        response.writeHead(404).end('<html>not here</html>');
    }
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      answer(JSON.parse(Buffer.concat(chunks).toString('utf8')) as Posted, response).catch(() => response.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  function release(): void {
    manner = 'issues';
    for (const go of waiting) go();
    waiting = [];
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    behave: (next) => {
      manner = next;
    },
    release,
    asked,
    held: () => waiting.length,
    close() {
      release();
      server.closeAllConnections();
      server.close();
    },
  };
}

function send(response: ServerResponse, status: number, outcome: string, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-countersign-outcome': outcome });
  response.end(JSON.stringify(body));
}
