/**
 * Which machine asks? Sign reads the stored verdict of attest about these very bytes, and the machine's record as it is
 * now. An answer that came over the network does not count.
 */
import type { AttestationStore, IdentityRecord, Verdict } from '../ports/attestation-store.ts';
import type { CertificateRequest } from '../x509/model.ts';
import { lockOfMachine, machineLocked } from './locks.ts';
import { uidReused, violation } from '../outcome/outcome.ts';
import type { Violation, Violations } from '../outcome/outcome.ts';
import { MisconfigurationError } from '../ports/errors.ts';
import type { Instant } from '../ports/instant.ts';
import type { Profile } from '../policy/profile.ts';

/** Sign's access to attestation: it reads verdicts and records, and writes neither. */
export interface AttestationReader extends Pick<AttestationStore, 'findVerdict' | 'findIdentity' | 'findLock'> {
  /** Has attest judge the request; the verdict is then in the store. Throws: temporary. */
  attest(): Promise<void>;
}

export type Standing =
  /** The profile does not demand attestation of this request. */
  | { readonly kind: 'unattested' }
  | { readonly kind: 'attested'; readonly identity: string; readonly firstKey: boolean }
  | { readonly kind: 'refused'; readonly violations: Violations };

export async function checkVerdict(
  { profile, request, uid, digest, now }: VerdictQuestion,
  reader: AttestationReader | undefined,
): Promise<Standing> {
  const { attestation } = profile;
  if (attestation === undefined || attestation.mode === 'audit') return unattested;
  if (!attestation.required && request.evidence.length === 0) return unattested;
  // A bundle whose rules demand attestation, wired without it, must not sign.
  if (reader === undefined) throw new MisconfigurationError('this signer demands attestation and has no access to it');

  let verdict = await reader.findVerdict(uid, now);
  if (verdict === undefined) {
    // No client asked attest before approval: a client of the webhook protocol does not know it. So it is asked now.
    await reader.attest();
    verdict = await reader.findVerdict(uid, now);
    if (verdict === undefined) throw new Error('attest answered and left no verdict');
  }
  // A verdict is about one request: it does not count for the same UID with another key, name or requester.
  if (verdict.requestDigest !== digest) return refused(uidReused);
  // A verdict of audit mode let the request pass without an approval; it does not count once attestation is enforced.
  if (verdict.decision !== 'approve' || verdict.identity === undefined)
    return { kind: 'refused', violations: verdict.violations ?? [noIdentity] };

  // A verdict lasts 25 hours. A machine that was reset, retired or locked since then gets no more certificates.
  const { identity } = verdict;
  const [record, lock] = await Promise.all([reader.findIdentity(identity), reader.findLock(lockOfMachine(identity))]);
  if (lock !== undefined) return refused(machineLocked);
  const ended = checkActive(record, verdict);
  if (ended !== undefined) return refused(ended);
  // The key was the machine's first at the verdict; another key may have replaced it since.
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
      'this machine was retired since it was let in: its node name passed to another machine',
    );
  if (record.nodeName !== nodeName) return violation('Revoked', 'this machine was registered anew under another name');
  // A reset ends the verdicts before it, even if the same machine is registered again: with another key, or another disk.
  if (record.firstSeen !== registeredAt)
    return violation('Revoked', 'this machine was registered anew since it was let in');
  return undefined;
}

function refused(first: Violation): Standing {
  return { kind: 'refused', violations: [first] };
}

const unattested: Standing = { kind: 'unattested' };
const noIdentity = violation('AttestationMissing', 'no machine was proved for this request');
