/**
 * What a node agent makes of its instance: the whole `spec.request`, CSR first, then the blocks of its evidence
 * (docs/attestation.md). Everything is computed here from the documents, the binding digest among it: a mistake of the
 * product's must not be made twice.
 */
import { createHash } from 'node:crypto';
import * as der from '../../x509/der-writer.ts';
import { makeRequest, newKey, type MadeRequest, type RequestSpec, type TestKey } from '../../x509/requests.ts';
import { presign, stsToken, type PresignOptions } from '../protocol/presign.ts';
import type { FakeAws } from '../world.ts';

export interface NodeEvidenceOptions {
  readonly clusterName: string;
  /** The deployment's own name, as configured on both sides. */
  readonly audience: string;
  readonly signerName: string;
  readonly nodeName: string;
  /** Absent = a new P-256 key. */
  readonly key?: TestKey;
  readonly nonce?: string;
  /** When the proof is made; absent = now. */
  readonly at?: number;
  /** Whose credentials sign it. Absent: the instance's own. */
  readonly signedBy?: 'identity' | 'profile' | PresignOptions['credential'];
  /** SANs, extensions, another subject … of the CSR. */
  readonly csr?: RequestSpec;
  /** Extension 1.3.6.1.4.1.11129.2.1.21. */
  readonly providerId?: string;
  /** Of the presigned request, besides or instead. */
  readonly presign?: Partial<PresignOptions>;
  /** Of the DATA block, besides or instead. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** `aws/v2` unless said otherwise. */
  readonly version?: string;
}

export interface NodeEvidence {
  /** `spec.request`, before base64. */
  readonly request: string;
  readonly csr: MadeRequest;
  readonly key: TestKey;
  /** B in lower-case hex. */
  readonly binding: string;
  readonly presignedUrl: string;
  readonly sts: string;
  readonly version: string;
  /** What the DATA block says. */
  readonly data: Readonly<Record<string, unknown>>;
}

const providerIdOid = '1.3.6.1.4.1.11129.2.1.21';

export function makeNodeEvidence(aws: FakeAws, instanceId: string, options: NodeEvidenceOptions): NodeEvidence {
  const { clusterName, nodeName, nonce, version = 'aws/v2' } = options;
  const key = options.key ?? newKey('P-256');
  const csr = makeNodeRequest(nodeName, key, options);
  const binding = bindingOf({ ...options, spki: key.spki });
  const region = aws.instances.get(instanceId)?.region ?? '';
  const presignedUrl = presign({
    credential: credentialOf(aws, instanceId, options.signedBy ?? 'identity'),
    region,
    id: `csr-attest/v1/${clusterName}/${binding}`,
    at: options.at ?? aws.now(),
    ...options.presign,
  });
  const sts = stsToken(presignedUrl);
  const which = version === 'aws/v1' ? { v: 1, rsa2048: aws.rsa2048(instanceId) } : claims(aws, instanceId);
  const data = { ...which, sts, ...(nonce === undefined ? {} : { nonce }), ...options.data };
  const request = withEvidence(csr.pem, version, JSON.stringify(data));
  return { request, csr, key, binding, presignedUrl, sts, version, data };
}

/** What aws/v2 says instead of a document. */
function claims(aws: FakeAws, instanceId: string): object {
  const { account, region } = aws.instances.get(instanceId) ?? {};
  return { v: 2, account, region, instance: instanceId };
}

/** The CSR of a kubelet, as the client profile has it unless `csr` says otherwise. */
export function makeNodeRequest(
  nodeName: string,
  key: TestKey,
  { csr = {}, providerId }: Pick<NodeEvidenceOptions, 'csr' | 'providerId'> = {},
): MadeRequest {
  const extension = providerId === undefined ? [] : [{ oid: providerIdOid, value: der.utf8(providerId) }];
  return makeRequest({
    key,
    subject: { O: 'system:nodes', CN: `system:node:${nodeName}` },
    ...csr,
    extensions: [...(csr.extensions ?? []), ...extension],
  });
}

/** The blocks behind a CSR. */
export function withEvidence(csrPem: string, version: string, data: string | Uint8Array): string {
  return csrPem + block('PROVIDER', Buffer.from(version)) + block('DATA', Buffer.from(data));
}

function block(name: string, content: Buffer): string {
  const label = `KUBELET AUTHENTICATOR ATTESTATION ${name}`;
  const lines = content.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** B of docs/attestation.md, in lower-case hex. */
export function bindingOf(bound: {
  readonly audience: string;
  readonly signerName: string;
  readonly nodeName: string;
  readonly nonce?: string;
  /** DER. */
  readonly spki: Uint8Array;
}): string {
  const fields = [bound.audience, bound.signerName, bound.nodeName, bound.nonce ?? ''].flatMap((text) => {
    const bytes = Buffer.from(text, 'utf8');
    return [Buffer.of(bytes.length >> 8, bytes.length & 0xff), bytes];
  });
  const key = createHash('sha256').update(bound.spki).digest();
  return createHash('sha256')
    .update(Buffer.concat([Buffer.from('csr-attest/v1\0'), ...fields, key]))
    .digest('hex');
}

function credentialOf(
  aws: FakeAws,
  instanceId: string,
  signedBy: NonNullable<NodeEvidenceOptions['signedBy']>,
): PresignOptions['credential'] {
  if (signedBy === 'identity') return aws.identityCredential(instanceId);
  return signedBy === 'profile' ? aws.profileCredential(instanceId) : signedBy;
}
