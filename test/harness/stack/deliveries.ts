import { X509Certificate } from 'node:crypto';
import type { HttpAnswer, HttpEvent } from '../../../adapters/lambda/http.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import { postedEvent } from '../lambda/callers.ts';
import { makeRequest } from '../x509/requests.ts';
import { clientSigner, clusterName } from './world.ts';

/** An approved request as a client posts it to be signed. */
export function signedObject(uid: string, commonName = 'alice', spec: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: `request-${commonName}`, uid, resourceVersion: '1' },
    spec: {
      signerName: clientSigner,
      request: Buffer.from(makeRequest({ subject: { O: 'testers', CN: commonName } }).pem).toString('base64'),
      usages: ['digital signature', 'client auth'],
      username: 'alice',
      groups: ['system:authenticated'],
      ...spec,
    },
    status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Test', message: '' }] },
  };
}

export function postEvent(object: JsonObject, cluster = clusterName): HttpEvent {
  return postedEvent(cluster, 'sign', object);
}

/** DER of the one certificate in `status.certificate`. */
export function certificateOf({ body }: Pick<HttpAnswer, 'body'>): Buffer {
  const { status } = JSON.parse(body) as { status: { certificate: string } };
  return new X509Certificate(Buffer.from(status.certificate, 'base64')).raw;
}
