/**
 * The path of an attestation, top to bottom: which machine sent the request, whether it may be this node, and the verdict.
 *
 * The verdict applies only to the exact bytes of the request and is stored longer than a request lives. Sign reads the stored
 * verdict, not the answer of this function. Evidence must be fresh when attest decides; a later delivery of the same bytes gets
 * the stored verdict.
 */
import { admit } from './attestation/admission.ts';
import type { Admission } from './attestation/admission.ts';
import type { AttestQuestion } from './attestation/attest-question.ts';
import { objectAnnotations } from './attestation/cluster-api/check-objects.ts';
import type { AttestationProvider } from './attestation/evidence/provider.ts';
import { examineEvidence } from './attestation/examine-evidence.ts';
import type { EvidenceResult } from './attestation/examine-evidence.ts';
import { checkLocks } from './attestation/locks.ts';
import { refusalWindowOf, refusedTooOften } from './attestation/records/request-limits.ts';
import type { ClusterConfiguration } from './configuration/model/cluster.ts';
import { sha256 } from './encoding/digest.ts';
import type { RequestObject } from './kubernetes/certificate-signing-request.ts';
import { requestDigest } from './kubernetes/request-digest.ts';
import { triagePending } from './kubernetes/triage.ts';
import { uidReused } from './outcome/outcome.ts';
import type { IgnoredWhy, Violations } from './outcome/outcome.ts';
import { nodeUserPrefix } from './policy/in-tree-rules.ts';
import type { ProfileAttestation } from './policy/profile.ts';
import type { AttestationStore, RefusalWindow, Verdict } from './ports/attestation-store.ts';
import { LaterError, MisconfigurationError, ThrottledError } from './ports/errors.ts';
import type { Instant } from './ports/instant.ts';
import type { AttestContext } from './ports/signing-endpoint.ts';
import { readAndCheckRequest } from './read-and-check-request.ts';

export interface AttestPorts {
  readonly store: AttestationStore;
  /** The providers in the cluster's configuration, by name. */
  readonly providers: ReadonlyMap<string, AttestationProvider>;
  now(): Instant;
  /** Cryptographically strong. */
  randomBytes(count: number): Uint8Array;
}

export type AttestOutcome =
  | {
      readonly kind: 'approve';
      /** Absent if the request needs no attestation. */
      readonly identity?: string;
      readonly annotations: Readonly<Record<string, string>>;
      readonly repeat: boolean;
      /** In audit mode: the violations that `enforce` would refuse; `unjudged` after a temporary failure. */
      readonly audit?: Violations | 'unjudged';
    }
  | {
      readonly kind: 'deny' | 'challenge';
      readonly violations: Violations;
      readonly annotations: Readonly<Record<string, string>>;
      readonly repeat: boolean;
    }
  | { readonly kind: 'ignore'; readonly why: IgnoredWhy };

/** Longer than kube-controller-manager keeps a pending request (24 h). */
const verdictMilliseconds = 25 * 3_600_000;
/** If another request changes the records between lookup and write, attest decides again, at most this often. */
const maxTries = 4;

/** Decides about one request, pending or approved. Throws if the failure is temporary: try again. */
export async function attest(
  object: RequestObject,
  context: AttestContext,
  cluster: ClusterConfiguration,
  ports: AttestPorts,
): Promise<AttestOutcome> {
  // Is it for this endpoint, can it be read, and does its profile permit it? These answers are not stored: sign checks again.
  const checked = readAndCheckRequest(object, cluster.profiles, triagePending(object));
  if (checked.kind === 'ignored') return { kind: 'ignore', why: checked.why };
  if (checked.kind === 'unreadable') return deny(checked.violations);
  const { request, signerName, profile, violations } = checked;
  if (violations !== undefined) return deny(violations);

  // Has an operator locked its node or its key? Is a verdict stored? A lock is not recorded in a verdict: an operator may remove it.
  const { attestation } = profile;
  const digest = requestDigest(cluster.name, object, signerName);
  const now = ports.now();
  const window = refusalWindowOf(object.username, now);
  const [locked, recalled] = await Promise.all([
    checkLocks(object, request, ports.store),
    attestation === undefined ? undefined : ports.store.recall(object.uid, window, now),
  ]);
  if (locked !== undefined) return deny([locked]);

  // Does this profile demand attestation?
  if (attestation === undefined || recalled === undefined) return approved;
  if (cluster.attestation === undefined) throw new MisconfigurationError('the cluster has no attestation configured');

  // A stored verdict applies even if its evidence is no longer fresh.
  const { verdict, refusals } = recalled;
  if (verdict !== undefined) return answerFromVerdict(verdict, digest, attestation.mode);

  const question: AttestQuestion = {
    cluster: cluster.name,
    settings: cluster.attestation,
    wanted: attestation,
    signerName,
    serving: profile.kind === 'kubelet-serving',
    uid: object.uid,
    username: object.username,
    request,
    requestSha256: sha256(object.request).toString('hex'),
    nodeName: request.subject.commonName.slice(nodeUserPrefix.length),
    spkiSha256: sha256(request.publicKey.spki).toString('hex'),
    context,
    now,
  };
  try {
    return await decideAndRecord(question, digest, { window, refusals }, ports);
  } catch (error) {
    // In audit mode a failure must not block a request. Throttling is passed on, because it protects enforced requests too.
    if (attestation.mode === 'audit' && !(error instanceof ThrottledError)) return unjudged;
    throw error;
  }
}

