/**
 * May this machine be this node? First what is on record, then the machine as its platform describes it, then what
 * must be true of both. What comes out is a claim, which the store writes whole or not at all, or the reasons why not.
 */
import type {
  AttestationStore,
  Claim,
  IdentityRecord,
  IdentityWrite,
  LookupResult,
} from '../ports/attestation-store.ts';
import type { AttestationProvider, Examined, Machine, MachineState } from './evidence/provider.ts';
import type { AttestQuestion } from './attest-question.ts';
import { providerIdType } from '../x509/certificate-request.ts';
import { machineLocked } from './locks.ts';
import { mostAddresses } from './records/stored-records.ts';
import { nodeUserPrefix } from '../policy/in-tree-rules.ts';
import { usedUp } from './request-limits.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import { nameMatches } from '../policy/patterns.ts';
import { LaterError } from '../ports/errors.ts';
import type { EvidenceResult, Refusal } from './examine-evidence.ts';
import { quoted } from '../outcome/printable-text.ts';
import { checkNames, rangeAddresses } from './serving-names.ts';
import { checkHolderGone, checkRestarted, holderTooEarly, restartTooEarly } from './second-look.ts';
import type { Change } from './second-look.ts';
import { decideFirstUse, firstRecord, machineRetired, seenRecord, usedRecord } from './first-use.ts';
import type { FirstUse, Use } from './first-use.ts';
import { ulid } from './records/ulid.ts';

export type Admission =
  | {
      readonly admitted: true;
      readonly identity: string;
      /** The key asked for is the machine's first and was never replaced. */
      readonly firstKey: boolean;
      readonly claim: Omit<Claim, 'verdict'> & { readonly identity: Written };
    }
  | (Refusal & Observed)
  /** Temporary. */
  | ({ readonly admitted: 'later'; readonly why: LaterError } & Observed);

/** A record with what was seen of its machine: written before anybody is answered. */
interface Observed {
  readonly observed?: IdentityRecord;
}

/** Whoever is admitted is on record. */
type Written = Exclude<IdentityWrite, { readonly kind: 'none' }>;

interface AdmissionPorts {
  readonly store: Pick<AttestationStore, 'lookup'>;
  readonly providers: ReadonlyMap<string, AttestationProvider>;
  randomBytes(count: number): Uint8Array;
}

/** Judges anew what is on record; called again when a claim met somebody else's. */
export async function admit(
  question: AttestQuestion,
  proof: EvidenceResult,
  ports: AdmissionPorts,
): Promise<Admission> {
  switch (proof.kind) {
    case 'refused':
      return proof.refusal;
    case 'record':
      return admitRecorded(question, ports);
    case 'evidence':
      return question.serving ? admitServing(question, proof, ports) : admitNode(question, proof, ports);
  }
}

type WithEvidence = EvidenceResult & { readonly kind: 'evidence' };

/** A client certificate: the machine becomes, or stays, this node. */
async function admitNode(question: AttestQuestion, proof: WithEvidence, ports: AdmissionPorts): Promise<Admission> {
  const { provider, examined } = proof;
  const seen = await lookup(question, examined, ports);
  const spent = checkSeen(question, examined, seen);
  if (spent !== undefined) return no(spent);
  const { identity } = examined;
  const firstUse = decideFirstUse({
    identity,
    nodeName: question.nodeName,
    spkiSha256: question.spkiSha256,
    byNodeItself: question.username === `${nodeUserPrefix}${question.nodeName}`,
    secure: provider.secure,
    allowRestart: provider.restartWindow !== undefined,
    now: question.now,
    record: seen.identity,
    holder: seen.holder,
  });
  if ('code' in firstUse) return no(firstUse);

  // Only now is anybody else asked: what is refused or put off above costs no call.
  const early = tooOften(seen.identity, question) ?? unlessAllowed(tooEarly(firstUse, question));
  if (early !== undefined) return early;
  const machine = await proof.machine();
  if ('violations' in machine) return { admitted: false, violations: machine.violations };
  const [wrong, ...more] = checkMachine(question, machine, identity);
  if (wrong !== undefined) return no(wrong, ...more);
  const changed = unlessAllowed(await checkChange(firstUse, machine, question, provider, ports));
  if (changed !== undefined) return changed;
  return {
    admitted: true,
    identity,
    firstKey: isFirstKey(firstUse),
    claim: claimOf(question, examined, machine, firstUse, ports),
  };
}

