/** The oracle of machines: who is let in, as whom, with which key and under which names. */
import type { Claim, DeviceState, IdentityRecord } from '../../../core/ports/attestation-store.ts';
import { secondLookAfter } from '../../../core/attestation/second-look.ts';
import { latestMilliseconds } from '../call.ts';
import { epoch } from '../runtime.ts';
import { createObjectOracle } from './machine-objects.ts';
import { createRetirementOracle } from './retirement.ts';
import type { Invocation } from '../ports/function-ports.ts';
import { insecureSigner, rangePrefix, reservedAddress, servingSigners } from '../scenario.ts';
import type { Bench } from './oracle.ts';
import type { MachineFacts, GroundTruth } from '../ground-truth.ts';

/** How long a call of a function lives at most (functions.ts). */
const functionMilliseconds = 25_000;
/** How long what a platform said decides about serving certificates: docs/attestation.md. */
const describedMilliseconds = 120_000;
/** How long after a look at a platform its record is written at most: the function's life, and a write that arrives late (call.ts). */
const writtenWithin = functionMilliseconds + latestMilliseconds;

export interface MachineOracle {
  /** After anything happened to records. */
  readonly registered: () => void;
  claimed(invocation: Invocation, claim: Claim): void;
  /** A run has retired it. */
  readonly retired: (record: IdentityRecord, nameFreeAt: number) => void;
  /** A first look at something that needs two. */
  observed(record: IdentityRecord): void;
  readonly listed: (name: string, allowed: boolean) => void;
  /** When that registration ended, if it did. */
  endedAt(identity: string, registeredAt: number | undefined): number | undefined;
  /** The client key of that machine, as last let in. */
  keyOf(identity: string): string | undefined;
}

