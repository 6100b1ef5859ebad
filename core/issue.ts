/**
 * The story of one certificate, top to bottom: from the request object to the certificate or the reason why not.
 *
 * One certificate per UID, whatever is delivered twice, at once, or after a crash: the ledger's record is written
 * before the key is asked and decides every race; the certificate is disclosed only after it is recorded.
 */
import { sha256 } from './encoding/digest.ts';
import { checkCertificate } from './x509/check-issued.ts';
import { assembleCertificate, buildTbs } from './x509/leaf-certificate.ts';
import type { Authority, LeafTemplate } from './x509/leaf-certificate.ts';
import type { ClusterConfiguration } from './configuration/model/cluster.ts';
import { decodeRequest } from './x509/certificate-request.ts';
import type { CertificateRequest } from './x509/model.ts';
import type { RequestObject } from './kubernetes/certificate-signing-request.ts';
import { checkNodeLocks, nodesConcerned } from './attestation/locks.ts';
import type { LockReader } from './ports/locks.ts';
import { notAfterOf, serialFrom, validity } from './x509/validity.ts';
import type { Validity } from './x509/validity.ts';
import { refused, violation } from './outcome/outcome.ts';
import type { SignOutcome, Violations } from './outcome/outcome.ts';
import { toPem } from './encoding/pem.ts';
import { CertificateDefectError } from './ports/errors.ts';
import type { CertificateLedger, FreshKey, Intent, IssuingRecord } from './ports/certificate-ledger.ts';
import type { Instant } from './ports/instant.ts';
import { checkProfile, defaultSignerName } from './policy/check-profile.ts';
import type { Profile } from './policy/profile.ts';
import { requestDigest } from './kubernetes/request-digest.ts';
import { triage } from './kubernetes/triage.ts';
import { checkVerdict } from './attestation/check-verdict.ts';
import type { AttestationReader, Standing } from './attestation/check-verdict.ts';

export interface IssuePorts {
  readonly ledger: CertificateLedger;
  readonly locks: LockReader;
  /** The CA of that name, its certificate checked against its key. Throws when it cannot be had. */
  authority(name: string): Promise<Authority>;
  now(): Instant;
  /** Cryptographically strong. */
  randomBytes(count: number): Uint8Array;
  /** Absent where no profile demands attestation. */
  readonly attestations?: AttestationReader;
}

/** Longer than the function may run (25 s), so a lease never ends under a worker that is still alive. */
export const leaseMilliseconds = 30_000;
/** How much earlier a mended clock may make a new notAfter without the recorded one counting as forbidden. */
const clockLeewayMilliseconds = 300_000;
/** A signature takes tens of milliseconds: whoever meets another worker's lease finds the answer after this. */
const inProgressRetrySeconds = 1;

/** The answer to one request. Throwing means: temporary, nothing disclosed, deliver it again. */
export async function issue(
  object: RequestObject,
  cluster: ClusterConfiguration,
  ports: IssuePorts,
): Promise<SignOutcome> {
  // Is it ours to answer?
  const ignored = triage(object);
  if (ignored !== undefined) return { kind: 'ignored', why: ignored };
  if (object.signerName !== undefined && !cluster.profiles.has(object.signerName)) return unknownSigner;

  // Can we read it, in exactly one way?
  const decoded = decodeRequest(object.request);
  if (!decoded.ok) return { kind: 'refused', violations: decoded.violations };
  const { request } = decoded;
  const signerName = object.signerName ?? defaultSignerName(object, request);
  const profile = cluster.profiles.get(signerName);
  if (profile === undefined) return unknownSigner;

  // Has an operator locked the node that it concerns? Then nothing is signed or disclosed, whatever was approved before.
  const [authority, locked] = await Promise.all([
    ports.authority(profile.ca),
    checkNodeLocks(nodesConcerned(object, request), ports.locks),
  ]);
  if (locked !== undefined) return refused(locked);

  // Is it allowed? Judged anew on each delivery, so that a mended policy helps the next one.
  const digest = requestDigest(cluster.name, object, signerName);
  const [first, ...more] = checkProfile(profile, object, request);
  if (first !== undefined) return answerBefore(object.uid, digest, authority, [first, ...more], ports.ledger);

  // Who is asking? Where the profile wants proof, there is a verdict about these very bytes, or there will be none.
  const question = { profile, request, uid: object.uid, digest, now: ports.now() };
  const standing = await checkVerdict(question, ports.attestations);
  if (!standing.ok) return answerBefore(object.uid, digest, authority, standing.violations, ports.ledger);

  // Begin it, unless this UID was begun before; then build and sign what was recorded, and only that.
  const plan = planCertificate(object, request, profile, authority, digest, standing.identity, ports);
  const begun = await begin(plan, freshKey(object, request, profile, standing), authority, ports);
  if (begun.kind !== 'sign') return begun;
  return signIntent(begun.record, request, authority, ports);
}

