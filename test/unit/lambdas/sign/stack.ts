/** The sign handler over the embedded store and a real key, with everything observable. */
import { randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { openEmbeddedLedger } from '../../../../adapters/embedded/ledger.ts';
import { embeddedSigner } from '../../../../adapters/embedded/signer.ts';
import type { HttpAnswer, HttpEvent, HttpHandler } from '../../../../adapters/lambda/http.ts';
import { loopbackCaller } from '../../../../dev/serve/loopback-caller.ts';
import type { Authority } from '../../../../core/x509/leaf-certificate.ts';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import type { CertificateLedger } from '../../../../core/ports/certificate-ledger.ts';
import type { CertificateReads } from '../../../../core/ports/certificate-reads.ts';
import type { Signer } from '../../../../core/ports/signer.ts';
import { noCrls } from '../../../harness/stack/no-crls.ts';
import { createSignHandler } from '../../../../lambdas/sign/handler.ts';
import type { SignHandlerPorts } from '../../../../lambdas/sign/handler.ts';
import type { CallLogEntry } from '../../../../adapters/lambda/log.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import type { RequestSpec } from '../../../harness/x509/requests.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { noLocks } from '../../../harness/kubernetes/no-locks.ts';

export interface Stack {
  readonly handler: HttpHandler;
  readonly ports: SignHandlerPorts;
  readonly ledger: CertificateLedger;
  readonly reads: CertificateReads;
  readonly caPem: string;
  readonly log: CallLogEntry[];
  /** Signatures made, counted at the key. */
  readonly signatures: () => number;
  readonly clock: { now: number };
  readonly close: () => void;
  readonly post: (object: unknown, change?: Partial<EventSpec>) => Promise<HttpAnswer>;
}

export interface EventSpec {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | Uint8Array;
}

export function eventFixture({ method = 'GET', path = '/healthz', headers = {}, body }: Partial<EventSpec>): HttpEvent {
  return {
    version: '2.0',
    rawPath: path,
    rawQueryString: 'timeout=30s',
    headers,
    requestContext: { http: { method, path } },
    ...(body === undefined ? {} : { body: Buffer.from(body).toString('base64') }),
    isBase64Encoded: true,
  };
}

export interface StackChange extends Partial<SignHandlerPorts> {
  /** Stands before the embedded ledger. */
  readonly wrapLedger?: (ledger: CertificateLedger) => CertificateLedger;
  /** Stands before the counted key. */
  readonly wrapSigner?: (signer: Signer) => Signer;
}

export async function startStack({ wrapLedger, wrapSigner, ...change }: StackChange = {}): Promise<Stack> {
  const { ledger, reads, close } = openEmbeddedLedger(':memory:');
  const ca = await createTestAuthority('demo ca');
  const signer = embeddedSigner(ca.keyPem);
  let signatures = 0;
  const counted: Signer = {
    ...signer,
    sign: (tbs) => {
      signatures += 1;
      return signer.sign(tbs);
    },
  };
  const authority: Authority = {
    name: 'ca',
    certificate: new Uint8Array(new X509Certificate(ca.certificatePem).raw),
    intermediates: [],
    signer: wrapSigner?.(counted) ?? counted,
  };
  const cluster = defaultCluster('demo', { maxTtlSeconds: 86_400 });
  const log: CallLogEntry[] = [];
  const clock = { now: Date.now() };
  const ports: SignHandlerPorts = {
    version: '1.2.3',
    caller: loopbackCaller,
    cluster: (name) => (name === 'demo' ? cluster : undefined),
    ledger: () => wrapLedger?.(ledger) ?? ledger,
    locks: () => noLocks,
    crls: () => noCrls,
    authority: async () => authority,
    now: () => clock.now,
    randomBytes,
    log: (entry) => log.push(entry),
    ...change,
  };
  const handler = createSignHandler(ports);
  return {
    handler,
    ports,
    ledger,
    reads,
    caPem: ca.certificatePem,
    log,
    signatures: () => signatures,
    clock,
    close,
    post: (object, eventChange = {}) =>
      handler(
        eventFixture({
          method: 'POST',
          path: '/v1/clusters/demo/sign',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(object),
          ...eventChange,
        }),
      ),
  };
}

export interface CsrChange {
  readonly request?: RequestSpec;
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

/** An approved kubelet request as the API server would give it out. */
export function csrFixture({ request, metadata, spec, status }: CsrChange = {}) {
  const { pem } = makeRequest(request ?? { subject: { O: 'system:nodes', CN: 'system:node:n1' } });
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'node-csr-1', uid: randomUUID(), resourceVersion: '7', labels: { keep: 'me' }, ...metadata },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
      username: 'system:bootstrap:abcdef',
      groups: ['system:bootstrappers', 'system:authenticated'],
      ...spec,
    },
    status: {
      conditions: [{ type: 'Approved', status: 'True', reason: 'Test', message: '', lastUpdateTime: null }],
      ...status,
    },
  };
}

/** The certificate chain in an answer, leaf first. */
export function certificatesIn(answer: HttpAnswer): X509Certificate[] {
  const { status } = JSON.parse(answer.body) as { status: { certificate: string } };
  const pem = Buffer.from(status.certificate, 'base64').toString();
  return (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g) ?? []).map(
    (block) => new X509Certificate(block),
  );
}

export const outcomeOf = (answer: HttpAnswer) => answer.headers['x-countersign-outcome'];

export interface ErrorBody {
  kind: string;
  apiVersion: string;
  status: string;
  reason: string;
  code: number;
  message: string;
  details?: { causes: { reason: string; message: string }[] };
  error: { code: number; message: string; status: string };
  retryAfterSeconds?: number;
}
export const errorIn = (answer: HttpAnswer) => JSON.parse(answer.body) as ErrorBody;