export function createMachineOracle(bench: Bench): MachineOracle {
  const { runtime, scenario, attestations, truths, facts, broken, label } = bench;
  const retirement = createRetirementOracle(bench);
  const objects = createObjectOracle(bench);
  /** When a registration ended: by identity and when it began. */
  const endings = new Map<string, number>();
  let active = new Map<string, IdentityRecord>();
  /** The client key of each machine, as last let in, and when that was asked for. */
  const keys = new Map<string, { readonly spkiSha256: string; readonly askedAt: number }>();
  /** When which other key of a machine was seen first, since its last use. */
  const looks = new Map<string, { readonly spkiSha256: string; readonly at: number; contested: boolean }>();
  /** What the TPM of each machine said last. */
  const devices = new Map<string, DeviceState>();
  /** When the platform was asked first about a machine that it does not know. */
  const marks = new Map<string, number>();
  /** Whose an address of the operator's ranges is. */
  const owners = new Map<string, string>();
  /** From when until when something was on the list. */
  const entries: { readonly name: string; readonly from: number; until: number }[] = [];

  function noteRecords(): void {
    const now = new Map<string, IdentityRecord>();
    const names = new Map<string, string>();
    for (const record of attestations.identities.values()) {
      if (record.state !== 'active') continue;
      now.set(`${record.identity} ${record.firstSeen}`, record);
      const other = names.get(record.nodeName);
      if (other !== undefined) broken(`${record.nodeName} belongs to ${other} and to ${record.identity}`);
      names.set(record.nodeName, record.identity);
      if (attestations.names.get(record.nodeName) !== record.identity)
        broken(`${record.nodeName} is ${record.identity}'s, and its name another's`);
    }
    for (const key of active.keys()) if (!now.has(key)) endings.set(key, runtime.timeline.now());
    active = now;
    for (const identity of keys.keys()) if (!attestations.identities.has(identity)) keys.delete(identity);
    // What is forgotten or retired holds nothing any more.
    for (const [address, identity] of owners)
      if (attestations.identities.get(identity)?.state !== 'active') owners.delete(address);
  }

  function registered(): void {
    noteRecords();
    retirement.registered();
  }

  /** What one approval wrote: is it what the machines really did? */
  function claimed({ process }: Invocation, claim: Claim): void {
    const { verdict, identity, retire, newAddresses } = claim;
    if (verdict.decision !== 'approve') {
      runtime.count('step: claim: refused');
      if (identity.kind !== 'none') broken(`${label(verdict.uid)}: refused, and a machine is registered by it`);
      return;
    }
    const truth = truths.get(verdict.uid);
    if (identity.kind === 'none') return broken(`${label(verdict.uid)}: let in, and no machine is on record for it`);
    if (truth === undefined || truth.digest !== verdict.requestDigest || !truth.genuine)
      return broken(`${label(verdict.uid)}: let in, and no machine of that name asked for it`);
    const { record } = identity;
    const fact = facts.get(record.identity);
    if (record.nodeName !== truth.node) return broken(`${truth.what}: let in as ${record.nodeName}`);
    if (truth.evidence || truth.signerName === insecureSigner)
      if (truth.machine !== record.identity) return broken(`${truth.what}: let in as ${record.identity}`);
    if (fact?.gone !== undefined && fact.gone < truth.createdAt - reusedFor(truth))
      return broken(`${truth.what}: let in, and the machine was terminated before it asked`);
    if (truth.evidence && scenario.listed && !wasListed(record.identity, process.startedAt))
      return broken(`${truth.what}: let in, and it was not on the list`);
    if (retire !== undefined) checkRetired(retire, record);
    retirement.claimed(claim);
    objects.claimed(truth, record);
    if (scenario.tpm && truth.evidence) checkDevice(truth, identity);
    countClaim(truth, identity, retire, newAddresses);
    const look = looks.get(record.identity);
    looks.delete(record.identity);
    if (servingSigners.has(truth.signerName)) checkNames(truth, record, fact);
    else checkKey(truth, identity, look, fact);
  }

  /** A machine is known by an attestation key that its own TPM has activated, and its TPM never becomes younger. */
  function checkDevice(truth: GroundTruth, { kind, record }: Claim['identity'] & { record: IdentityRecord }): void {
    const { device, identity } = record;
    const before = kind === 'create' ? undefined : devices.get(identity);
    if (device === undefined || device.akName !== truth.akName)
      return broken(`${truth.what}: let in, and its attestation key is not on record`);
    if (before?.akName !== device.akName && truth.activated !== true)
      return broken(`${truth.what}: let in with an attestation key that nothing activated`);
    if (before !== undefined && before.akName !== device.akName) runtime.count('step: claim: another attestation key');
    if (before !== undefined && device.resetCount <= before.resetCount)
      if (device.resetCount < before.resetCount || device.clock < before.clock)
        return broken(`${truth.what}: let in, and its TPM was older at its last use`);
    devices.set(identity, device);
  }

  function checkRetired(retire: IdentityRecord, record: IdentityRecord): void {
    const gone = facts.get(retire.identity)?.gone;
    const now = runtime.timeline.now();
    if (gone === undefined || gone > now)
      return broken(`${record.identity} takes ${record.nodeName} from ${retire.identity}, which runs`);
    // Of what ended before all this the platform knows nothing: one answer is not enough.
    const look = marks.get(retire.identity);
    if (gone < 0 && retire.state === 'active' && !isApart(look, now))
      broken(`${record.identity} takes ${record.nodeName} from ${retire.identity} without a second look`);
  }

  function observed({ identity, restart, unknownSince }: IdentityRecord): void {
    if (unknownSince === undefined) marks.delete(identity);
    else marks.set(identity, lookedAt(unknownSince));
    const before = looks.get(identity);
    if (restart === undefined) looks.delete(identity);
    else if (restart.contested && before !== undefined) before.contested = true;
    else
      looks.set(identity, {
        spkiSha256: restart.spkiSha256,
        at: lookedAt(restart.since),
        contested: restart.contested,
      });
  }

  /** When the platform was asked, as the record has it: not in the future, and not longer ago than a write takes. */
  function lookedAt(recorded: number): number {
    const now = runtime.timeline.now();
    return Math.max(Math.min(recorded - epoch, now), now - writtenWithin);
  }

  /** As the functions saw it: by clocks that are off by their skew, each way, and before the claim, which takes its time. */
  function isApart(first: number | undefined, now: number): boolean {
    const slack = 2 * runtime.rates.skew + functionMilliseconds;
    return first !== undefined && now - first >= secondLookAfter - slack;
  }

  function checkKey(
    truth: GroundTruth,
    identity: Claim['identity'] & { record: IdentityRecord },
    look: { readonly spkiSha256: string; readonly at: number; readonly contested: boolean } | undefined,
    fact?: MachineFacts,
  ): void {
    const { record } = identity;
    const before = keys.get(record.identity);
    if (record.spkiSha256 !== truth.spkiSha256)
      return broken(`${truth.what}: let in with another key than it asked for`);
    if (identity.kind === 'replace' && before?.spkiSha256 !== record.spkiSha256 && !isItself(truth)) {
      const now = runtime.timeline.now();
      const restarted =
        before !== undefined && fact?.starts.some((start) => start > before.askedAt && start <= now) === true;
      if (!scenario.allowRestart || truth.signerName === insecureSigner || !restarted)
        return broken(`${truth.what}: its key takes the place of another, and the node itself did not ask`);
      if (look?.spkiSha256 !== truth.spkiSha256 || look.contested || !isApart(look.at, now))
        return broken(`${truth.what}: its key takes the place of another without a second look`);
    }
    if (identity.kind === 'create' || before?.spkiSha256 !== record.spkiSha256)
      keys.set(record.identity, { spkiSha256: truth.spkiSha256, askedAt: truth.createdAt });
  }

  /** The node itself asks, or the very TPM of the machine. */
  function isItself({ byNode, evidence }: GroundTruth): boolean {
    return byNode || (scenario.tpm && evidence);
  }

  /** Every name in it is the machine's: its platform says so, it is the node's own, or it came first. */
  function checkNames(truth: GroundTruth, record: IdentityRecord, fact?: MachineFacts): void {
    if (fact === undefined) return broken(`${truth.what}: no platform speaks for ${record.identity}`);
    if (keys.get(record.identity) !== undefined && record.spkiSha256 !== keys.get(record.identity)?.spkiSha256)
      return broken(`${truth.what}: a serving key takes the place of the machine's own`);
    for (const name of truth.names ?? []) {
      if (name === record.nodeName || fact.dnsNames.includes(name) || fact.addresses.includes(name)) continue;
      // It had it when the platform was asked.
      const since = truth.createdAt - reusedFor(truth);
      if (fact.former.some(({ address, until }) => address === name && until >= since)) continue;
      const ranged = name.startsWith(rangePrefix) && name !== reservedAddress;
      const owner = owners.get(name) ?? record.identity;
      if (!ranged || owner !== record.identity)
        return broken(`${record.identity} gets ${name}, which is ${ranged ? `${owner}'s` : 'not its own'}`);
      owners.set(name, owner);
    }
  }

  /** How old what the platform said may be: the clocks of both calls are off by their skew. */
  function reusedFor({ signerName }: GroundTruth): number {
    const isReused = scenario.reuses && servingSigners.has(signerName);
    return isReused ? describedMilliseconds + 2 * runtime.rates.skew : 0;
  }

  function wasListed(identity: string, since: number): boolean {
    const now = runtime.timeline.now();
    // A claim depends on the machine's own entry, and on a pattern only when it is read.
    return entries.some(({ name, until }) => until >= (name === identity ? now : since) && covers(name, identity));
  }

  function countClaim(
    { signerName }: GroundTruth,
    identity: Claim['identity'] & { record: IdentityRecord },
    retire: IdentityRecord | undefined,
    newAddresses: readonly string[],
  ): void {
    const { record } = identity;
    if (signerName === insecureSigner) runtime.count('step: claim: insecure');
    if (newAddresses.length > 0) runtime.count('step: claim: an address');
    if (servingSigners.has(signerName)) return runtime.count('step: claim: serving');
    if (identity.kind === 'create') return runtime.count(`step: claim: ${retire === undefined ? 'first' : 'takeover'}`);
    if (keys.get(record.identity)?.spkiSha256 === record.spkiSha256) return runtime.count('step: claim: repeat');
    const byNode = truths.get(record.lastUid ?? '')?.byNode === true;
    const renewal = byNode || scenario.tpm;
    runtime.count(`step: claim: ${renewal ? 'renewal' : 'restart'}`);
  }

  return {
    registered,
    claimed(invocation, claim) {
      noteRecords();
      claimed(invocation, claim);
      // After the invariants of the claim, which name the machine that took the name.
      retirement.registered();
    },
    observed,
    retired(record, nameFreeAt) {
      registered();
      retirement.retired(record, nameFreeAt, isApart(marks.get(record.identity), runtime.timeline.now()));
      marks.delete(record.identity);
    },
    listed(name, allowed) {
      const now = runtime.timeline.now();
      for (const entry of entries) if (entry.name === name && entry.until === Infinity) entry.until = now;
      if (allowed) entries.push({ name, from: now, until: Infinity });
    },
    endedAt: (identity, registeredAt) => endings.get(`${identity} ${registeredAt ?? ''}`),
    keyOf: (identity) => keys.get(identity)?.spkiSha256,
  };
}

/** Of a list entry: `*` is any run of characters. */
function covers(entry: string, identity: string): boolean {
  const parts = entry.split('*').map((part) => part.replace(/[.\\+^$()[\]{}|?]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`).test(identity);
}
