/**
 * The phase of a rotation, from what is deployed, what the ledger has and what the cluster trusts. Nothing is stored, so a rotation
 * goes on wherever it ended.
 */
import type { Instant } from '../ports/instant.ts';
import { certificateFacts } from '../x509/read-certificate.ts';
import type { Issuer } from './anchors.ts';
import { judgeAll } from './consumers.ts';
import type { Consumer, JudgedConsumer } from './consumers.ts';
import type { Deployment, RotatingCa, RotatingProfile } from './deployment.ts';
import type { Leaves } from './leaves.ts';

/** The first condition that does not hold yet, in the order of a rotation. */
export const phases = [
  'noSuccessor', // no CA of the configuration replaces it
  'notInForce', // the new CA has no certificate yet, or its key is not in use
  'trust', // a consumer that trusts the old CA does not trust the new one
  'switch', // a profile still signs with the old CA, or a CA is issued by it
  'drain', // certificates of the old CA are in use
  'retire', // the old CA is still configured, or trusted
  'done',
] as const;
export type Phase = (typeof phases)[number];

/** What is wrong, however far the rotation is. Each means that certificates are refused now, or will be. */
export type FindingCode =
  | 'SwitchedBeforeInForce' // a profile names a CA that is not in force: nothing is signed
  | 'SwitchedBeforeTrusted' // a profile signs with the new CA, and a consumer does not trust it
  | 'DistrustedBeforeEnd' // a consumer does not trust the old CA, which has certificates in use
  | 'RemovedBeforeEnd' // the old CA is not configured any more, and has certificates in use
  | 'SuccessorEndsFirst' // the new CA ends before the old one
  | 'OldEnded'; // the old CA has ended, and a profile still signs with it

export interface Finding {
  readonly code: FindingCode;
  readonly message: string;
}

export interface Rotation {
  readonly phase: Phase;
  readonly old: RotatingCa;
  readonly next?: RotatingCa;
  /** Profiles that sign with one of the two. */
  readonly profiles: readonly RotatingProfile[];
  /** Names of CAs whose certificates the old CA issued. */
  readonly issued: readonly string[];
  readonly consumers: readonly JudgedConsumer[];
  readonly leaves: Leaves;
  readonly findings: readonly Finding[];
}

export interface Seen {
  readonly deployment: Deployment;
  /** Absent: the cluster was not read. */
  readonly consumers?: readonly Consumer[];
  readonly leaves: Leaves;
  readonly now: Instant;
}

export function rotationOf(old: RotatingCa, seen: Seen): Rotation {
  const { deployment, leaves } = seen;
  const next = deployment.cas.find(({ configuration }) => configuration?.replaces === old.name);
  const names = new Set([old.name, next?.name]);
  const profiles = deployment.profiles.filter(({ ca }) => names.has(ca));
  const issued = deployment.cas.flatMap(({ name, configuration: ca }) =>
    ca?.kind === 'issued' && ca.issuedBy === old.name ? [name] : [],
  );
  // A root that only the old CA needs goes with it.
  const needed = new Set([next?.name, ...deployment.profiles.map(({ ca }) => ca)]);
  const others = deployment.cas.flatMap(({ name, record }) =>
    name === old.name || !needed.has(name) || record === undefined ? [] : [record],
  );
  const signers = new Set(leaves.signers.map(({ signerName }) => signerName));
  const involved = {
    others,
    profiles: deployment.profiles.filter(
      ({ ca, signerName }) =>
        // What a CA that is gone has signed for is not known any more.
        names.has(ca) || signers.has(signerName) || (old.configuration === undefined && leaves.certificates === 0),
    ),
    ...(old.record === undefined ? {} : { old: old.record }),
    ...(next?.record === undefined ? {} : { next: next.record }),
  };
  const consumers = judgeAll(seen.consumers ?? [], involved);
  const known = { old, profiles, issued, consumers, leaves, ...(next === undefined ? {} : { next }) };
  return { ...known, phase: phaseOf(known, seen), findings: findingsOf(known, seen) };
}

type Known = Omit<Rotation, 'phase' | 'findings'>;

function phaseOf({ old, next, profiles, issued, consumers, leaves }: Known, seen: Seen): Phase {
  const waiting = profiles.filter(({ ca }) => ca === old.name);
  const configured = old.configuration !== undefined;
  if (configured) {
    if (next === undefined) return 'noSuccessor';
    if (next.record === undefined) return 'notInForce';
    // What was not read is taken for ready once an operator has switched the profiles.
    const unread = seen.consumers === undefined || consumers.some((consumer) => consumer.unread !== undefined);
    if ((unread && waiting.length > 0) || consumers.some(lacksNew)) return 'trust';
    if (waiting.length > 0 || issued.length > 0) return 'switch';
  }
  if (leaves.certificates > 0) return 'drain';
  const kept = consumers.some(({ trusts, unread }) => trusts?.keepsOld === true || unread !== undefined);
  return configured || kept || seen.consumers === undefined ? 'retire' : 'done';
}

export function lacksNew({ needed, trusts }: JudgedConsumer): boolean {
  return needed && trusts?.new === false;
}

function findingsOf(known: Known, { now }: Seen): readonly Finding[] {
  const { old, next, profiles, consumers, leaves } = known;
  const findings: Finding[] = [];
  const add = (code: FindingCode, message: string): void => void findings.push({ code, message });
  const signersOf = (ca: string | undefined): string =>
    profiles
      .filter((profile) => profile.ca === ca)
      .map(({ signerName }) => signerName)
      .join(', ');

  const switched = signersOf(next?.name);
  const waiting = signersOf(old.name);
  if (next !== undefined && switched !== '' && next.record === undefined)
    add('SwitchedBeforeInForce', `${next.name} is not in force, so nothing is signed for ${switched}`);
  if (next?.record !== undefined && switched !== '')
    for (const { name, place } of consumers.filter(lacksNew))
      add(
        'SwitchedBeforeTrusted',
        `${name} does not trust ${next.name} (${place}), which signs for ${switched}: it refuses those certificates`,
      );
  // An old CA that nothing needs may be distrusted in any order.
  if (leaves.certificates > 0 || waiting !== '')
    for (const { name, place, needed, trusts } of consumers)
      if (needed && trusts?.old === false)
        add(
          'DistrustedBeforeEnd',
          `${name} does not trust ${old.name} (${place}), whose certificates are in use or still issued`,
        );
  if (old.configuration === undefined && leaves.certificates > 0)
    add(
      'RemovedBeforeEnd',
      `${old.name} is not in the deployed countersign.yaml, and ${leaves.certificates} of its certificates are in use: its CRL is not renewed, and trust bundles lack it`,
    );
  const [oldEnd, nextEnd] = [old, next].map((ca) => (ca?.record === undefined ? undefined : endOf(ca.record)));
  if (oldEnd !== undefined && nextEnd !== undefined && nextEnd < oldEnd)
    add('SuccessorEndsFirst', `${next?.name} ends before ${old.name}`);
  if (oldEnd !== undefined && oldEnd <= now && waiting !== '')
    add('OldEnded', `${old.name} has ended, and signs for ${waiting}`);
  return findings;
}

/** No verifier goes past the end of a certificate on its path. */
function endOf({ certificate, chain }: Issuer): Instant {
  return Math.min(...[certificate, ...chain].map((der) => certificateFacts(der).notAfter));
}
