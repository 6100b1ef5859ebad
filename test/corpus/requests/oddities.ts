/** Requests that one might expect the two signers to differ about, and that they treat alike. */
import * as der from '../../harness/x509/der-writer.ts';
import { makeRequest, pemBlock } from '../../harness/x509/requests.ts';

export interface OddRequest {
  readonly name: string;
  readonly what: string;
  readonly signerName: string;
  readonly request: Buffer;
  readonly usages: readonly string[];
}

export function oddRequests(): OddRequest[] {
  const { pem } = makeRequest({ subject: { CN: 'attested' } });
  const evidence =
    pemBlock('KUBELET AUTHENTICATOR ATTESTATION PROVIDER', Buffer.from('aws')) +
    pemBlock('KUBELET AUTHENTICATOR ATTESTATION DATA', Buffer.from('{}'));
  const pair = (type: string, value: string): Buffer => der.sequence(der.oid(type), der.utf8(value));
  const requests: readonly (readonly [string, Buffer])[] = [
    ['evidence behind the request', Buffer.from(pem + evidence)],
    [
      'a SET OF that is out of order',
      makeRequest({ rawSubject: der.sequence(der.set(pair('2.5.4.10', 'b'), pair('2.5.4.10', 'a'))) }).bytes,
    ],
    [
      'a common name before another in the same set',
      makeRequest({ rawSubject: der.sequence(der.set(pair('2.5.4.3', 'b'), pair('2.5.4.3', 'a'))) }).bytes,
    ],
    ['a common name of four kilobytes', makeRequest({ subject: { CN: 'n'.repeat(4096) } }).bytes],
    ['a name that only looks reserved', makeRequest({ subject: { O: 'systematic', CN: 'kubernauts' } }).bytes],
    [
      'as many names as there may be',
      makeRequest({ sans: { dns: Array.from({ length: 256 }, (_, i) => `n${i}`) } }).bytes,
    ],
  ];
  return requests.map(([what, request], index) => ({
    name: `odd-${index}`,
    what,
    signerName: 'kubernetes.io/kube-apiserver-client',
    request,
    usages: ['client auth'],
  }));
}
