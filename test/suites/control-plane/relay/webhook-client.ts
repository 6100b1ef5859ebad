import { request as httpsRequest } from 'node:https';
import { clusterPath } from '../../../harness/stack/stack.ts';
import type { CsrObject } from '../../../harness/stack/requests.ts';
import type { KeyAndCertificate } from '../../../harness/x509/test-certificates.ts';

export interface WebhookLogin {
  readonly token?: string;
  readonly certificate?: KeyAndCertificate;
}

interface Answer {
  readonly status: number;
  readonly outcome: unknown;
  readonly body: CsrObject & { readonly message?: string };
}

/** As gcp-controller-manager posts it. */
export function postAsWebhookClient(
  { port, caPem, login: { token, certificate } }: { port: number; caPem: string; login: WebhookLogin },
  object: unknown,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest({
      host: '127.0.0.1',
      port,
      path: `${clusterPath}/sign?timeout=30s`,
      method: 'POST',
      agent: false,
      ca: caPem,
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(certificate === undefined ? {} : { cert: certificate.certificatePem, key: certificate.keyPem }),
    });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => {
        const { statusCode: status = 0, headers } = incoming;
        const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Answer['body'];
        resolve({ status, outcome: headers['x-countersign-outcome'], body });
      });
    });
    outgoing.end(JSON.stringify(object));
  });
}
