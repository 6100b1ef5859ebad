/**
 * Which machine sent the request? Sign reads the stored verdict about exactly this request, and the current record of the
 * machine. It does not trust the answer of attest over the network.
 */
import type { AttestationStore, IdentityRecord, Verdict } from '../ports/attestation-store.ts';
import type { CertificateRequest } from '../x509/model.ts';
import { refuse } from './declined.ts';
import type { Refused } from './declined.ts';
import { machineLocked } from './locks.ts';
import { lockOfMachine } from './records/lock-subjects.ts';
import { uidReused, violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import { MisconfigurationError } from '../ports/errors.ts';
import type { Instant } from '../ports/instant.ts';
import type { Profile } from '../policy/profile.ts';

/** Sign's access to attestation: it reads verdicts and records, and writes neither. */
export interface AttestationReader extends Pick<AttestationStore, 'findVerdict' | 'findIdentity' | 'findLock'> {
  /** Calls attest, which stores its verdict. Throws if the failure is temporary. */
  attest(): Promise<void>;
}

export type VerdictCheck =
  /** The profile does not demand attestation of this request. */
  | { readonly kind: 'unattested' }
  | { readonly kind: 'attested'; readonly identity: string; readonly firstKey: boolean }
  | Refused;

export async function checkVerdict(
  { profile, request, uid, digest, now }: VerdictQuestion,
  reader: AttestationReader | undefined,
): Promise<VerdictCheck> {
  const { attestation } = profile;
  if (attestation === undefined || attestation.mode === 'audit') return unattested;
  if (!attestation.required && request.evidence.length === 0) return unattested;
  // A sign function that was deployed without access to attestation must not sign for such a profile.
  if (reader === undefined) throw new MisconfigurationError('this signer demands attestation and has no access to it');

  let verdict = await reader.findVerdict(uid, now);
  if (verdict === undefined) {
    // Clients of the webhook protocol do not call attest before approval, so it is called now.
    await reader.attest();
    verdict = await reader.findVerdict(uid, now);
    if (verdict === undefined) throw new Error('attest answered and left no verdict');
  }
  // A verdict does not apply to a request with the same UID and another key, name or requester.
  if (verdict.requestDigest !== digest) return refuse(uidReused);
  // A request that was denied in audit mode was approved, but is refused once attestation is enforced.
  if (verdict.decision !== 'approve' || verdict.identity === undefined)
    return refuse(...(verdict.violations ?? [noIdentity]));

  // A verdict lasts 25 hours. A machine that was reset, retired or locked since then gets no more certificates.
  const { identity } = verdict;
  const [record, lock] = await Promise.all([reader.findIdentity(identity), reader.findLock(lockOfMachine(identity))]);
  if (lock !== undefined) return refuse(machineLocked);
  const ended = checkActive(record, verdict);
  if (ended !== undefined) return refuse(ended);
  // `verdict.firstKey` was true when attest decided; another key may have replaced the first one since.
  return { kind: 'attested', identity, firstKey: verdict.firstKey === true && record?.renewals === 0 };
}

export interface VerdictQuestion {
  readonly profile: Profile;
  readonly request: CertificateRequest;
  readonly uid: string;
  /** request-digest.ts. */
  readonly digest: string;
  readonly now: Instant;
}

function checkActive(record: IdentityRecord | undefined, { nodeName, registeredAt }: Verdict): Violation | undefined {
  if (record === undefined) return violation('Revoked', 'the record of this machine was reset since it was let in');
  if (record.state !== 'active')
    return violation(
      'Revoked',
      'this machine was retired since it was let in: it was reported as terminated, or its node name passed to another machine',
    );
  if (record.nodeName !== nodeName) return violation('Revoked', 'this machine was registered again under another name');
  // A reset invalidates earlier verdicts, even if the same machine is registered again: it may have another key or disk.
  if (record.firstSeen !== registeredAt)
    return violation('Revoked', 'this machine was registered again since its request was approved');
  return undefined;
}

const unattested: VerdictCheck = { kind: 'unattested' };
const noIdentity = violation('AttestationMissing', 'no machine was proved for this request');
