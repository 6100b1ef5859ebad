/**
 * Approves or denies requests with the rights of the caller: the same call as `kubectl certificate approve`, after the command has
 * read what it decides. The API server checks the verb `approve` on the signer.
 */
import type {
  V1CertificateSigningRequestCondition,
  V1CertificateSigningRequestSpec,
  V1ObjectMeta,
} from '@kubernetes/client-node';
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import { ApiRefused } from '../../adapters/kubernetes/refused.ts';
import { failIfRefused } from '../cluster/object-answers.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { readRequest, viewOf } from './read-requests.ts';
import type { RequestView } from './request-view.ts';

export interface Decision {
  readonly type: 'Approved' | 'Denied';
  /** Free text, for the condition's message. */
  readonly message: string;
  /** Only for a request whose key has this SHA-256, which the requester gave in another way. */
  readonly keyFingerprint?: string;
}

export interface Decided {
  readonly name: string;
  /** `already`: another caller decided the same before. */
  readonly outcome: 'decided' | 'already' | 'refused';
  /** Why it is refused. */
  readonly message?: string;
  readonly request?: RequestView;
}

/** As the API server sends it. It keeps the certificate whatever a write to /approval says. */
interface Stored {
  readonly metadata: V1ObjectMeta;
  readonly spec: V1CertificateSigningRequestSpec;
  readonly status?: { readonly conditions?: readonly V1CertificateSigningRequestCondition[] };
}

/** Decides one request. What only this request is refused for is in the answer; what ends the command is thrown. */
export async function decide(cluster: ClusterConnection, name: string, decision: Decision): Promise<Decided> {
  for (let attempt = 1; ; attempt += 1) {
    const raw = await readRequest(cluster, name);
    const request = viewOf(raw, name);
    const settled = settledBefore(request, decision);
    if (settled !== undefined) return { name, request, ...settled };
    const { status = {}, ...object } = raw as Stored;
    const conditions = [
      ...(status.conditions ?? []),
      {
        type: decision.type,
        status: 'True',
        reason: decision.type === 'Approved' ? 'OperatorApproved' : 'OperatorDenied',
        message: decision.message,
      },
    ];
    // With UID and resourceVersion: a request that was deleted and made again under this name, or changed, is a conflict.
    const body = { ...object, status: { conditions } };
    const written = cluster.certificates.replaceCertificateSigningRequestApproval({ name, body });
    const isConflict = await written.then(
      () => false,
      (error: unknown) => error instanceof ApiRefused && error.why === 'Conflict',
    );
    if (isConflict && attempt === 1) continue;
    await failIfRefused(written, name, {
      Forbidden: `it needs update on certificatesigningrequests/approval, and approve on signers ${request.signerName}`,
      Conflict: 'another caller changes it at the same time; try again',
    });
    return { name, outcome: 'decided', request };
  }
}

/** `undefined`: it is to be decided. */
function settledBefore(
  { state, asked, reason = '' }: RequestView,
  { type, keyFingerprint }: Decision,
): Pick<Decided, 'outcome' | 'message'> | undefined {
  const wanted = type === 'Approved';
  if (state === 'failed') return { outcome: 'refused', message: `it failed before (${reason})` };
  if (state === 'denied') return wanted ? { outcome: 'refused', message: `it is denied (${reason})` } : already;
  if (state === 'issued')
    return wanted
      ? already
      : { outcome: 'refused', message: 'it has its certificate: countersign cert revoke ends that' };
  if (state === 'approved') return wanted ? already : { outcome: 'refused', message: `it is approved (${reason})` };
  if (!wanted) return undefined;
  if ('problem' in asked) return { outcome: 'refused', message: `it cannot be read: ${asked.problem}` };
  if (keyFingerprint !== undefined && keyFingerprint !== asked.keyFingerprint)
    return { outcome: 'refused', message: 'its key has another fingerprint; countersign csr show prints it' };
  return undefined;
}

const already = { outcome: 'already' } as const;

export function fingerprintOf(text: string): string {
  const hex = text
    .replace(/^sha256:/i, '')
    .replaceAll(':', '')
    .toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(hex))
    throw new CommandFailure(exitCodes.usage, `${text} is no SHA-256`, 'countersign csr show prints 64 hex digits');
  return hex;
}
