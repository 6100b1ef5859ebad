/**
 * TLS and authentication in front of csr-api.ts, which accepts every impersonation header. Clients log in with a bootstrap token
 * or a client certificate. Anonymous users can read only `cluster-info`.
 */
import { generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto';
import { request as forward } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { temporaryCa } from '../../adapters/embedded/authority.ts';
import { detachedSignature, tokenText } from '../../core/kubernetes/bootstrap-token.ts';
import type { BootstrapToken } from '../../core/kubernetes/bootstrap-token.ts';
import { assembleCertificate } from '../../core/x509/leaf-certificate.ts';
import { toPem } from '../../core/encoding/pem.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import { certificateFacts } from '../../core/x509/read-certificate.ts';
import { spkiPin } from '../../core/kubernetes/cluster-info.ts';
import { encodeSubjectAltNames } from '../../core/x509/subject-alt-names.ts';
import { encodeSubject } from '../../core/x509/distinguished-name.ts';
import { extensionType } from '../../core/x509/model.ts';
import { encodeExtension, encodeTbs } from '../../core/x509/tbs-certificate.ts';

export interface ApiFront {
  /** `127.0.0.1:<port>` */
  readonly endpoint: string;
  /** The value for `--discovery-token-ca-cert-hash`. */
  readonly pin: string;
  /** Method and user of each call, in order: `POST system:node:n1`, `GET anonymous`. */
  readonly calls: readonly string[];
  readonly close: () => Promise<void>;
}

export interface ApiFrontOptions {
  /** URL of csr-api.ts, to which calls are forwarded. */
  readonly target: string;
  readonly token: BootstrapToken;
  /** PEM: the CA of client certificates. */
  readonly clientCa: string;
  /** The clock for checks of validity. The demo sets it forward instead of waiting for a day. */
  readonly now: () => number;
}

const clusterInfoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
const selfReviews = /^\/apis\/(authentication|authorization)\.k8s\.io\/v1\/self(subject|subjectaccess)reviews$/;

export async function startApiFront({ target, token, clientCa, now }: ApiFrontOptions): Promise<ApiFront> {
  const authority = await clusterCa();
  const caPem = toPem('CERTIFICATE', authority.certificate);
  const issuer = new X509Certificate(clientCa);
  const calls: string[] = [];
  let endpoint = '';

  function authenticate(request: IncomingMessage): string | undefined {
    const { raw } = (request.socket as TLSSocket).getPeerCertificate();
    if (raw !== undefined) {
      const leaf = new X509Certificate(raw);
      const current = leaf.validFromDate.getTime() <= now() && now() < leaf.validToDate.getTime();
      return leaf.verify(issuer.publicKey) && current ? /^CN=(.*)$/m.exec(leaf.subject)?.[1] : undefined;
    }
    return request.headers.authorization === `Bearer ${tokenText(token)}` ? `system:bootstrap:${token.id}` : undefined;
  }

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? '';
    const send = (status: number, body: object): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    const username = authenticate(request);
    calls.push(`${request.method} ${username ?? 'anonymous'}`);
    if (path === clusterInfoPath) return send(200, clusterInfo(`https://${endpoint}`, caPem, token));
    if (username === undefined) return send(401, { kind: 'Status', code: 401, message: 'Unauthorized' });
    // As with kubeadm's bindings, every authenticated user may create requests.
    if (selfReviews.test(path)) return send(201, { status: { userInfo: { username }, allowed: true } });

    const passedOn = Object.entries(request.headers).filter(([name]) => !/^(authorization|impersonate-.*)$/.test(name));
    const headers: OutgoingHttpHeaders = { ...Object.fromEntries(passedOn), 'impersonate-user': username };
    const upstream = forward(`${target}${path}`, { method: request.method ?? 'GET', headers }, (incoming) => {
      response.writeHead(incoming.statusCode ?? 502, incoming.headers);
      response.flushHeaders();
      incoming.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    request.pipe(upstream);
  }

  // authenticate checks the certificate, since OpenSSL would use the time of this machine.
  const login = { requestCert: true, rejectUnauthorized: false, ca: clientCa };
  const server = createServer({ ...(await servingCertificate(authority)), ...login }, (request, response) => {
    try {
      answer(request, response);
    } catch {
      response.destroy(); // the request line holds no valid URL
    }
  });
  await new Promise<void>((ready) => {
    server.listen(0, '127.0.0.1', ready);
  });
  endpoint = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    endpoint,
    pin: spkiPin(certificateFacts(authority.certificate).spki),
    calls,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

/** The ConfigMap that kubeadm creates and kube-controller-manager's bootstrapsigner signs. */
function clusterInfo(server: string, caPem: string, token: BootstrapToken): object {
  const kubeconfig = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: '', cluster: { server, 'certificate-authority-data': Buffer.from(caPem).toString('base64') } }],
  });
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'cluster-info', namespace: 'kube-public' },
    data: { kubeconfig, [`jws-kubeconfig-${token.id}`]: detachedSignature(kubeconfig, token) },
  };
}

/** The CA of the API server's certificate, as kubeadm makes it. It signs no certificates of nodes. */
function clusterCa(): Promise<Authority> {
  return temporaryCa(
    {
      name: 'cluster',
      kind: 'selfSigned',
      keySpec: 'P-256',
      signatureAlgorithm: 'ECDSA_SHA_256',
      subject: { commonName: 'kubernetes' },
      validitySeconds: 86_400,
      pathLen: 0,
    },
    { now: Date.now(), randomBytes },
  );
}

async function servingCertificate({ certificate, signer }: Authority): Promise<{ key: string; cert: string }> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const facts = certificateFacts(certificate);
  const names = encodeSubjectAltNames({ dns: [], email: [], ip: ['127.0.0.1'], uri: [] }) ?? new Uint8Array();
  const tbs = encodeTbs({
    serial: Uint8Array.of(1, ...randomBytes(8)),
    algorithm: signer.algorithm,
    issuer: facts.subjectName,
    subject: encodeSubject({ attributes: [{ type: '2.5.4.3', value: 'kube-apiserver' }] }),
    notBefore: facts.notBefore,
    notAfter: facts.notAfter,
    spki: new Uint8Array(publicKey.export({ type: 'spki', format: 'der' })),
    extensions: [encodeExtension(extensionType.subjectAltName, false, names)],
  });
  const { bytes } = await signer.sign(tbs);
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: toPem('CERTIFICATE', assembleCertificate(tbs, bytes, signer.algorithm)),
  };
}
