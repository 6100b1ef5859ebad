/**
 * What other systems accept from an EC2 instance, as strictly as each of them checks it. A thief of evidence may present
 * whatever they read in the form that the system wants; each function is the system's own judgement of that. The rules were
 * read in the systems' sources; the calls go to the fake STS, which believes no signature unverified.
 */
import { createHash } from 'node:crypto';
import type { PinnedCertificate } from '../../../../core/attestation/aws/cms.ts';
import { verifySignedData } from '../../../../core/attestation/aws/cms.ts';
import { sendTo } from '../sts-endpoint.ts';

/** A signed GetCallerIdentity request that the verifier is to send. */
export interface IdentityRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  /** In lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The ARN that the system believes, or why it refuses. */
export type Believed = { readonly arn: string } | { readonly refused: string };

interface Sts {
  readonly port: number;
}

/** Amazon EKS and aws-iam-authenticator: the server writes the header `x-k8s-aws-id` itself, with its own cluster's name. */
export function eksToken(sts: Sts, clusterId: string) {
  return (request: IdentityRequest): Promise<Believed> => {
    if (!signedHeaders(request).includes('x-k8s-aws-id')) return refused('x-k8s-aws-id is not signed');
    return ask(sts, { method: 'GET', url: request.url, headers: { 'x-k8s-aws-id': clusterId } });
  };
}

/**
 * Vault's and Consul's iam methods (one code: the ARN is split at colons into six parts). Sent as the client wrote it, once
 * its headers are checked. `serverId` is their iam_server_id_header_value; not every operator sets it.
 */
export function vaultIam(sts: Sts, { serverId }: { readonly serverId?: string }) {
  return async (request: IdentityRequest): Promise<Believed> => {
    const header = 'x-vault-aws-iam-server-id';
    if (serverId !== undefined) {
      if (request.headers[header] !== serverId) return refused(`${header} is not the server's`);
      if (!signedHeaders(request).includes(header)) return refused(`${header} is not signed`);
    }
    const believed = await ask(sts, request);
    if ('refused' in believed) return believed;
    const parts = believed.arn.split(':').length;
    return parts === 6 ? believed : refused(`the ARN has ${parts} parts, not 6`);
  };
}

/** Teleport's iam method: a POST whose signed header holds the challenge of this very connection. */
export function teleportIam(sts: Sts, challenge: string) {
  return signedHeaderOf(sts, 'POST', 'x-teleport-challenge', challenge);
}

/** kOps: the signed header holds the SHA-256 of what the node asks for. */
export function kopsBootstrap(sts: Sts, body: string) {
  return signedHeaderOf(sts, 'GET', 'x-kops-request-sha', sha256(body));
}

/** MongoDB's MONGODB-AWS: a POST whose signed header holds the server's nonce. */
export function mongodbAws(sts: Sts, nonce: string) {
  return signedHeaderOf(sts, 'POST', 'x-mongodb-server-nonce', nonce);
}

function signedHeaderOf(sts: Sts, method: 'GET' | 'POST', header: string, value: string) {
  return (request: IdentityRequest): Promise<Believed> => {
    if (request.method !== method) return refused(`is not a ${method}`);
    if (request.headers[header] !== value) return refused(`${header} is another`);
    if (!signedHeaders(request).includes(header)) return refused(`${header} is not signed`);
    return ask(sts, request);
  };
}

/**
 * SPIRE aws_iid, Vault ec2, step-ca AWS, Teleport ec2: the instance identity document as the region signed it, from any
 * sender. `texts`: everything that stands in the evidence.
 */
export function identityDocument(certificates: readonly PinnedCertificate[], now: number) {
  return (texts: readonly string[]): string | undefined => {
    for (const text of texts) {
      const read = verifySignedData(Buffer.from(text.replace(/\s/g, ''), 'base64'), certificates, now);
      if (read.ok) return Buffer.from(read.value.content).toString();
    }
    return undefined;
  };
}

async function ask({ port }: Sts, { method, url, headers, body: form }: IdentityRequest): Promise<Believed> {
  const { host, pathname, search } = new URL(url);
  const sent = { method, host, path: pathname + search, headers: { ...headers, accept: 'application/json' } };
  const { status, body } = await sendTo(port, form === undefined ? sent : { ...sent, body: form });
  if (status !== 200) return refused(`STS answers ${status}`);
  return { arn: /"Arn":"([^"]+)"/.exec(body.replaceAll(/\s/g, ''))?.[1] ?? '' };
}

/** In the query of a presigned request, else in its Authorization header. */
function signedHeaders({ url, headers }: IdentityRequest): readonly string[] {
  const [, inHeader = ''] = /SignedHeaders=([^,]+)/.exec(headers['authorization'] ?? '') ?? [];
  return (new URL(url).searchParams.get('X-Amz-SignedHeaders') ?? inHeader).split(';');
}

function refused(why: string): Promise<Believed> {
  return Promise.resolve({ refused: why });
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}
