/** What kube-controller-manager refuses, and its messages: a separate list, not taken from the code under test. */
import type { RequestSpec } from '../harness/x509/requests.ts';
import type { ObjectChange, SignerName, SignerQuestion } from './questions.ts';

/** A request to a signer, and the message with which the in-tree signer refuses it. */
export interface InTreeCase {
  readonly what: string;
  readonly change: (question: SignerQuestion) => ObjectChange;
  readonly text: string;
}

const subjectOf = ({ subject }: SignerQuestion): Readonly<Record<string, string>> => subject as Record<string, string>;
const withSubject =
  (change: Readonly<Record<string, string>>) =>
  (question: SignerQuestion): ObjectChange => ({ request: { subject: { ...subjectOf(question), ...change } } });
const withRequest = (request: RequestSpec) => (): ObjectChange => ({ request });
const withUsages =
  (...usages: readonly string[]) =>
  (): ObjectChange => ({ spec: { usages } });

const notNodes: InTreeCase = {
  what: 'another organization',
  change: withSubject({ O: 'countersign-conformance' }),
  text: 'subject organization is not system:nodes',
};
const notNode: InTreeCase = {
  what: 'another common name',
  change: withSubject({ CN: 'countersign-conformance' }),
  text: 'subject common name does not begin with system:node:',
};

/** Kubernetes 1.36.3, pkg/apis/certificates/helpers.go and pkg/controller/certificates/signer/signer.go: the exact messages. */
export const inTree: Readonly<Record<SignerName, readonly InTreeCase[]>> = {
  'kubernetes.io/kube-apiserver-client-kubelet': [
    notNodes,
    {
      what: 'a DNS name',
      change: withRequest({ sans: { dns: ['a.invalid'] } }),
      text: 'DNS subjectAltNames are not allowed',
    },
    {
      what: 'an email address',
      change: withRequest({ sans: { email: ['a@b.invalid'] } }),
      text: 'Email subjectAltNames are not allowed',
    },
    {
      what: 'an IP address',
      change: withRequest({ sans: { ip: ['192.0.2.1'] } }),
      text: 'IP subjectAltNames are not allowed',
    },
    {
      what: 'a URI',
      change: withRequest({ sans: { uri: ['spiffe://a.invalid/b'] } }),
      text: 'URI subjectAltNames are not allowed',
    },
    notNode,
    {
      what: 'server auth too',
      change: withUsages('digital signature', 'client auth', 'server auth'),
      text: 'usages did not match [client auth digital signature key encipherment]',
    },
  ],
  'kubernetes.io/kubelet-serving': [
    notNodes,
    { what: 'no names', change: withRequest({ sans: {} }), text: 'DNS or IP subjectAltName is required' },
    {
      what: 'an email address',
      change: withRequest({ sans: { dns: ['a.invalid'], email: ['a@b.invalid'] } }),
      text: 'Email subjectAltNames are not allowed',
    },
    {
      what: 'a URI',
      change: withRequest({ sans: { dns: ['a.invalid'], uri: ['spiffe://a.invalid/b'] } }),
      text: 'URI subjectAltNames are not allowed',
    },
    {
      what: 'client auth too',
      change: withUsages('digital signature', 'server auth', 'client auth'),
      text: 'usages did not match [digital signature key encipherment server auth]',
    },
    notNode,
  ],
  'kubernetes.io/kube-apiserver-client': [
    {
      what: 'server auth too',
      change: withUsages('client auth', 'server auth'),
      text: 'invalid usage for client certificate: server auth',
    },
    {
      what: 'no client auth',
      change: withUsages('digital signature'),
      text: 'missing required usage for client certificate: client auth',
    },
  ],
};

/** A request with many faults, and all messages of the in-tree signer about it, in its order. */
export const manyFaults: Readonly<
  Record<SignerName, { readonly change: ObjectChange; readonly texts: readonly string[] }>
> = {
  'kubernetes.io/kube-apiserver-client-kubelet': {
    change: {
      request: { subject: { O: 'others', CN: 'another' }, sans: { dns: ['a.invalid'], ip: ['192.0.2.1'] } },
      spec: { usages: ['client auth', 'code signing'] },
    },
    texts: [
      'subject organization is not system:nodes',
      'DNS subjectAltNames are not allowed',
      'IP subjectAltNames are not allowed',
      'subject common name does not begin with system:node:',
      'usages did not match [client auth digital signature key encipherment]',
    ],
  },
  'kubernetes.io/kubelet-serving': {
    change: {
      request: { subject: { O: 'others', CN: 'another' }, sans: { email: ['a@b.invalid'] } },
      spec: { usages: ['server auth'] },
    },
    texts: [
      'subject organization is not system:nodes',
      'DNS or IP subjectAltName is required',
      'Email subjectAltNames are not allowed',
      'usages did not match [digital signature key encipherment server auth]',
      'subject common name does not begin with system:node:',
    ],
  },
  'kubernetes.io/kube-apiserver-client': {
    change: { spec: { usages: ['server auth', 'code signing'] } },
    texts: [
      'invalid usage for client certificate: server auth',
      'invalid usage for client certificate: code signing',
      'missing required usage for client certificate: client auth',
    ],
  },
};
