/**
 * The requests that the checks post. Their certificates are for names without an owner, valid for ten minutes, and for keys
 * that are never stored, so the checks may run against an endpoint whose CA is trusted.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { makeRequest, newKey } from '../harness/x509/requests.ts';
import type { MadeRequest, RequestSpec, SanSpec, SubjectSpec } from '../harness/x509/requests.ts';

export interface CsrObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>> & { readonly name: string; readonly uid: string };
  readonly spec: Readonly<Record<string, unknown>> & { readonly request: string; readonly signerName: string };
  readonly status: Readonly<Record<string, unknown>>;
}

/** A request that its signer permits, and the expected content of its certificate. */
export interface SignerQuestion {
  readonly signerName: SignerName;
  readonly subject: SubjectSpec;
  readonly sans?: SanSpec;
  readonly usages: readonly string[];
  readonly username: string;
  readonly groups: readonly string[];
  readonly expected: {
    /** In the form of node:crypto. */
    readonly subject: string;
    readonly subjectAltNames: readonly string[];
    /** DER of KeyUsage, hex. */
    readonly keyUsage: string;
    readonly extendedKeyUsage: readonly string[];
  };
}

const clientAuth = '1.3.6.1.5.5.7.3.2';
const serverAuth = '1.3.6.1.5.5.7.3.1';

export const signerNames = [
  'kubernetes.io/kube-apiserver-client-kubelet',
  'kubernetes.io/kubelet-serving',
  'kubernetes.io/kube-apiserver-client',
] as const;
export type SignerName = (typeof signerNames)[number];

/** The requester of a client certificate: a profile may name its requesters. */
export interface Requester {
  readonly username: string;
  readonly groups: readonly string[];
}

export function questionFor(signerName: SignerName, requester: Requester): SignerQuestion {
  const id = randomBytes(4).toString('hex');
  const node = `countersign-conformance-${id}`;
  const nodeSubject = { O: 'system:nodes', CN: `system:node:${node}` };
  const nodeSubjectText = `O=system:nodes\nCN=system:node:${node}`;
  switch (signerName) {
    case 'kubernetes.io/kube-apiserver-client-kubelet':
      return {
        signerName,
        subject: nodeSubject,
        usages: ['digital signature', 'client auth'],
        username: 'system:bootstrap:confor',
        groups: ['system:bootstrappers', 'system:authenticated'],
        expected: {
          subject: nodeSubjectText,
          subjectAltNames: [],
          keyUsage: '03020780',
          extendedKeyUsage: [clientAuth],
        },
      };
    case 'kubernetes.io/kubelet-serving':
      return {
        signerName,
        subject: nodeSubject,
        // Addresses for documentation, which no host has (RFC 5737, RFC 3849).
        sans: { dns: [`${node}.invalid`, 'b.invalid'], ip: ['192.0.2.7', '2001:db8::7'] },
        usages: ['digital signature', 'key encipherment', 'server auth'],
        username: `system:node:${node}`,
        groups: ['system:nodes', 'system:authenticated'],
        expected: {
          subject: nodeSubjectText,
          subjectAltNames: [
            `DNS:${node}.invalid`,
            'DNS:b.invalid',
            'IP Address:192.0.2.7',
            'IP Address:2001:DB8:0:0:0:0:0:7',
          ],
          keyUsage: '030205a0',
          extendedKeyUsage: [serverAuth],
        },
      };
    case 'kubernetes.io/kube-apiserver-client':
      return {
        signerName,
        subject: { O: 'countersign-conformance', CN: node },
        sans: {
          dns: [`${node}.invalid`],
          email: ['user@countersign.invalid'],
          uri: ['spiffe://countersign.invalid/x'],
        },
        usages: ['client auth'],
        ...requester,
        expected: {
          subject: `O=countersign-conformance\nCN=${node}`,
          subjectAltNames: [
            `DNS:${node}.invalid`,
            'email:user@countersign.invalid',
            'URI:spiffe://countersign.invalid/x',
          ],
          keyUsage: '',
          extendedKeyUsage: [clientAuth],
        },
      };
  }
}

export interface ObjectChange {
  readonly request?: RequestSpec;
  /** Replaces the request. */
  readonly pem?: string;
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

export interface Asked {
  readonly object: CsrObject;
  readonly made: MadeRequest;
}

/** An approved object as the API server returns it, with values that a careless endpoint loses: see check `unchanged`. */
export function ask(question: SignerQuestion, { request, pem, metadata, spec, status }: ObjectChange = {}): Asked {
  const made = makeRequest({
    key: newKey('P-256'),
    subject: question.subject,
    ...(question.sans === undefined ? {} : { sans: question.sans }),
    ...request,
  });
  const time = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  return {
    made,
    object: {
      kind: 'CertificateSigningRequest',
      apiVersion: 'certificates.k8s.io/v1',
      metadata: {
        name: `countersign-conformance-${randomBytes(6).toString('hex')}`,
        uid: randomUUID(),
        resourceVersion: '4711',
        generation: 1,
        creationTimestamp: time,
        labels: { 'countersign.dev/conformance': 'true', empty: '' },
        annotations: { 'example.com/note': 'Ünïcödé, "quotes", \\ and \u2028' },
        managedFields: [{ manager: 'kubectl', operation: 'Update', fieldsV1: { 'f:spec': { '.': {} } } }],
        ...metadata,
      },
      spec: {
        request: Buffer.from(pem ?? made.pem).toString('base64'),
        signerName: question.signerName,
        expirationSeconds: 600,
        usages: question.usages,
        username: question.username,
        uid: 'a-user',
        groups: question.groups,
        extra: { 'authentication.kubernetes.io/credential-id': ['X509SHA256=00'], none: [] },
        // A field of a newer Kubernetes: the answer must have it too.
        fieldOfALaterVersion: { list: [1, null, { deep: true }], nothing: null },
        ...spec,
      },
      status: {
        conditions: [
          {
            type: 'Approved',
            status: 'True',
            reason: 'Conformance',
            message: 'approved for conformance checks: no API server holds this object',
            lastUpdateTime: time,
            lastTransitionTime: time,
          },
        ],
        fieldOfALaterVersion: 'kept',
        ...status,
      },
    },
  };
}
