/**
 * The story of a proof, top to bottom: which machine asks, may it be this node, and what was concluded.
 *
 * What is concluded is a verdict about these very bytes, kept longer than a request lives. Sign trusts that record and
 * not our answer. Freshness of evidence is judged here and once: the same bytes again get the same verdict.
 */
import { admit } from './attestation/admission.ts';
import type { Admission } from './attestation/admission.ts';
import type { AttestContext, AttestQuestion } from './attestation/attest-question.ts';
import type { ProfileAttestation } from './policy/profile.ts';
import type { AttestationStore, Verdict, RefusalCount } from './ports/attestation-store.ts';
import type { AttestationProvider } from './attestation/evidence/provider.ts';
import { sha256 } from './encoding/digest.ts';
import type { ClusterConfiguration } from './configuration/model/cluster.ts';
import { decodeRequest } from './x509/certificate-request.ts';
import { nodeUserPrefix } from './policy/in-tree-rules.ts';
import type { RequestObject } from './kubernetes/certificate-signing-request.ts';
import { refusalCountOf, refusedTooOften } from './attestation/request-limits.ts';
import { checkNodeLocks, nodesConcerned } from './attestation/locks.ts';
import type { IgnoredWhy, Violations } from './outcome/outcome.ts';
import { LaterError, MisconfigurationError, ThrottledError } from './ports/errors.ts';
import type { Instant } from './ports/instant.ts';
import { checkProfile, defaultSignerName } from './policy/check-profile.ts';
import { examineEvidence } from './attestation/examine-evidence.ts';
import type { EvidenceResult } from './attestation/examine-evidence.ts';
import { requestDigest } from './kubernetes/request-digest.ts';
import { triagePending } from './kubernetes/triage.ts';
import { uidReused } from './attestation/check-verdict.ts';

export interface AttestPorts {
  readonly store: AttestationStore;
  /** By name, those the cluster's configuration has. */
  readonly providers: ReadonlyMap<string, AttestationProvider>;
  now(): Instant;
  /** Cryptographically strong. */
  randomBytes(count: number): Uint8Array;
}

export type AttestOutcome =
  | {
      readonly kind: 'approve';
      /** Absent where nobody had to prove anything. */
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

/** Longer than the in-tree cleaner leaves a pending request (24 h). */
const verdictMilliseconds = 25 * 3_600_000;
/** Others may claim between our look and our write; whoever loses that often is told to come back. */
const maxTries = 4;

/** The answer about one request, pending or approved. Throwing means: temporary, nothing concluded, ask again. */
export async function attest(
  object: RequestObject,
  context: AttestContext,
  cluster: ClusterConfiguration,
  ports: AttestPorts,
): Promise<AttestOutcome> {
  // Is it ours to judge?
  const ignored = triagePending(object);
  if (ignored !== undefined) return { kind: 'ignore', why: ignored };
  if (object.signerName !== undefined && !cluster.profiles.has(object.signerName)) return unknownSigner;

  // Can we read it, and would it be signed? Judged anew each time, as sign does, and not recorded.
  const decoded = decodeRequest(object.request);
  if (!decoded.ok) return deny(decoded.violations);
  const { request } = decoded;
  const signerName = object.signerName ?? defaultSignerName(object, request);
  const profile = cluster.profiles.get(signerName);
  if (profile === undefined) return unknownSigner;
  const [first, ...more] = checkProfile(profile, object, request);
  if (first !== undefined) return deny([first, ...more]);

  // Has an operator locked its node? And did we conclude before? Locks are not part of a verdict: they may be undone.
  const { attestation } = profile;
  const digest = requestDigest(cluster.name, object, signerName);
  const now = ports.now();
  const count = refusalCountOf(object.username, now);
  const [locked, recalled] = await Promise.all([
    checkNodeLocks(nodesConcerned(object, request), ports.store),
    attestation === undefined ? undefined : ports.store.recall(object.uid, count, now),
  ]);
  if (locked !== undefined) return deny([locked]);

  // Must anybody prove anything?
  if (attestation === undefined || recalled === undefined) return approved;
  if (cluster.attestation === undefined) throw new MisconfigurationError('the cluster has no attestation configured');

  // What was concluded before stands, however old the evidence has grown.
  const { verdict: before, refusals } = recalled;
  if (before !== undefined) return answerBefore(before, digest, attestation.mode);

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
    // Auditing must not stand in anybody's way, whatever is down; slowing down helps those that are enforced.
    if (attestation.mode === 'audit' && !(error instanceof ThrottledError)) return unjudged;
    throw error;
  }
}

