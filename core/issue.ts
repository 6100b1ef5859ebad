/**
 * The story of one certificate, top to bottom: from the request object to the certificate or the reason for a refusal.
 *
 * A UID gets one certificate, even if the request is delivered twice, concurrently or again after a crash: the ledger
 * record is written before the key is asked and decides every race; the certificate is disclosed only after it is
 * recorded.
 */
import { checkVerdict } from './attestation/check-verdict.ts';
import type { AttestationReader, Standing } from './attestation/check-verdict.ts';
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
  /** The CA of that name, its certificate checked against its key. Throws if the CA cannot be loaded. */
  authority(name: string): Promise<Authority>;
  now(): Instant;
  /** Cryptographically strong. */
  randomBytes(count: number): Uint8Array;
  /** Absent if no profile demands attestation. */
  readonly attestations?: AttestationReader;
}

/** Longer than the function may run (25 s), so that a lease never ends while its worker is alive. */
export const leaseMilliseconds = 30_000;
/** How much earlier a corrected clock may make a new notAfter without making the recorded one stale. */
const clockLeewayMilliseconds = 300_000;
/** A signature takes tens of milliseconds: after this time the worker that holds the lease has answered. */
const inProgressRetrySeconds = 1;

/** The answer to one request. Throwing means: temporary, nothing disclosed, deliver the request again. */
export async function issue(
  object: RequestObject,
  cluster: ClusterConfiguration,
  ports: IssuePorts,
): Promise<SignOutcome> {
  // Is it ours, can it be read, and does its profile permit it? A corrected policy applies to the next delivery.
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

  // Which machine asks? A profile that demands attestation needs a stored verdict about these very bytes.
  const digest = requestDigest(cluster.name, object, signerName);
  const question = { profile, request, uid: object.uid, digest, now: ports.now() };
  const standing: Standing =
    violations === undefined ? await checkVerdict(question, ports.attestations) : { kind: 'refused', violations };
  if (standing.kind === 'refused')
    return answerRefused(standing.violations, object.uid, digest, authority, ports.ledger);

  // Begin it, unless this UID was begun before; then sign exactly the bytes that were recorded.
  const permitted: Permitted = { object, request, profile, digest, standing, authority };
  const begun = await begin(permitted, ports);
  return begun.kind === 'sign' ? signIntent(begun.record, permitted, ports.ledger) : begun;
}

/** A request that is to have a certificate. */
interface Permitted {
  readonly object: RequestObject;
  readonly request: CertificateRequest;
  readonly profile: Profile;
  readonly digest: string;
  readonly standing: Exclude<Standing, { readonly kind: 'refused' }>;
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
  // A locked machine does not even get its earlier certificate again.
  if (violations.some(({ code }) => code === 'Locked')) return { kind: 'refused', violations };
  const record = await ledger.find(uid);
  if (record !== undefined && record.requestDigest !== digest) return refused(uidReused);
  return record?.state === 'issued' ? answerFromLedger(record, authority) : { kind: 'refused', violations };
}

/** Decides everything the certificate will say. The bytes are final: a retry after a crash signs these again. */
function planCertificate(
  { object, request, profile, digest, standing, authority }: Permitted,
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
    ...(standing.kind === 'attested' ? { identity: standing.identity } : {}),
  };
}

/** If the profile wants fresh keys: the key, and the machine that may use it again. */
function freshKey({ object, request, profile, standing }: Permitted): FreshKey | undefined {
  if (profile.freshKeys !== true) return undefined;
  return {
    spkiSha256: sha256(request.publicKey.spki).toString('hex'),
    requestSha256: sha256(object.request).toString('hex'),
    ...(standing.kind === 'attested' && standing.firstKey ? { identity: standing.identity } : {}),
  };
}

type Begun = { readonly kind: 'sign'; readonly record: IssuingRecord } | SignOutcome;

/** Takes the UID for this worker, or answers from the record of this UID. */
async function begin(permitted: Permitted, ports: IssuePorts): Promise<Begun> {
  const { authority } = permitted;
  const plan = planCertificate(permitted, ports);
  const opened = await ports.ledger.open(plan, freshKey(permitted));
  // Now the intent is on record and no key has been asked. A crash here leaves a lease that expires; the next delivery
  // takes the intent over and signs the same bytes.
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
  const taken = await ports.ledger.takeOver(found.uid, found.attempt, plan.leaseUntil);
  if (taken.kind === 'found') return answerFromLedger(taken.found, authority);
  return { kind: 'sign', record: { ...found, attempt: found.attempt + 1, leaseUntil: plan.leaseUntil } };
}

/**
 * May a recorded intent no longer be signed? If its CA was replaced, if less than half of its life is left, or if
 * today's policy would give less than the recorded bytes promise.
 */
function isStale(found: IssuingRecord, plan: Intent): boolean {
  const halfLife = found.openedAt + (found.notAfter - found.openedAt) / 2;
  return (
    found.caKeyId !== plan.caKeyId ||
    plan.openedAt > halfLife ||
    found.notAfter > plan.notAfter + clockLeewayMilliseconds
  );
}

/** Asks the key to sign the recorded bytes, checks the certificate as a relying party would, records and discloses it. */
async function signIntent(
  record: IssuingRecord,
  { request, authority }: Permitted,
  ledger: CertificateLedger,
): Promise<SignOutcome> {
  try {
    const signature = await authority.signer.sign(record.tbs);
    // Now a signature exists that only this worker knows. A crash here loses it: the next delivery signs the same
    // bytes, so there is still one content for this UID, and none was disclosed.
    const certificate = assembleCertificate(record.tbs, signature.bytes, authority.signer.algorithm);
    const defects = checkCertificate(certificate, record.tbs, authority, request);
    if (defects.length > 0) throw new CertificateDefectError(defects.join('; '));

    const completed = await ledger.complete(record.uid, certificate, signature.requestId);
    // If another worker finished first, its certificate counts; this one is discarded, undisclosed.
    if (completed.kind === 'found') return answerFromLedger(completed.found, authority);
    // Now the certificate is on record. A crash here loses the answer only: the next delivery reads it.
    return answerFromLedger({ ...record, state: 'issued', certificate }, authority, false);
  } catch (error) {
    // The next delivery can start at once. If this fails too, the lease expires on its own; the first error says more.
    await ledger.release(record.uid, record.attempt).catch(() => undefined);
    throw error;
  }
}

/** What the record of this UID answers. Certificates: the leaf, then the intermediates, never the root. */
function answerFromLedger(
  { state, certificate, caKeyId, serial }: IssuingRecord,
  { signer, intermediates }: Authority,
  repeat = true,
): SignOutcome {
  // Another worker has the lease.
  if (state === 'intent') return { kind: 'busy', why: 'InProgress', retryAfterSeconds: inProgressRetrySeconds };
  if (state === 'expired') return intentExpired;
  if (certificate === undefined) throw new CertificateDefectError('an issued record holds no certificate');
  // Intermediates of another CA than the record's would mislead a TLS peer.
  const chain = [certificate, ...(signer.keyId === caKeyId ? intermediates : [])];
  return { kind: 'issued', certificatePem: chain.map((der) => toPem('CERTIFICATE', der)).join(''), serial, repeat };
}

const keyReused = refused(
  violation('KeyReused', 'a certificate was issued for this key before; create a new key and a new request'),
);
const intentExpired = refused(
  violation('IntentExpired', 'signing was begun and not finished in time; create a new request'),
);
