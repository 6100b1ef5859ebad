/**
 * The path of one certificate, top to bottom: from the request object to the certificate or the reason for a refusal.
 *
 * A UID gets one certificate, even if the request is delivered twice, concurrently or again after a crash. The ledger
 * record is written before the key signs, and every delivery follows it. A certificate is returned only after it is recorded.
 */
import { checkVerdict } from './attestation/check-verdict.ts';
import type { AttestationReader, VerdictCheck } from './attestation/check-verdict.ts';
import { checkLocks } from './attestation/locks.ts';
import type { ClusterConfiguration } from './configuration/model/cluster.ts';
import { sha256 } from './encoding/digest.ts';
import type { RequestObject } from './kubernetes/certificate-signing-request.ts';
import { requestDigest } from './kubernetes/request-digest.ts';
import { requestFacts } from './kubernetes/request-facts.ts';
import { triage } from './kubernetes/triage.ts';
import { refused, uidReused } from './outcome/outcome.ts';
import type { SignOutcome, Violations } from './outcome/outcome.ts';
import type { Profile } from './policy/profile.ts';
import type { CertificateLedger, FreshKey, Intent } from './ports/certificate-ledger.ts';
import type { Instant } from './ports/instant.ts';
import type { LockReader } from './ports/locks.ts';
import { readAndCheckRequest } from './read-and-check-request.ts';
import { answerFromLedger, leaseMilliseconds, signOnce } from './sign-once.ts';
import { buildTbs, issuerOf } from './x509/leaf-certificate.ts';
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

  // Has an operator locked its node or its key? Then nothing is signed or disclosed, even if the request was approved before.
  const [authority, locked] = await Promise.all([
    ports.authority(profile.ca),
    checkLocks(object, request, ports.locks),
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
  const crlDistributionPoint = cluster.cas.get(profile.ca)?.crlDistributionPoint;
  const checks = { object, request, signerName, profile, digest, verdictCheck, authority };
  const permitted: Permitted = crlDistributionPoint === undefined ? checks : { ...checks, crlDistributionPoint };
  return signOnce(planCertificate(permitted, ports), permitted, ports, freshKey(permitted));
}

/** A request that passed all checks, with what they found. */
interface Permitted {
  readonly object: RequestObject;
  readonly request: CertificateRequest;
  readonly signerName: string;
  readonly profile: Profile;
  readonly digest: string;
  readonly verdictCheck: Exclude<VerdictCheck, { readonly kind: 'refused' }>;
  readonly authority: Authority;
  /** URL of the CRL of its CA. */
  readonly crlDistributionPoint?: string;
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
function planCertificate(permitted: Permitted, ports: IssuePorts): Intent {
  const { object, request, signerName, profile, digest, verdictCheck, authority, ...crl } = permitted;
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
    tbs: buildTbs({ request, usages, serial, ...span, ...crl }, authority),
    serial: Buffer.from(serial).toString('hex'),
    notAfter: span.notAfter,
    openedAt: now,
    leaseUntil: now + leaseMilliseconds,
    request: requestFacts(object, signerName),
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
