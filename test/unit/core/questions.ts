/** Requests and profiles as plain values, for tests of the rules: what decoding makes of bytes is tested elsewhere. */
import type { CertificateRequest, KeyKind, PublicKey, SubjectAltNames } from '../../../core/x509/model.ts';
import type { RequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import type { CustomRules, Profile, ProfileKind, SubjectLimits } from '../../../core/policy/profile.ts';

export interface Asked {
  readonly commonName?: string;
  readonly organizations?: readonly string[];
  /** Besides common name and organizations: dotted OIDs. */
  readonly otherAttributes?: readonly string[];
  readonly sans?: Partial<SubjectAltNames>;
  readonly usages?: readonly string[];
  readonly key?: Partial<PublicKey>;
  readonly signatureHash?: string | undefined;
  readonly username?: string;
  readonly groups?: readonly string[];
}

export function object(asked: Asked = {}): RequestObject {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    name: 'request',
    uid: '1f2e3d4c',
    request: new Uint8Array(),
    usages: asked.usages ?? [],
    username: asked.username ?? 'alice',
    groups: asked.groups ?? ['system:authenticated'],
    requesterNodes: [],
    conditions: [],
    hasCertificate: false,
  };
}

export function request(asked: Asked = {}): CertificateRequest {
  const { commonName = '', organizations = [], otherAttributes = [] } = asked;
  return {
    der: new Uint8Array(),
    subject: {
      attributes: [
        ...organizations.map((value) => ({ type: '2.5.4.10', value })),
        ...otherAttributes.map((type) => ({ type, value: 'x' })),
        ...(commonName === '' ? [] : [{ type: '2.5.4.3', value: commonName }]),
      ],
      commonName,
      organizations,
    },
    sans: { dns: [], email: [], ip: [], uri: [], unsupported: [], ...asked.sans },
    publicKey: { kind: 'P-256', description: 'ECDSA P-256', bits: 256, spki: new Uint8Array(), ...asked.key },
    signatureHash: 'signatureHash' in asked ? asked.signatureHash : 'SHA-256',
    requestedExtensions: [],
    evidence: [],
  };
}

const allKeys: readonly KeyKind[] = ['RSA', 'P-256', 'P-384', 'P-521', 'Ed25519'];

export function profile(kind: ProfileKind, more: Partial<Profile> = {}): Profile {
  return {
    signerName: kind === 'custom' ? 'k8s.example.com/web' : `kubernetes.io/${kind}`,
    kind,
    ca: 'ca',
    maxTtlSeconds: 3600,
    keys: allKeys,
    allowReserved: [],
    reserved: { names: [], addresses: [], clusterDomain: 'cluster.local' },
    subject: kind === 'custom' ? { commonNames: [], organizations: [] } : {},
    requester: { users: [], groups: [] },
    ...more,
  };
}

interface CustomParts {
  readonly usages?: Partial<CustomRules['usages']>;
  readonly sans?: Partial<CustomRules['sans']>;
}

export function customRules(parts: CustomParts = {}): CustomRules {
  return {
    usages: { allowed: ['digital signature', 'server auth'], required: [], ...parts.usages },
    sans: { dns: [], email: [], ip: [], uri: [], required: false, ...parts.sans },
  };
}

/** A signer of one's own that permits these and nothing else. */
export function customProfile({ subject, ...parts }: CustomParts & { readonly subject?: SubjectLimits }): Profile {
  return profile('custom', {
    custom: customRules(parts),
    subject: { commonNames: [], organizations: [], ...subject },
  });
}

/** What each signer accepts at least; tests change one thing at a time. */
export const acceptable: Readonly<Record<Exclude<ProfileKind, 'custom'>, Asked>> = {
  'kube-apiserver-client': { commonName: 'alice', organizations: ['dev'], usages: ['client auth'] },
  'kube-apiserver-client-kubelet': {
    commonName: 'system:node:n1',
    organizations: ['system:nodes'],
    usages: ['key encipherment', 'digital signature', 'client auth'],
  },
  'kubelet-serving': {
    commonName: 'system:node:n1',
    organizations: ['system:nodes'],
    sans: { dns: ['n1'], ip: ['10.0.0.1'] },
    usages: ['key encipherment', 'digital signature', 'server auth'],
  },
  'legacy-unknown': { commonName: 'anything', usages: ['digital signature'] },
};
