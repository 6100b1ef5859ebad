/**
 * One certificate for each record of the ledger: the intent is recorded before the key signs, and every later try follows the
 * record. A certificate is returned only after it is recorded.
 */
import { toPem } from './encoding/pem.ts';
import { refused, uidReused, violation } from './outcome/outcome.ts';
import type { SignOutcome } from './outcome/outcome.ts';
import type { CertificateLedger, FreshKey, Intent, IssuingRecord } from './ports/certificate-ledger.ts';
import { CertificateDefectError } from './ports/errors.ts';
import { checkCertificate } from './x509/check-issued.ts';
import { assembleCertificate } from './x509/leaf-certificate.ts';
import type { Authority } from './x509/leaf-certificate.ts';
import type { CertificateRequest } from './x509/model.ts';

/** A recorded request is neither ignored nor invalid. */
export type SignOnceOutcome = Extract<SignOutcome, { readonly kind: 'issued' | 'refused' | 'busy' }>;

export interface SignOncePorts {
  readonly ledger: CertificateLedger;
  /** The invocation that handles this delivery. Absent outside Lambda. */
  readonly lambdaRequestId?: string | undefined;
}

/** What the intent is for. */
export interface Signing {
  readonly request: CertificateRequest;
  readonly authority: Authority;
}

/** Longer than the function may run (25 s), so that a lease never expires while its delivery is being handled. */
export const leaseMilliseconds = 30_000;
/** A clock may be set back, so an intent is stale only if its notAfter is later than a new one by more than this. */
const clockLeewayMilliseconds = 300_000;
/** A signature takes tens of milliseconds, so by then the delivery that holds the lease has normally answered. */
const inProgressRetrySeconds = 1;

/** Records the intent, or finds the record of an earlier delivery. Then the key signs exactly the recorded bytes. */
export async function signOnce(
  plan: Intent,
  signing: Signing,
  ports: SignOncePorts,
  freshKey?: FreshKey,
): Promise<SignOnceOutcome> {
  const begun = await begin(plan, signing, ports, freshKey);
  return begun.kind === 'sign' ? signIntent(begun.record, signing, ports.ledger) : begun;
}

type Begun = { readonly kind: 'sign'; readonly record: IssuingRecord } | SignOnceOutcome;

/** Gives this delivery the lease of the UID, or answers from the record of this UID. */
async function begin(
  plan: Intent,
  { authority }: Signing,
  ports: SignOncePorts,
  freshKey: FreshKey | undefined,
): Promise<Begun> {
  const opened = await ports.ledger.open(plan, freshKey);
  // Now the intent is recorded and nothing is signed. After a crash here the lease expires, and the next delivery takes
  // the intent over and signs the same bytes.
  if (opened.kind === 'written') return { kind: 'sign', record: { ...plan, state: 'intent', attempt: 1 } };
  if (opened.kind === 'keyUsed') return keyReused;

  const { found } = opened;
  // The first record of a UID wins. A request with other content learns nothing from it.
  if (found.requestDigest !== plan.requestDigest) return refused(uidReused);
  if (found.state !== 'intent' || found.leaseUntil > plan.openedAt) return answerFromLedger(found, authority);
  if (isStale(found, plan)) {
    const expired = await ports.ledger.expire(found.uid, found.attempt);
    // Irreversible: this UID will never have a certificate; its requester must create a new request.
    return expired.kind === 'written' ? intentExpired : answerFromLedger(expired.found, authority);
  }
  const taken = await ports.ledger.takeOver(found.uid, found.attempt, plan.leaseUntil, ports.lambdaRequestId);
  if (taken.kind === 'found') return answerFromLedger(taken.found, authority);
  return { kind: 'sign', record: { ...found, attempt: found.attempt + 1, leaseUntil: plan.leaseUntil } };
}

/**
 * Whether a recorded intent must not be signed any more: its CA was replaced, less than half of its lifetime is left, or
 * today's profile permits only a shorter lifetime.
 */
function isStale(found: IssuingRecord, plan: Intent): boolean {
  const halfLife = found.openedAt + (found.notAfter - found.openedAt) / 2;
  return (
    found.caKeyId !== plan.caKeyId ||
    plan.openedAt > halfLife ||
    found.notAfter > plan.notAfter + clockLeewayMilliseconds
  );
}

/** Has the key sign the recorded bytes, checks the certificate as a relying party would, records and returns it. */
async function signIntent(
  record: IssuingRecord,
  { request, authority }: Signing,
  ledger: CertificateLedger,
): Promise<SignOnceOutcome> {
  try {
    const signature = await authority.signer.sign(record.tbs);
    // Now a signature exists that only this delivery knows. A crash here loses it, and the next delivery signs the same
    // bytes, so certificates of this UID have one content, and none was disclosed.
    const certificate = assembleCertificate(record.tbs, signature.bytes, authority.signer.algorithm);
    const defects = checkCertificate(certificate, record.tbs, authority, request);
    if (defects.length > 0) throw new CertificateDefectError(defects.join('; '));

    const completed = await ledger.complete(record.uid, certificate, signature.requestId);
    // If another delivery recorded its certificate first, that one is returned and this one is discarded.
    if (completed.kind === 'found') return answerFromLedger(completed.found, authority);
    // Now the certificate is recorded. A crash here loses only the answer: the next delivery returns the certificate.
    const issued = { ...record, state: 'issued', certificate } as const;
    const { requestId: kmsRequestId } = signature;
    return answerFromLedger(kmsRequestId === undefined ? issued : { ...issued, kmsRequestId }, authority, false);
  } catch (error) {
    // Now the next delivery need not wait. If this fails too, the lease expires; the caller gets the first error.
    await ledger.release(record.uid, record.attempt).catch(() => undefined);
    throw error;
  }
}

/** The outcome by the record of this UID. An issued certificate is followed by its intermediates, without the root. */
export function answerFromLedger(
  { state, certificate, caKeyId, serial, kmsRequestId }: IssuingRecord,
  { signer, intermediates }: Authority,
  repeat = true,
): SignOnceOutcome {
  // Another delivery has the lease.
  if (state === 'intent') return { kind: 'busy', why: 'InProgress', retryAfterSeconds: inProgressRetrySeconds };
  if (state === 'expired') return intentExpired;
  if (certificate === undefined) throw new CertificateDefectError('an issued record holds no certificate');
  // If the CA has another key by now, its intermediates do not belong to this certificate.
  const chain = [certificate, ...(signer.keyId === caKeyId ? intermediates : [])];
  const certificatePem = chain.map((der) => toPem('CERTIFICATE', der)).join('');
  return { kind: 'issued', certificatePem, serial, repeat, ...(kmsRequestId === undefined ? {} : { kmsRequestId }) };
}

const keyReused = refused(
  violation('KeyReused', 'a certificate was issued for this key before; create a new key and a new request'),
);
const intentExpired = refused(
  violation('IntentExpired', 'signing was begun and not finished in time; create a new request'),
);
