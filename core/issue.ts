/**
 * The path of one certificate, top to bottom: from the request object to the certificate or the reason for a refusal.
 *
 * A UID gets one certificate, even if the request is delivered twice, concurrently or again after a crash. The ledger
 * record is written before the key signs, and every delivery follows it. A certificate is returned only after it is recorded.
 */
import { checkVerdict } from './attestation/check-verdict.ts';
import type { AttestationReader, VerdictCheck } from './attestation/check-verdict.ts';
import { checkNodeLocks, nodesConcerned } from './attestation/locks.ts';
import type { ClusterConfiguration } from './configuration/model/cluster.ts';
import { sha256 } from './encoding/digest.ts';
import { toPem } from './encoding/pem.ts';
import type { RequestObject } from './kubernetes/certificate-signing-request.ts';
import { requestDigest } from './kubernetes/request-digest.ts';
import { triage } from './kubernetes/triage.ts';
import { refused, uidReused, violation } from './outcome/outcome.ts';
import type { SignOutcome, Violations } from './outcome/outcome.ts';
import type { Profile } from './policy/profile.ts';
import type { CertificateLedger, FreshKey, Intent, IssuingRecord } from './ports/certificate-ledger.ts';
import { CertificateDefectError } from './ports/errors.ts';
import type { Instant } from './ports/instant.ts';
import type { LockReader } from './ports/locks.ts';
import { readAndCheckRequest } from './read-and-check-request.ts';
import { checkCertificate } from './x509/check-issued.ts';
import { assembleCertificate, buildTbs, issuerOf } from './x509/leaf-certificate.ts';
import type { Authority } from './x509/leaf-certificate.ts';
import type { CertificateRequest } from './x509/model.ts';
import { serialFrom, serialOctets, validity } from './x509/validity.ts';

export interface IssuePorts {
  readonly ledger: CertificateLedger;
  readonly locks: LockReader;
  /** The CA of that name; its certificate and key are known to match. Throws if the CA cannot be loaded. */
  authority(name: string): Promise<Authority>;
  now(): Instant;
  /** Cryptographically strong. */
  randomBytes(count: number): Uint8Array;
  /** Absent if no profile demands attestation. */
  readonly attestations?: AttestationReader;
  /** The invocation that handles this delivery. Absent outside Lambda. */
  readonly lambdaRequestId?: string | undefined;
}

/** Longer than the function may run (25 s), so that a lease never expires while its delivery is being handled. */
export const leaseMilliseconds = 30_000;
/** A clock may be set back, so an intent is stale only if its notAfter is later than a new one by more than this. */
const clockLeewayMilliseconds = 300_000;
/** A signature takes tens of milliseconds, so by then the delivery that holds the lease has normally answered. */
const inProgressRetrySeconds = 1;

/** Answers one request. Throws if the failure is temporary: no certificate was disclosed, deliver the request again. */
export async function issue(
  object: RequestObject,
  cluster: ClusterConfiguration,
  ports: IssuePorts,
): Promise<SignOutcome> {
  // Is it for this endpoint, can it be read, and does its profile permit it? A corrected profile applies to the next delivery.
  const checked = readAndCheckRequest(object, cluster.profiles, triage(object));
  if (checked.kind === 'ignored') return checked;
  if (checked.kind === 'unreadable') return { kind: 'refused', violations: checked.violations };
  const { request, signerName, profile, violations } = checked;

  // Has an operator locked its node? Then nothing is signed or disclosed, even if the request was approved before.
  const [authority, locked] = await Promise.all([
    ports.authority(profile.ca),
    checkNodeLocks(nodesConcerned(object, request), ports.locks),
  ]);
  if (locked !== undefined) return refused(locked);

  // Which machine sent it? A profile that demands attestation needs a stored verdict about exactly this request.
  const digest = requestDigest(cluster.name, object, signerName);
  const question = { profile, request, uid: object.uid, digest, now: ports.now() };
  const verdictCheck: VerdictCheck =
    violations === undefined ? await checkVerdict(question, ports.attestations) : { kind: 'refused', violations };
  if (verdictCheck.kind === 'refused')
    return answerRefused(verdictCheck.violations, object.uid, digest, authority, ports.ledger);

  // Record an intent, or find the record of an earlier delivery. Then sign exactly the recorded bytes.
  const permitted: Permitted = { object, request, profile, digest, verdictCheck, authority };
  const begun = await begin(permitted, ports);
  return begun.kind === 'sign' ? signIntent(begun.record, permitted, ports.ledger) : begun;
}