/** A serving certificate with evidence: whatever the evidence proves, the machine must be registered as this node. */
async function admitServing(question: AttestQuestion, proof: WithEvidence, ports: AdmissionPorts): Promise<Admission> {
  const { examined, provider } = proof;
  if (!provider.secure) return no(noServing);
  if (asksForTooMany(question)) return no(tooManyAddresses);
  const seen = await lookup(question, examined, ports);
  const spent = checkSeen(question, examined, seen);
  if (spent !== undefined) return no(spent);
  const record = seen.identity;
  if (record === undefined) return no(notRegistered(question));
  const unfit = checkRegistered(question, record);
  if (unfit !== undefined) return no(unfit);
  const often = tooOften(record, question);
  if (often !== undefined) return often;
  const machine = await proof.machine();
  if ('violations' in machine) return { admitted: false, violations: machine.violations };
  const [wrong, ...more] = checkMachine(question, machine, record.identity);
  if (wrong !== undefined) return no(wrong, ...more);
  return admitNames(question, record, machine, seen, spend(question, examined));
}

/** A stock kubelet's serving certificate: the machine on record, as its platform describes it today. */
async function admitRecorded(question: AttestQuestion, ports: AdmissionPorts): Promise<Admission> {
  const { nodeName, wanted, now } = question;
  if (asksForTooMany(question)) return no(tooManyAddresses);
  const seen = await lookup(question, undefined, ports);
  const record = seen.holder;
  if (record === undefined) return no(notRegistered(question));
  const unfit = checkRegistered(question, record);
  if (unfit !== undefined) return no(unfit);
  const provider = providerOf(record, ports.providers);
  if (provider === undefined || !wanted.providers.includes(provider.name))
    return no(violation('IdentityNotAllowed', `node ${quoted(nodeName)} was registered by a provider not taken here`));
  if (!provider.secure) return no(noServing);
  const often = tooOften(record, question);
  if (often !== undefined) return often;
  const state = await provider.describe(record.identity, now);
  if (state.kind !== 'running')
    return no(violation('IdentityNotAllowed', `the machine of node ${quoted(nodeName)} is not running`));
  const [unwanted, ...others] = [...state.violations, ...checkMachine(question, state.machine, record.identity)];
  if (unwanted !== undefined) return no(unwanted, ...others);
  return admitNames(question, record, state.machine, seen, []);
}

function asksForTooMany({ request, settings }: AttestQuestion): boolean {
  return rangeAddresses(request.sans, settings.addressRanges).length > mostAddresses;
}

const tooManyAddresses = violation(
  'NameNotOwned',
  `a machine has at most ${mostAddresses} addresses of the operator's ranges`,
);

function admitNames(
  question: AttestQuestion,
  record: IdentityRecord,
  machine: Machine,
  seen: LookupResult,
  once: Claim['once'],
): Admission {
  const { request, nodeName, settings, context, uid, now } = question;
  const ranged = rangeAddresses(request.sans, settings.addressRanges);
  const holders = new Map(ranged.flatMap((address, index) => pairOf(address, seen.addresses[index])));
  const [foreign, ...more] = checkNames({
    sans: request.sans,
    nodeName,
    machine,
    addressRanges: settings.addressRanges,
    holders,
    ...(context.machine?.addresses === undefined ? {} : { only: context.machine.addresses }),
  });
  if (foreign !== undefined) return no(foreign, ...more);
  // A record holds so many, and one transaction frees them all.
  if (new Set([...record.addresses, ...ranged]).size > mostAddresses) return no(tooManyAddresses);
  const newAddresses = ranged.filter((address) => !holders.has(address) && !machine.addresses.includes(address));
  const used = seenRecord(record, { startedAt: machine.startedAt, uid, now });
  return {
    admitted: true,
    identity: record.identity,
    // Serving keys are no client keys: none of them is the one that was trusted first.
    firstKey: false,
    claim: {
      once,
      identity: { kind: 'replace', record: { ...used, addresses: [...record.addresses, ...newAddresses] } },
      newAddresses,
      audit: [],
    },
  };
}