const unknownSigner: SignOutcome = { kind: 'ignored', why: 'UnknownSigner' };

/** A refused request whose UID has a record: the record's own answer stands; a policy never takes back what was issued. */
async function answerBefore(
  uid: string,
  digest: string,
  authority: Authority,
  violations: Violations,
  ledger: CertificateLedger,
): Promise<SignOutcome> {
  // Of a locked machine not even the certificate that it was issued before.
  if (violations.some(({ code }) => code === 'Locked')) return { kind: 'refused', violations };
  const found = await ledger.find(uid);
  if (found !== undefined && found.requestDigest !== digest) return uidReused;
  if (found?.state === 'issued') return issuedBefore(found, authority);
  // An intent that today's policy forbids stays unsigned, and so does an expired one.
  return { kind: 'refused', violations };
}

/** Decides everything the certificate will say. The bytes are final: a retry after a crash signs these again. */
function planCertificate(
  object: RequestObject,
  request: CertificateRequest,
  profile: Profile,
  authority: Authority,
  digest: string,
  identity: string | undefined,
  ports: IssuePorts,
): Intent {
  const now = ports.now();
  const span: Validity = validity({
    maxTtlSeconds: profile.maxTtlSeconds,
    expirationSeconds: object.expirationSeconds,
    caNotAfter: notAfterOf(authority.certificate),
    now,
  });
  if (!span.ok) throw new CertificateDefectError(span.why);
  const serial = serialFrom(ports.randomBytes(16));
  const template: LeafTemplate = {
    request,
    usages: object.usages,
    serial,
    notBefore: span.notBefore,
    notAfter: span.notAfter,
  };
  return {
    uid: object.uid,
    requestDigest: digest,
    caKeyId: authority.signer.keyId,
    tbs: buildTbs(template, authority),
    serial: Buffer.from(serial).toString('hex'),
    notAfter: span.notAfter,
    openedAt: now,
    leaseUntil: now + leaseMilliseconds,
    ...(identity === undefined ? {} : { identity }),
  };
}

/** Where the profile wants fresh keys: which key it is, and for whom it may come again. */
function freshKey(
  object: RequestObject,
  request: CertificateRequest,
  profile: Profile,
  { identity, firstKey }: Standing & { readonly ok: true },
): FreshKey | undefined {
  if (profile.freshKeys !== true) return undefined;
  return {
    spkiSha256: sha256(request.publicKey.spki).toString('hex'),
    requestSha256: sha256(object.request).toString('hex'),
    ...(firstKey === true && identity !== undefined ? { identity } : {}),
  };
}

type Begun = { readonly kind: 'sign'; readonly record: IssuingRecord } | SignOutcome;

/** Takes the UID for this worker, or tells what became of it. */
async function begin(
  plan: Intent,
  fresh: FreshKey | undefined,
  authority: Authority,
  ports: IssuePorts,
): Promise<Begun> {
  const opened = await ports.ledger.open(plan, fresh);
  // Now the intent is on record and no key has been asked. A crash here leaves a lease that runs out; the next
  // delivery takes the intent over and signs the same bytes.
  if (opened.written) return { kind: 'sign', record: { ...plan, state: 'intent', attempt: 1 } };

  if ('why' in opened) return keyReused;
  const { found } = opened;
  const answered = answerFrom(found, plan, authority);
  if (answered !== undefined) return answered;
  if (isStale(found, plan, authority)) {
    const expired = await ports.ledger.expire(found.uid, found.attempt);
    // Irreversible: this UID will never have a certificate; its requester makes a new request.
    if (expired.written) return intentExpired;
    return answerFrom(expired.found, plan, authority) ?? inProgress;
  }
  const leaseUntil = plan.openedAt + leaseMilliseconds;
  const taken = await ports.ledger.takeOver(found.uid, found.attempt, leaseUntil);
  if (taken.written) return { kind: 'sign', record: { ...found, attempt: found.attempt + 1, leaseUntil } };
  return answerFrom(taken.found, plan, authority) ?? inProgress;
}

