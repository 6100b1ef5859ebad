/**
 * The story of an attestation, top to bottom: which machine asks, may it be this node, and the verdict.
 *
 * The verdict is about these very bytes and is stored longer than a request lives. Sign trusts that record and not the
 * answer of this function. The freshness of evidence is judged here, once: the same bytes get the same verdict again.
 */
import { admit } from './attestation/admission.ts';
import type { Admission } from './attestation/admission.ts';
import type { AttestContext, AttestQuestion } from './attestation/attest-question.ts';
import type { AttestationProvider } from './attestation/evidence/provider.ts';
import { examineEvidence } from './attestation/examine-evidence.ts';
import type { EvidenceResult } from './attestation/examine-evidence.ts';
import { checkNodeLocks, nodesConcerned } from './attestation/locks.ts';
import { refusalCountOf, refusedTooOften } from './attestation/request-limits.ts';
import type { ClusterConfiguration } from './configuration/model/cluster.ts';
import { sha256 } from './encoding/digest.ts';
import type { RequestObject } from './kubernetes/certificate-signing-request.ts';
import { requestDigest } from './kubernetes/request-digest.ts';
import { triagePending } from './kubernetes/triage.ts';
import { uidReused } from './outcome/outcome.ts';
import type { IgnoredWhy, Violations } from './outcome/outcome.ts';
import { nodeUserPrefix } from './policy/in-tree-rules.ts';
import type { ProfileAttestation } from './policy/profile.ts';
import type { AttestationStore, RefusalCount, Verdict } from './ports/attestation-store.ts';
import { LaterError, MisconfigurationError, ThrottledError } from './ports/errors.ts';
import type { Instant } from './ports/instant.ts';
import { readAndCheckRequest } from './read-and-check-request.ts';

export interface AttestPorts {
  readonly store: AttestationStore;
  /** By name, those of the cluster's configuration. */
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
      /** Audit mode: what would have been refused, or that it could not be judged. */
      readonly audit?: Violations | 'unjudged';
    }
  | {
      readonly kind: 'deny' | 'challenge';
      readonly violations: Violations;
      readonly annotations: Readonly<Record<string, string>>;
      readonly repeat: boolean;
    }
  | { readonly kind: 'ignore'; readonly why: IgnoredWhy };

/** Longer than the in-tree cleaner keeps a pending request (24 h). */
const verdictMilliseconds = 25 * 3_600_000;
/** Another request may claim between lookup and write; after this many tries the client must try again later. */
const maxTries = 4;

/** The answer about one request, pending or approved. Throwing means: temporary, no verdict, ask again. */
export async function attest(
  object: RequestObject,
  context: AttestContext,
  cluster: ClusterConfiguration,
  ports: AttestPorts,
): Promise<AttestOutcome> {
  // Is it ours, can it be read, and would it be signed? Checked at each delivery, as sign does, and not recorded.
  const checked = readAndCheckRequest(object, cluster.profiles, triagePending(object));
  if (checked.kind === 'ignored') return { kind: 'ignore', why: checked.why };
  if (checked.kind === 'unreadable') return deny(checked.violations);
  const { request, signerName, profile, violations } = checked;
  if (violations !== undefined) return deny(violations);

  // Has an operator locked its node? Is there a verdict? Locks are not part of a verdict: an operator may remove them.
  const { attestation } = profile;
  const digest = requestDigest(cluster.name, object, signerName);
  const now = ports.now();
  const count = refusalCountOf(object.username, now);
  const [locked, recalled] = await Promise.all([
    checkNodeLocks(nodesConcerned(object, request), ports.store),
    attestation === undefined ? undefined : ports.store.recall(object.uid, count, now),
  ]);
  if (locked !== undefined) return deny([locked]);

  // Does this signer demand attestation at all?
  if (attestation === undefined || recalled === undefined) return approved;
  if (cluster.attestation === undefined) throw new MisconfigurationError('the cluster has no attestation configured');

  // A stored verdict stands, however old its evidence is by now.
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
    return await conclude(question, digest, { count, refusals }, ports);
  } catch (error) {
    // Auditing must not block a request, whatever is down. A throttle is passed on: it protects enforced requests too.
    if (attestation.mode === 'audit' && !(error instanceof ThrottledError)) return unjudged;
    throw error;
  }
}

/** Which machine asks, may it be this node, and the one write that records the verdict. */
async function conclude(
  question: AttestQuestion,
  digest: string,
  { count, refusals }: { readonly count: RefusalCount; readonly refusals: number },
  ports: AttestPorts,
): Promise<AttestOutcome> {
  const evidence = examineEvidence(question, ports.providers);
  if (evidence.kind === 'unattested') return approved;
  const limited = refusedTooOften(refusals, count, question.now);
  if (limited !== undefined)
    throw new LaterError('Limited', 'too many requests of this requester are refused', limited);
  for (let tries = 0; tries < maxTries; tries += 1) {
    const admission = await admit(question, evidence, ports);
    // An observation is durable before it counts. If the record has changed since it was read, decide again.
    const observed = admission.kind === 'admitted' ? undefined : admission.observed;
    if (observed !== undefined && !(await ports.store.observe(observed))) continue;
    if (admission.kind === 'later') throw admission.error;
    const verdict = verdictOf(question, digest, evidence, admission);
    const claim = admission.kind === 'admitted' ? admission.claim : nothingClaimed;
    const write = await ports.store.claim({ ...claim, verdict }, question.now);
    // Irreversible: the evidence is spent, name and machine belong together, and the verdict is stored; all or nothing.
    // A crash before the write leaves nothing; a crash after it leaves the verdict, which the next delivery finds.
    if (write.kind === 'written') {
      // A crash here leaves one refusal uncounted.
      if (admission.kind === 'refused') await ports.store.countRefusal(count);
      return answer(verdict, question.wanted.mode, false);
    }
    if (write.kind === 'verdict') return answerFromVerdict(write.found, digest, question.wanted.mode);
    // Another claim changed the records in between: read them again and decide again.
  }
  // Only this machine, name or address is contended: a throttle would also slow down all other requests.
  throw new LaterError('Limited', 'others claim the same machine, name or address at once', contendedMilliseconds);
}

/** Claims take tens of milliseconds. */
const contendedMilliseconds = 1_000;
const nothingClaimed = { once: [], identity: { kind: 'none' }, newAddresses: [], audit: [] } as const;

/** The version of evidence that proved a request: operators see from it when an older version can be dropped. */
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
  if (admission.kind === 'refused') {
    const { violations, annotations = {} } = admission;
    return { ...about, ...when, decision: 'deny', violations, annotations };
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
      'countersign.dev/identity': identity,
      ...(evidence.kind === 'evidence' ? { [evidenceAnnotation]: evidence.version } : {}),
    },
  };
}

/** A verdict about other bytes says nothing about these, and nothing of it is disclosed. */
function answerFromVerdict(verdict: Verdict, digest: string, mode: ProfileAttestation['mode']): AttestOutcome {
  return verdict.requestDigest === digest ? answer(verdict, mode, true) : deny([uidReused]);
}

/**
 * The answer of a verdict by today's rules. A refusal that was only audited is a refusal once attestation is enforced,
 * as in sign: it names no machine, so that an approval would leave its request approved and never signed.
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
