/** HTTP events as API Gateway would hand them over, around objects as an API server would send them. */
import type { HttpEvent } from '../../../adapters/lambda/http.ts';

export const clusterName = 'demo';
export const signPath = `/v1/clusters/${clusterName}/sign`;

export interface EventSpec {
  readonly method?: string;
  readonly path?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
  readonly base64?: boolean;
}

/** `body` as text, or anything else as the JSON that JSON.stringify makes of it. */
export function signEvent(body: unknown, spec: EventSpec = {}): HttpEvent {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return eventOf({ ...spec, body: text });
}

/** Bytes that no JavaScript string holds come as API Gateway sends them: in base64. */
export function bytesEvent(body: Uint8Array, spec: EventSpec = {}): HttpEvent {
  return eventOf({ ...spec, body: Buffer.from(body).toString('base64'), base64: true });
}

export function eventOf({ method = 'POST', path = signPath, query = '', headers, body, base64 }: EventSpec): HttpEvent {
  return {
    version: '2.0',
    rawPath: path,
    rawQueryString: query,
    headers: headers ?? { 'content-type': 'application/json', host: 'localhost' },
    requestContext: { http: { method, path } },
    ...(body === undefined ? {} : { body }),
    isBase64Encoded: base64 ?? false,
  };
}

export interface ObjectSpec {
  readonly uid?: string;
  readonly request: Uint8Array;
  readonly signerName?: string;
  readonly usages?: readonly string[];
}

/** An approved CertificateSigningRequest as the API server shows it. */
export function approvedObject({ uid = 'hostile-uid', request, signerName, usages }: ObjectSpec) {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: {
      name: 'hostile',
      uid,
      resourceVersion: '7',
      creationTimestamp: '2025-01-01T00:00:00Z',
      annotations: { note: 'none' },
    },
    spec: {
      request: Buffer.from(request).toString('base64'),
      signerName: signerName ?? 'kubernetes.io/kube-apiserver-client',
      expirationSeconds: 3600,
      usages: usages ?? ['digital signature', 'client auth'],
      username: 'hostile',
      uid: 'user-uid',
      groups: ['system:authenticated'],
      extra: { 'example.com/key': ['value'] },
    },
    status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Test', message: 'yes' }] },
  };
}