/** What a record that was there first answers; nothing when it is an intent nobody works on. */
function answerFrom(found: IssuingRecord, plan: Intent, authority: Authority): SignOutcome | undefined {
  // The first record of a UID wins. Nothing of it is disclosed to whoever brings other content.
  if (found.requestDigest !== plan.requestDigest) return uidReused;
  switch (found.state) {
    case 'issued':
      return issuedBefore(found, authority);
    case 'expired':
      return intentExpired;
    case 'intent':
      return found.leaseUntil > plan.openedAt ? inProgress : undefined;
  }
}

/**
 * May a recorded intent still be signed? Not when its CA was replaced, when less than half of its life is left, or when
 * today's policy would give less than the recorded bytes promise.
 */
function isStale(found: IssuingRecord, plan: Intent, authority: Authority): boolean {
  const halfLife = found.openedAt + (found.notAfter - found.openedAt) / 2;
  return (
    found.caKeyId !== authority.signer.keyId ||
    plan.openedAt > halfLife ||
    found.notAfter > plan.notAfter + clockLeewayMilliseconds
  );
}

/** Asks the key for the recorded bytes, checks what came back as a stranger would, records it, discloses it. */
async function signIntent(
  record: IssuingRecord,
  request: CertificateRequest,
  authority: Authority,
  ports: IssuePorts,
): Promise<SignOutcome> {
  try {
    const signature = await authority.signer.sign(record.tbs);
    // Now a signature exists that only this worker knows. A crash here loses it: the next delivery signs the same
    // bytes, so there is still one content for this UID, and none was disclosed.
    const certificate = assembleCertificate(record.tbs, signature.bytes, authority.signer.algorithm);
    const defects = checkCertificate(certificate, record.tbs, authority, request);
    if (defects.length > 0) throw new CertificateDefectError(defects.join('; '));

    const completed = await ports.ledger.complete(record.uid, certificate, signature.requestId);
    // Now the certificate is on record. A crash here loses the answer only: the next delivery reads it.
    if (completed.written) return issued(certificate, record, authority, false);
    return answerLost(completed.found, authority);
  } catch (error) {
    await releaseQuietly(record, ports.ledger);
    throw error;
  }
}

/** Another worker finished first: its certificate is the one; ours is thrown away unseen. */
function answerLost(found: IssuingRecord, authority: Authority): SignOutcome {
  switch (found.state) {
    case 'issued':
      return issuedBefore(found, authority);
    case 'expired':
      return intentExpired;
    case 'intent':
      return inProgress;
  }
}

/** Lets the next delivery start at once. If even this fails, the lease runs out by itself. */
async function releaseQuietly(record: IssuingRecord, ledger: CertificateLedger): Promise<void> {
  try {
    await ledger.release(record.uid, record.attempt);
  } catch {
    // The error that brought us here says more; it is the one thrown on.
  }
}

function issuedBefore(found: IssuingRecord, authority: Authority): SignOutcome {
  if (found.certificate === undefined) throw new CertificateDefectError('an issued record holds no certificate');
  return issued(found.certificate, found, authority, true);
}

/** Leaf, then intermediates, never the root. Those of another CA than the record's would only mislead a TLS peer. */
function issued(
  certificate: Uint8Array,
  { caKeyId, serial }: IssuingRecord,
  authority: Authority,
  repeat: boolean,
): SignOutcome {
  const intermediates = authority.signer.keyId === caKeyId ? authority.intermediates : [];
  const certificatePem = [certificate, ...intermediates].map((der) => toPem('CERTIFICATE', der)).join('');
  return { kind: 'issued', certificatePem, serial, repeat };
}

const uidReused = refused(
  violation('UidReused', 'a request with this UID and other content was answered before; create a new request'),
);
const keyReused = refused(
  violation('KeyReused', 'a certificate was made for this key before; make a new key and a new request'),
);
const intentExpired = refused(
  violation('IntentExpired', 'signing was begun and not finished in time; create a new request'),
);
const inProgress: SignOutcome = { kind: 'busy', why: 'InProgress', retryAfterSeconds: inProgressRetrySeconds };