/** Examines the evidence, decides, and records the decision and the verdict in one write. */
async function decideAndRecord(
  question: AttestQuestion,
  digest: string,
  { window, refusals }: { readonly window: RefusalWindow; readonly refusals: number },
  ports: AttestPorts,
): Promise<AttestOutcome> {
  const evidence = await examineEvidence(question, ports.providers);
  if (evidence.kind === 'unattested') return approved;
  const limited = refusedTooOften(refusals, window, question.now);
  if (limited !== undefined)
    throw new LaterError('Limited', 'too many requests of this requester are refused', limited);
  for (let tries = 0; tries < maxTries; tries += 1) {
    const admission = await admit(question, evidence, ports);
    // An observation is stored before anything depends on it. If the record has changed since it was read, decide again.
    const observed = admission.kind === 'admitted' ? undefined : admission.observed;
    if (observed !== undefined && !(await ports.store.observe(observed))) continue;
    if (admission.kind === 'later') throw admission.error;
    const verdict = verdictOf(question, digest, evidence, admission);
    // Not stored: many machines repeat it for minutes. Not counted: other machines have the same bootstrap token.
    if (admission.kind === 'refused' && admission.transient === true)
      return answer(verdict, question.wanted.mode, false);
    const claim = admission.kind === 'admitted' ? admission.claim : nothingClaimed;
    const write = await ports.store.claim({ ...claim, verdict }, question.now);
    // Irreversible: the evidence is spent, the machine has the node name, and the verdict is stored; all or nothing.
    // If attest crashes before the write, nothing is stored; if after it, the next delivery finds the verdict.
    if (write.kind === 'written') {
      // A crash here leaves one refusal uncounted.
      if (admission.kind === 'refused' && admission.uncounted !== true) await ports.store.countRefusal(window);
      return answer(verdict, question.wanted.mode, false);
    }
    if (write.kind === 'verdict') return answerFromVerdict(write.found, digest, question.wanted.mode);
    // Another claim changed the records in between: read them again and decide again.
  }
  // Not a ThrottledError, which would slow down requests of other machines too.
  throw new LaterError('Limited', 'others claim the same machine, name or address at once', contendedMilliseconds);
}

/** Claims take tens of milliseconds. */
const contendedMilliseconds = 1_000;
const nothingClaimed = { once: [], identity: { kind: 'none' }, newAddresses: [], audit: [] } as const;

/** The version of the evidence. Operators see from it when no node uses an old version any more. */
export const evidenceAnnotation = 'countersign.dev/evidence';

function verdictOf(
  question: AttestQuestion,
  digest: string,
  evidence: EvidenceResult,
  admission: Exclude<Admission, { readonly kind: 'later' }>,
): Verdict {
  const { uid, signerName, nodeName, now, wanted } = question;
  const about = { uid, requestDigest: digest, signerName, nodeName, mode: wanted.mode };
  const when = { decidedAt: now, expiresAt: now + verdictMilliseconds };
  if (admission.kind !== 'admitted') {
    const { kind, violations, annotations = {} } = admission;
    return { ...about, ...when, decision: kind === 'challenged' ? 'challenge' : 'deny', violations, annotations };
  }
  const { identity, firstKey, claim } = admission;
  return {
    ...about,
    ...when,
    decision: 'approve',
    identity,
    registeredAt: claim.identity.record.firstSeen,
    firstKey,
    annotations: {
      ...admission.annotations,
      ...objectAnnotations(question),
      'countersign.dev/identity': identity,
      ...(evidence.kind === 'evidence' ? { [evidenceAnnotation]: evidence.version } : {}),
    },
  };
}

/** A verdict about another request with this UID does not apply, and nothing of it is disclosed. */
function answerFromVerdict(verdict: Verdict, digest: string, mode: ProfileAttestation['mode']): AttestOutcome {
  return verdict.requestDigest === digest ? answer(verdict, mode, true) : deny([uidReused]);
}

/**
 * What a verdict means in today's mode. A denial recorded in audit mode counts once attestation is enforced: it names no
 * machine, so sign would refuse the request, and an approval would be useless.
 */
function answer(
  { decision, violations, annotations, identity }: Verdict,
  mode: ProfileAttestation['mode'],
  repeat: boolean,
): AttestOutcome {
  if (decision === 'approve' || violations === undefined)
    return { kind: 'approve', ...(identity === undefined ? {} : { identity }), annotations, repeat };
  if (mode === 'audit') return { kind: 'approve', annotations: {}, repeat, audit: violations };
  return { kind: decision, violations, annotations, repeat };
}

function deny(violations: Violations): AttestOutcome {
  return { kind: 'deny', violations, annotations: {}, repeat: false };
}

const approved: AttestOutcome = { kind: 'approve', annotations: {}, repeat: false };
const unjudged: AttestOutcome = { kind: 'approve', annotations: {}, repeat: false, audit: 'unjudged' };