/** Which machine is it, may it, and the one write that makes it so. */
async function conclude(
  question: AttestQuestion,
  digest: string,
  { count, refusals }: { readonly count: RefusalCount; readonly refusals: number },
  ports: AttestPorts,
): Promise<AttestOutcome> {
  const proof = examineEvidence(question, ports.providers);
  if (proof === 'unattested') return approved;
  const limited = refusedTooOften(refusals, count, question.now);
  if (limited !== undefined)
    throw new LaterError('Limited', 'too many requests of this requester are refused', limited);
  for (let tries = 0; tries < maxTries; tries += 1) {
    const admission = await admit(question, proof, ports);
    // What was seen once is durable before it counts. Whoever finds the record changed looks again.
    const observed = admission.admitted === true ? undefined : admission.observed;
    if (observed !== undefined && !(await ports.store.observe(observed))) continue;
    if (admission.admitted === 'later') throw admission.why;
    const verdict = verdictOf(question, digest, proof, admission);
    const claim = admission.admitted ? admission.claim : nothingClaimed;
    const write = await ports.store.claim({ ...claim, verdict }, question.now);
    // Irreversible: the proof is spent, name and machine belong together, and the verdict says so; all of it or nothing.
    // A crash before leaves nothing; a crash after leaves the verdict, which the next delivery finds.
    if (write.written) {
      // A crash here leaves one refusal uncounted.
      if (!admission.admitted) await ports.store.countRefusal(count);
      return answer(verdict, question.wanted.mode, false);
    }
    if (write.why === 'verdict') return answerBefore(write.found, digest, question.wanted.mode);
    // Somebody else's claim came between. What it changed decides: look again.
  }
  // It concerns this machine, name or address alone: no throttle, which would slow down the requests of others.
  throw new LaterError('Limited', 'others claim the same machine, name or address at once', contendedMilliseconds);
}

/** Claims take tens of milliseconds. */
const contendedMilliseconds = 1_000;
const nothingClaimed = { once: [], identity: { kind: 'none' }, newAddresses: [], audit: [] } as const;

/** Which version of evidence a request was proved with: says when an older one can be given up. */
export const evidenceAnnotation = 'countersign.dev/evidence';

function verdictOf(
  question: AttestQuestion,
  requestDigestHex: string,
  proof: EvidenceResult,
  admission: Exclude<Admission, { readonly admitted: 'later' }>,
): Verdict {
  const { uid, signerName, nodeName, now, wanted } = question;
  const about = { uid, requestDigest: requestDigestHex, signerName, nodeName, mode: wanted.mode };
  const when = { decidedAt: now, expiresAt: now + verdictMilliseconds };
  if (!admission.admitted) {
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
      ...(proof.kind === 'evidence' ? { [evidenceAnnotation]: proof.version } : {}),
    },
  };
}

/** A verdict about other bytes says nothing about these, and nothing of it is disclosed. */
function answerBefore(before: Verdict, digest: string, mode: ProfileAttestation['mode']): AttestOutcome {
  return before.requestDigest === digest ? answer(before, mode, true) : deny([uidReused]);
}

/**
 * What that verdict means by today's rules. One that was only audited is a refusal once proof is demanded, as sign takes
 * it: answered as an approval it would leave its request pending, since no machine is named in it.
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

const unknownSigner: AttestOutcome = { kind: 'ignore', why: 'UnknownSigner' };
const approved: AttestOutcome = { kind: 'approve', annotations: {}, repeat: false };
const unjudged: AttestOutcome = { kind: 'approve', annotations: {}, repeat: false, audit: 'unjudged' };
