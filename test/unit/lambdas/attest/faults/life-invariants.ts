/**
 * What must be so after every step of a life, whatever happened in it. Judged by the platform's own state and the records
 * before the step, never by the code's reasons.
 */
import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { IdentityRecord, Verdict } from '../../../../../core/ports/attestation-store.ts';
import { decodeRequestObject } from '../../../../../core/kubernetes/certificate-signing-request.ts';
import { requestDigest } from '../../../../../core/kubernetes/request-digest.ts';
import type { NullMachine } from '../../../../harness/attestation/null-provider.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { sha256Hex } from '../world.ts';

export interface Ask {
  readonly machine: string;
  readonly node: string;
  /** Of `keys`. */
  readonly key: number;
  readonly by: 'bootstrap' | 'node';
  /** Client certificate with evidence, or a serving certificate with it or as stock kubelets ask. */
  readonly what: 'client' | 'serving' | 'stock';
  /** One that others have captured. */
  readonly proof: string | undefined;
  readonly address: string;
}

export interface Answered {
  readonly ask: Ask;
  readonly uid: string;
  readonly object: { readonly [each: string]: unknown };
  readonly answer: string;
  readonly certificatePem?: string;
}

export interface Snapshot {
  readonly now: number;
  readonly machines: ReadonlyMap<string, NullMachine>;
  readonly records: ReadonlyMap<string, IdentityRecord>;
  /** Whose each node name is. */
  readonly holders: ReadonlyMap<string, IdentityRecord>;
  /** Of those that count still. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
}

/** What the stores need not remember. */
export interface Memory {
  /** By UID. */
  readonly certificates: Map<string, string>;
  /** When the record of an identity was last reset. */
  readonly ended: Map<string, number>;
  /** Which bytes spent a proof, and until when. */
  readonly spent: Map<string, { readonly bytes: string; readonly until: number }>;
}

export interface Step {
  readonly cluster: string;
  readonly allowRestart: boolean;
  readonly before: Snapshot;
  readonly after: Snapshot;
  readonly answered: readonly Answered[];
  readonly memory: Memory;
}

export const hour = 3_600_000;
const minute = 60_000;

/** By number: a counterexample is printed, and keys are not. */
export const keys = [newKey('P-256'), newKey('P-256'), newKey('P-256')];

/** Everything that is broken. */
export function checkStep(step: Step): readonly string[] {
  return [
    ...checkRecords(step),
    ...checkVerdicts(step),
    ...step.answered.flatMap((one) => [...checkApproval(one, step), ...checkCertificate(one, step)]),
  ];
}

function checkRecords({ before, after, memory }: Step): readonly string[] {
  const active = [...after.records.values()].filter(({ state }) => state === 'active');
  const addresses = active.flatMap((record) => record.addresses);
  const wrong = [
    ...unless(isUnique(active.map(({ nodeName }) => nodeName)), 'a node name has two active machines'),
    ...active.flatMap(({ nodeName, identity }) =>
      unless(after.holders.get(nodeName)?.identity === identity, `${nodeName} is not its machine's`),
    ),
    ...unless(isUnique(addresses), 'an address has two active machines'),
  ];
  for (const [identity, was] of before.records) {
    const is = after.records.get(identity);
    if (is === undefined) {
      wrong.push(...unless(memory.ended.get(identity) === after.now, `the record of ${identity} is gone`));
      continue;
    }
    if (isDeepStrictEqual(is, was)) continue;
    const grows = is.rev > was.rev && is.uses >= was.uses && is.renewals >= was.renewals && is.lastSeen >= was.lastSeen;
    const stays = is.firstSeen === was.firstSeen && is.nodeName === was.nodeName;
    wrong.push(
      ...unless(grows, `the record of ${identity} went back`),
      ...unless(stays, `the record of ${identity} became another`),
      ...unless(is.state !== 'active' || was.state === 'active', `${identity} came back from ${was.state}`),
      ...unless(
        is.nameFreeAt === was.nameFreeAt || isEnded(was, is, before, after),
        `${identity} was retired, and is not terminated`,
      ),
    );
  }
  return wrong;
}

/** One for each UID, until it is over. */
function checkVerdicts({ before, after }: Step): readonly string[] {
  return [...before.verdicts.values()]
    .filter((was) => was.expiresAt > after.now && !isDeepStrictEqual(after.verdicts.get(was.uid), was))
    .map(({ uid }) => `the verdict of ${uid} changed`);
}

/** A machine that was approved just now was allowed the name by the state at the beginning of the step. */
function checkApproval(one: Answered, step: Step): readonly string[] {
  const { before, after, memory } = step;
  const verdict = after.verdicts.get(one.uid);
  if (verdict?.decidedAt !== after.now || verdict.decision !== 'approve') return [];
  if (verdict.requestDigest !== digestOf(one, step)) return [];
  const { ask } = one;
  const { identity = '' } = verdict;
  const machine = before.machines.get(identity.slice('null#'.length));
  const [was, is] = [before.records.get(identity), after.records.get(identity)];
  const holder = before.holders.get(ask.node);
  return [
    ...unless(ask.what === 'stock' || identity === `null#${ask.machine}`, 'the machine is another'),
    ...unless(machine !== undefined && machine.state === undefined, 'the machine does not run'),
    ...unless(machine?.nodeNames.some((pattern) => mayBe(pattern, ask.node)) === true, 'the machine has no such name'),
    ...unless(is?.state === 'active' && is.nodeName === ask.node, 'the machine is not on record'),
    ...unless(was === undefined || (was.state === 'active' && was.nodeName === ask.node), 'it was on record otherwise'),
    ...unless(
      holder === undefined || holder.identity === identity || isOver(holder, before, after),
      'the name is taken',
    ),
    ...(ask.what === 'client'
      ? unless(was === undefined || mayCome(one, was, step), 'the machine was on record with another key')
      : unless(
          [...(machine?.addresses ?? []), ...(is?.addresses ?? [])].includes(ask.address),
          'the address is foreign',
        )),
    ...checkSpent(one, after, memory),
  ];
}

function checkSpent({ ask, object }: Answered, { now }: Snapshot, { spent }: Memory): readonly string[] {
  if (ask.proof === undefined || ask.what === 'stock') return [];
  const bytes = (object['spec'] as { readonly request: string }).request;
  const before = spent.get(ask.proof);
  if (before !== undefined && before.until > now)
    return unless(before.bytes === bytes, 'the proof was spent by another');
  spent.set(ask.proof, { bytes, until: now + hour });
  return [];
}

/** May that key have a certificate, with this on record? Of two at once, the other may have brought it in. */
function mayCome(
  { ask, uid }: Answered,
  was: IdentityRecord,
  { allowRestart, before, answered, after: { now } }: Step,
): boolean {
  const startedAt = before.machines.get(ask.machine)?.startedAt;
  const { restart } = was;
  const restarted =
    startedAt !== undefined &&
    was.startedAt !== undefined &&
    startedAt > was.startedAt &&
    now - startedAt <= 15 * minute &&
    restart?.startedAt === startedAt &&
    restart.spkiSha256 === sha256Hex(spkiOf(ask)) &&
    !restart.contested &&
    now - restart.since >= 2 * minute;
  return (
    ask.by === 'node' ||
    was.spkiSha256 === sha256Hex(spkiOf(ask)) ||
    (allowRestart && restarted) ||
    answered.some((other) => other.uid !== uid && other.ask.machine === ask.machine && other.ask.key === ask.key)
  );
}

/** Whether a machine may be retired without a successor: terminated at two looks, and its name is free an hour later. */
function isEnded(was: IdentityRecord, is: IdentityRecord, before: Snapshot, { now }: Snapshot): boolean {
  const since = now - (was.unknownSince ?? now);
  const isGone = before.machines.get(is.identity.slice('null#'.length))?.state === 'gone';
  return isGone && since >= 2 * minute && since <= 30 * minute && is.nameFreeAt === now + hour;
}

/** Whether the name of that record may pass on, and has. */
function isOver(other: IdentityRecord, before: Snapshot, after: Snapshot): boolean {
  if (other.state === 'retired' && other.nameFreeAt !== undefined) return mayPassOn(other, before, after);
  const machine = before.machines.get(other.identity.slice('null#'.length));
  const isLookedAtTwice = other.unknownSince !== undefined && after.now - other.unknownSince >= 2 * minute;
  const isGone =
    machine?.state === 'gone' || (machine === undefined && after.now - other.lastSeen > hour && isLookedAtTwice);
  return other.state === 'active' && isGone && after.records.get(other.identity)?.state === 'retired';
}

/** The name of a machine that was retired without a successor: it is free by now, or its platform does not report the machine. */
function mayPassOn({ identity, nameFreeAt = Infinity }: IdentityRecord, before: Snapshot, { now }: Snapshot): boolean {
  const machine = before.machines.get(identity.slice('null#'.length));
  return nameFreeAt <= now || machine === undefined || machine.state === 'gone';
}

/** A certificate is the only one of its UID, and of a machine that is on record as it was when it was let in. */
function checkCertificate(one: Answered, step: Step): readonly string[] {
  const { uid, ask, certificatePem } = one;
  const { after, memory } = step;
  if (certificatePem === undefined) return [];
  const first = memory.certificates.get(uid);
  if (first !== undefined) return unless(first === certificatePem, `${uid} has two certificates`);
  memory.certificates.set(uid, certificatePem);
  const verdict = after.verdicts.get(uid);
  // Of two at once, the other may have taken the name over after sign had looked.
  const isOnRecord = [step.before, after].some(({ records }) => {
    const record = records.get(verdict?.identity ?? '');
    return record?.state === 'active' && record.nodeName === ask.node;
  });
  const { subject, publicKey } = new X509Certificate(certificatePem);
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const ended = memory.ended.get(verdict?.identity ?? '') ?? 0;
  return [
    ...unless(
      verdict?.decision === 'approve' && verdict.requestDigest === digestOf(one, step),
      'signed without verdict',
    ),
    ...unless(isOnRecord, 'signed for a machine that is not on record'),
    ...unless((verdict?.decidedAt ?? 0) > ended, 'signed by a verdict from before the reset'),
    ...unless(subject.split('\n').includes(`CN=system:node:${ask.node}`), 'signed for another node'),
    ...unless(spki.equals(spkiOf(ask)), 'signed for another key'),
  ];
}

function spkiOf({ key }: Ask): Uint8Array {
  return keys[key]?.spki ?? new Uint8Array();
}

function digestOf({ object }: Answered, { cluster }: Step): string {
  const read = decodeRequestObject(object);
  if (!read.ok || read.value.signerName === undefined) throw new Error('not a request');
  return requestDigest(cluster, read.value, read.value.signerName);
}

function mayBe(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function isUnique(texts: readonly string[]): boolean {
  return new Set(texts).size === texts.length;
}

function unless(holds: boolean, otherwise: string): string[] {
  return holds ? [] : [otherwise];
}
