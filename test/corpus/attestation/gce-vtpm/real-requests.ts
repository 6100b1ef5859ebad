/** Two requests of the real gke-exec-auth-plugin for VM `vm` with two keys. An x coordinate of the second one begins with zero. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface RealRequest {
  /** What spec.request holds. */
  readonly text: string;
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly username: string;
  readonly groups: readonly string[];
  readonly usages: readonly string[];
  readonly signerName: string;
  readonly extra: Readonly<Record<string, readonly string[]>>;
  /** Hex, as are the next two: as the TPM wrote them. */
  readonly certifiedName: string;
  readonly publicArea: string;
  /** Decimal milliseconds. */
  readonly clock: string;
}

interface RealRequests {
  /** PEM: `signingKey.ekPub` of the Compute API's answer about the VM. */
  readonly signingKey: string;
  /** PEM: issued the attestation certificates of both requests, which are valid from 21 to 23 November 2026. */
  readonly certificateAuthority: string;
  readonly requests: Readonly<Record<'with-aik-cert' | 'leading-zero-x', RealRequest>>;
}

export const { signingKey, certificateAuthority, requests } = JSON.parse(
  readFileSync(join(import.meta.dirname, 'requests.json'), 'utf8'),
) as RealRequests;

export const realVm = {
  projectNumber: '2',
  projectId: 'p0',
  zone: 'us-central1-c',
  instanceId: '7',
  name: 'vm',
} as const;

/** While the attestation certificates are valid. */
export const realNow = Date.parse('2026-11-21T22:17:35Z');

/** The object as the API server stores it, approved as gcp-controller-manager does. */
export function objectOf({ text, metadata, username, groups, usages, signerName, extra }: RealRequest) {
  return {
    kind: 'CertificateSigningRequest',
    apiVersion: 'certificates.k8s.io/v1',
    metadata: { ...metadata, resourceVersion: '208', creationTimestamp: '2026-11-21T22:17:35Z' },
    spec: { request: Buffer.from(text).toString('base64'), signerName, usages, username, groups, extra },
    status: {
      conditions: [
        {
          type: 'Approved',
          status: 'True',
          reason: 'AutoApproved',
          message: 'Auto approving kubelet client certificate with TPM attestation after SubjectAccessReview.',
          lastUpdateTime: '2026-11-21T22:17:35Z',
          lastTransitionTime: '2026-11-21T22:17:35Z',
        },
      ],
    },
  };
}
