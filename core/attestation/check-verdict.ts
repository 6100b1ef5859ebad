/**
 * Who is asking? Sign's own look at what attest concluded: the stored verdict about these very bytes, and the machine's
 * record as it stands now. What anybody answered over the network counts for nothing.
 */
import type { AttestationStore, IdentityRecord, Verdict } from '../ports/attestation-store.ts';
import type { CertificateRequest } from '../x509/model.ts';
import { lockOfMachine, machineLocked } from './locks.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violation, Violations } from '../outcome/outcome.ts';
import { MisconfigurationError } from '../ports/errors.ts';
import type { Instant } from '../ports/instant.ts';
import type { Profile } from '../policy/profile.ts';

/** What sign may know of attestation: it reads verdicts and records, and writes neither. */
export interface AttestationReader extends Pick<AttestationStore, 'findVerdict' | 'findIdentity' | 'findLock'> {
  /** Has the request in hand judged; what came of it is in the store. Throws: temporary. */
  attest(): Promise<void>;
}

export type Standing =
  | { readonly ok: true; readonly identity?: string; readonly firstKey?: true }
  | { readonly ok: false; readonly violations: Violations };

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
    // Nobody had it judged on arrival: a client that only knows the webhook protocol. Now is its arrival.
    await reader.attest();
    verdict = await reader.findVerdict(uid, now);
    if (verdict === undefined) throw new Error('attest answered and left no verdict');
  }
  // A verdict speaks about one request: the same UID with another key, name or requester has none.
  if (verdict.requestDigest !== digest) return refused(uidReused);
  // What was only audited was let pass for want of a rule; now there is one.
  if (verdict.decision !== 'approve' || verdict.identity === undefined)
    return { ok: false, violations: verdict.violations ?? [noIdentity] };

  // 25 hours are long: a machine that was reset, retired or locked since then gets nothing more.
  const [record, lock] = await Promise.all([
    reader.findIdentity(verdict.identity),
    reader.findLock(lockOfMachine(verdict.identity)),
  ]);
  if (lock !== undefined) return refused(machineLocked);
  const ended = checkActive(record, verdict);
  if (ended !== undefined) return refused(ended);
  // It was the machine's first key then; since then another may have taken its place.
  const firstKey = verdict.firstKey === true && record?.renewals === 0;
  return { ok: true, identity: verdict.identity, ...(firstKey ? { firstKey: true } : {}) };
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
  // A reset ends what was concluded before it, though the same machine may be back: with another key, on another disk.
  if (record.firstSeen !== registeredAt)
    return violation('Revoked', 'this machine was registered anew since it was let in');
  return undefined;
}

function refused(first: Violation): Standing {
  return { ok: false, violations: [first] };
}

const unattested: Standing = { ok: true };
const noIdentity = violation('AttestationMissing', 'no machine was proved for this request');
/** What attest and sign both say of a UID whose verdict is about other bytes. */
export const uidReused = violation(
  'UidReused',
  'a request with this UID and other content was judged before; create a new request',
);