/** A request that passed all checks, with what they found. */
interface Permitted {
  readonly object: RequestObject;
  readonly request: CertificateRequest;
  readonly profile: Profile;
  readonly digest: string;
  readonly verdictCheck: Exclude<VerdictCheck, { readonly kind: 'refused' }>;
  readonly authority: Authority;
}

/**
 * A stored certificate is returned even if today's policy would refuse the request: policy changes do not revoke. An
 * intent that was never signed stays unsigned.
 */
async function answerRefused(
  violations: Violations,
  uid: string,
  digest: string,
  authority: Authority,
  ledger: CertificateLedger,
): Promise<SignOutcome> {
  // A locked machine does not get even a stored certificate.
  if (violations.some(({ code }) => code === 'Locked')) return { kind: 'refused', violations };
  const record = await ledger.find(uid);
  if (record !== undefined && record.requestDigest !== digest) return refused(uidReused);
  return record?.state === 'issued' ? answerFromLedger(record, authority) : { kind: 'refused', violations };
}

/** The intent, with all contents of the certificate. The bytes are final: a retry after a crash signs them again. */
function planCertificate(
  { object, request, profile, digest, verdictCheck, authority }: Permitted,
  ports: IssuePorts,
): Intent {
  const now = ports.now();
  const { maxTtlSeconds } = profile;
  const { expirationSeconds, usages } = object;
  const { notAfter: caNotAfter } = issuerOf(authority).facts;
  const span = validity({ maxTtlSeconds, expirationSeconds, caNotAfter, now });
  const serial = serialFrom(ports.randomBytes(serialOctets));
  return {
    uid: object.uid,
    requestDigest: digest,
    caKeyId: authority.signer.keyId,
    tbs: buildTbs({ request, usages, serial, ...span }, authority),
    serial: Buffer.from(serial).toString('hex'),
    notAfter: span.notAfter,
    openedAt: now,
    leaseUntil: now + leaseMilliseconds,
    ...(ports.lambdaRequestId === undefined ? {} : { lambdaRequestId: ports.lambdaRequestId }),
    ...(verdictCheck.kind === 'attested' ? { identity: verdictCheck.identity } : {}),
  };
}

/** The key to mark as used, if the profile demands fresh keys, and the machine that may use it again. */
function freshKey({ object, request, profile, verdictCheck }: Permitted): FreshKey | undefined {
  if (profile.freshKeys !== true) return undefined;
  return {
    spkiSha256: sha256(request.publicKey.spki).toString('hex'),
    requestSha256: sha256(object.request).toString('hex'),
    ...(verdictCheck.kind === 'attested' && verdictCheck.firstKey ? { identity: verdictCheck.identity } : {}),
  };
}

type Begun = { readonly kind: 'sign'; readonly record: IssuingRecord } | SignOutcome;

/** Gives this delivery the lease of the UID, or answers from the record of this UID. */
async function begin(permitted: Permitted, ports: IssuePorts): Promise<Begun> {
  const { authority } = permitted;
  const plan = planCertificate(permitted, ports);
  const opened = await ports.ledger.open(plan, freshKey(permitted));
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
  { request, authority }: Permitted,
  ledger: CertificateLedger,
): Promise<SignOutcome> {
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
function answerFromLedger(
  { state, certificate, caKeyId, serial, kmsRequestId }: IssuingRecord,
  { signer, intermediates }: Authority,
  repeat = true,
): SignOutcome {
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