// ── Its steps ───────────────────────────────────────────────────────────────────────────────────────────────────────

function lookup(
  question: AttestQuestion,
  examined: Examined | undefined,
  { store }: AdmissionPorts,
): Promise<LookupResult> {
  const { nodeName, now, serving, request, settings } = question;
  return store.lookup({
    now,
    ...(examined === undefined ? {} : { identity: examined.identity }),
    nodeName,
    once: examined?.once ?? [],
    addresses: serving ? rangeAddresses(request.sans, settings.addressRanges) : [],
    machines: examined?.machines ?? [],
  });
}

/** A captured proof comes with other bytes than those that spent it; a retry comes with the same. */
function checkSeen(
  { requestSha256 }: AttestQuestion,
  { machines }: Examined,
  seen: LookupResult,
): Violation | undefined {
  if (seen.lock !== undefined) return machineLocked;
  if (seen.once.some((holder) => holder !== undefined && holder !== requestSha256))
    return violation('AttestationInvalid', 'this proof was used before, by another request');
  if (machines.length > 0 && !seen.listed)
    return violation('IdentityNotAllowed', 'this machine is not on the list (countersign machines allow)');
  return undefined;
}

/** What the platform says of the machine, held against what the request says. */
function checkMachine({ request, nodeName, context }: AttestQuestion, machine: Machine, identity: string): Violation[] {
  if (machine.identity !== identity) throw new Error('the provider describes another machine than it examined');
  const violations: Violation[] = [];
  if (!machine.nodeNames.some((pattern) => nameMatches(pattern, nodeName)))
    violations.push(violation('IdentityNotAllowed', `this machine may not be called ${quoted(nodeName)}`));
  // Stock kubelets send none, and their requests bring no evidence either.
  if (request.evidence.length > 0 && request.providerId === undefined)
    violations.push(violation('AttestationInvalid', `the request lacks the provider ID extension (${providerIdType})`));
  else if (request.evidence.length > 0 && request.providerId !== machine.providerId)
    violations.push(violation('AttestationInvalid', `the provider ID extension must be ${quoted(machine.providerId)}`));
  const { providerId = machine.providerId, nodeName: called = nodeName } = context.machine ?? {};
  if (providerId !== machine.providerId || called !== nodeName)
    violations.push(violation('IdentityNotAllowed', 'the Machine object speaks of another machine'));
  return violations;
}

/** Too many certificates of one machine in a while. */
function tooOften(record: IdentityRecord | undefined, { now }: AttestQuestion): Admission | undefined {
  const left = record === undefined ? undefined : usedUp(record, now);
  if (left === undefined) return undefined;
  return { admitted: 'later', why: new LaterError('Limited', 'this machine had too many certificates lately', left) };
}

/** Known from the record alone, of what would change hands. */
function tooEarly(firstUse: FirstUse, { spkiSha256, now }: AttestQuestion): Change | undefined {
  switch (firstUse.kind) {
    case 'first':
    case 'repeat':
    case 'renewal':
      return undefined;
    case 'restart':
      return restartTooEarly(firstUse.record, spkiSha256, now);
    case 'takeover':
      return holderTooEarly(firstUse.holder, now);
  }
}

