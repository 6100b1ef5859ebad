/**
 * Stands for kube-apiserver where clients log in: it verifies client certificates by a bundle that can be replaced while it runs
 * (`--client-ca-file`), and publishes that bundle as kube-apiserver does.
 */
import 'reflect-metadata';
import { KeyObject, webcrypto } from 'node:crypto';
import { createServer as createHttpServer } from 'node:http';
import type { Server } from 'node:http';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { X509CertificateGenerator } from '@peculiar/x509';

export interface LoginServer {
  /** Replaces the bundle (PEM). No connection is kept, so it is in force for the next login. */
  trust(bundle: string): void;
  /** Whether the server accepts this client certificate. */
  accepts(login: ClientLogin): Promise<boolean>;
  /** A kubeconfig for commands that read what the server trusts. */
  kubeconfig(): string;
  close(): Promise<void>;
}

export interface ClientLogin {
  readonly certificatePem: string;
  readonly privateKey: KeyObject;
}

const published = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';

export async function startLoginServer(bundle: string): Promise<LoginServer> {
  const own = await servingCertificate();
  let trusted = bundle;
  const logins = createServer(
    { ...own, ca: trusted, requestCert: true, rejectUnauthorized: false },
    (asked, answer) => {
      answer.writeHead((asked.socket as TLSSocket).authorized ? 200 : 401, { connection: 'close' }).end();
    },
  );
  const api = createHttpServer(({ url = '' }, answer) => {
    const found = url.split('?')[0] === published;
    const object = { apiVersion: 'v1', kind: 'ConfigMap', data: { 'client-ca-file': trusted } };
    answer.writeHead(found ? 200 : 404, { 'content-type': 'application/json' });
    answer.end(JSON.stringify(found ? object : { kind: 'Status', message: 'not found' }));
  });
  const [loginPort, apiPort] = [await listen(logins), await listen(api)];
  return {
    trust(next) {
      trusted = next;
      logins.setSecureContext({ ...own, ca: next });
    },
    accepts: ({ certificatePem, privateKey }) =>
      new Promise((resolve, reject) => {
        const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
        // The question is what the server thinks of the client. Its own certificate is of this moment.
        const options = { port: loginPort, cert: certificatePem, key, rejectUnauthorized: false, agent: false };
        const asked = request(options, (answer) => {
          answer.resume();
          resolve(answer.statusCode === 200);
        });
        asked.on('error', reject).end();
      }),
    kubeconfig: () =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'demo', cluster: { server: `http://127.0.0.1:${apiPort}` } }],
        users: [{ name: 'operator', user: {} }],
        contexts: [{ name: 'demo', context: { cluster: 'demo', user: 'operator' } }],
        'current-context': 'demo',
      }),
    async close() {
      await Promise.all([logins, api].map((server) => closed(server)));
    },
  };
}

async function servingCertificate(): Promise<{ readonly key: string; readonly cert: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=demo API server',
    keys,
    signingAlgorithm: algorithm,
  });
  return {
    key: KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: certificate.toString('pem'),
  };
}

async function listen(server: Pick<Server, 'listen' | 'address'>): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
}

function closed(server: Pick<Server, 'close' | 'closeAllConnections'>): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
