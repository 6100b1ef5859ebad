/** Requests of nodes that prove nothing but that their name is new: evidence `insecure/v1`. */
import { randomUUID } from 'node:crypto';
import { makeRequest, newKey, pemBlock } from '../../../harness/x509/requests.ts';

export const insecureSigner = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-insecure';

/** The same key for the same node: who comes again brings what it came with first, in another request. */
export function nodeRequests(count: number) {
  const providerId = Buffer.from('suite:///1');
  const { pem } = makeRequest({
    subject: { O: 'system:nodes', CN: 'system:node:suite-1' },
    key: newKey('P-256'),
    // The node's providerID, as a UTF8String.
    extensions: [
      { oid: '1.3.6.1.4.1.11129.2.1.21', value: Buffer.concat([Buffer.from([0x0c, providerId.length]), providerId]) },
    ],
  });
  const evidence =
    pemBlock('KUBELET AUTHENTICATOR ATTESTATION PROVIDER', Buffer.from('insecure/v1')) +
    pemBlock('KUBELET AUTHENTICATOR ATTESTATION DATA', Buffer.from('{"v":1}'));
  return Array.from({ length: count }, (_, index) => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: `suite-${index}`, uid: randomUUID() },
    spec: {
      request: Buffer.from(pem + evidence).toString('base64'),
      signerName: insecureSigner,
      usages: ['digital signature', 'client auth'],
      username: 'system:bootstrap:suite',
      groups: ['system:bootstrappers', 'system:authenticated'],
    },
    status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Suite', message: '' }] },
  }));
}