/** What only matters when the record would change hands. Asks the platform of the machine that had the name. */
async function checkChange(
  firstUse: FirstUse,
  { startedAt }: Machine,
  { spkiSha256, now }: AttestQuestion,
  { restartWindow: window = 0 }: AttestationProvider,
  { providers }: AdmissionPorts,
): Promise<Change | undefined> {
  switch (firstUse.kind) {
    case 'first':
    case 'repeat':
    case 'renewal':
      return undefined;
    case 'restart':
      return checkRestarted({ record: firstUse.record, spkiSha256, startedAt, window, now });
    case 'takeover': {
      const { holder } = firstUse;
      const provider = providerOf(holder, providers);
      // Whoever knew that machine is not configured any more: nobody can say that it is gone.
      const state: MachineState =
        provider === undefined ? { kind: 'stopped' } : await provider.describe(holder.identity, now);
      return checkHolderGone(holder, state, now);
    }
  }
}

function unlessAllowed(change: Change | undefined): Admission | undefined {
  switch (change?.kind) {
    case undefined:
    case 'allowed':
      return undefined;
    case 'refused':
      return { ...no(change.violation), ...observedIn(change) };
    case 'later': {
      const why = new LaterError('SecondLook', change.message, change.afterMilliseconds);
      return { admitted: 'later', why, ...observedIn(change) };
    }
  }
}

function observedIn({ observed }: Observed): Observed {
  return observed === undefined ? {} : { observed };
}

function claimOf(
  question: AttestQuestion,
  examined: Examined,
  { providerId, startedAt }: Machine,
  firstUse: FirstUse,
  ports: AdmissionPorts,
): (Admission & { readonly admitted: true })['claim'] {
  const { nodeName, spkiSha256, uid, now } = question;
  const { identity } = examined;
  const use: Use = { identity, nodeName, spkiSha256, providerId, startedAt, uid, now };
  const claim = { once: spend(question, examined), newAddresses: [], audit: [] };
  switch (firstUse.kind) {
    case 'first':
      return { ...claim, identity: { kind: 'create', record: firstRecord(use) } };
    case 'takeover': {
      const { holder } = firstUse;
      const retired = {
        id: ulid(now, ports.randomBytes(10)),
        at: now,
        by: 'attest',
        action: 'retire',
        subject: holder.identity,
        nodeName,
        reason: `its machine is gone; the name passed to ${identity}`,
        before: holder,
      } as const;
      return { ...claim, identity: { kind: 'create', record: firstRecord(use) }, retire: holder, audit: [retired] };
    }
    case 'repeat':
    case 'renewal':
    case 'restart':
      return { ...claim, identity: { kind: 'replace', record: usedRecord(firstUse.record, use) } };
  }
}

function spend({ requestSha256 }: AttestQuestion, { once }: Examined): Claim['once'] {
  return once.map((key) => ({ ...key, requestSha256 }));
}

function isFirstKey(firstUse: FirstUse): boolean {
  switch (firstUse.kind) {
    case 'first':
    case 'takeover':
      return true;
    case 'repeat':
      return firstUse.record.renewals === 0;
    case 'renewal':
    case 'restart':
      return false;
  }
}

function checkRegistered({ nodeName }: AttestQuestion, record: IdentityRecord): Violation | undefined {
  if (record.state !== 'active') return machineRetired;
  if (record.nodeName === nodeName) return undefined;
  return violation('TofuNodeMismatch', `this machine is registered as node ${quoted(record.nodeName)}`);
}

function notRegistered({ nodeName }: AttestQuestion): Violation {
  return violation('AttestationMissing', `no machine is registered as node ${quoted(nodeName)}`);
}

const noServing = violation(
  'IdentityNotAllowed',
  'machines that cannot prove who they are get no serving certificates',
);

/** Identities begin with their provider's name. */
function providerOf(
  { identity }: IdentityRecord,
  providers: ReadonlyMap<string, AttestationProvider>,
): AttestationProvider | undefined {
  return providers.get(identity.slice(0, identity.indexOf('#')));
}

function pairOf<T>(key: string, value: T | undefined): readonly (readonly [string, T])[] {
  return value === undefined ? [] : [[key, value]];
}

function no(first: Violation, ...more: readonly Violation[]): Refusal {
  return { admitted: false, violations: [first, ...more] };
}
