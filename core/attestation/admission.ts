/**
 * May this machine be this node? First the records, then the machine as its platform describes it, then what must hold
 * for both. The result is a claim, which the store writes completely or not at all, or the reasons for a refusal.
 */
import { violation } from '../outcome/outcome.ts';
import type { Violation, Violations } from '../outcome/outcome.ts';
import { quoted } from '../outcome/printable-text.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import { nodeUserPrefix } from '../policy/in-tree-rules.ts';
import type { AttestationStore, IdentityRecord, LookupResult } from '../ports/attestation-store.ts';
import { LaterError } from '../ports/errors.ts';
import type { AttestQuestion } from './attest-question.ts';
import { checkMachine } from './check-machine.ts';
import { firstUseClaim, servingClaim, spentEvidence } from './claims.ts';
import type { AdmissionClaim } from './claims.ts';
import type { AttestationProvider, Examined, Machine } from './evidence/provider.ts';
import type { Evidence, EvidenceRefused, EvidenceResult } from './examine-evidence.ts';
import { decideFirstUse, isFirstKey, machineRetired } from './first-use.ts';
import type { FirstUse } from './first-use.ts';
import { machineLocked } from './locks.ts';
import { mostAddresses } from './records/stored-records.ts';
import { usedUp } from './request-limits.ts';
import { checkHolderGone, checkRestarted, holderTooEarly, restartTooEarly } from './second-look.ts';
import type { Change } from './second-look.ts';
import { checkNames, rangeAddresses } from './serving-names.ts';

export type Admission =
  | {
      readonly kind: 'admitted';
      readonly identity: string;
      /** The requested key is the machine's first and was never replaced. */
      readonly firstKey: boolean;
      readonly claim: AdmissionClaim;
    }
  | (EvidenceRefused & Observed)
  /** Temporary. */
  | ({ readonly kind: 'later'; readonly error: LaterError } & Observed);

interface Observed {
  /** The record of a machine with a new observation about it: written before the answer. */
  readonly observed?: IdentityRecord;
}

interface AdmissionPorts {
  readonly store: Pick<AttestationStore, 'lookup'>;
  readonly providers: ReadonlyMap<string, AttestationProvider>;
  randomBytes(count: number): Uint8Array;
}

/** Called again, with the records as they are then, if the claim of another request came first. */
export async function admit(
  question: AttestQuestion,
  evidence: Exclude<EvidenceResult, { readonly kind: 'unattested' }>,
  ports: AdmissionPorts,
): Promise<Admission> {
  if (evidence.kind === 'refused') return evidence;
  return evidence.kind === 'record' || question.serving
    ? admitServing(question, evidence, ports)
    : admitNode(question, evidence, ports);
}

/** A client certificate: the machine becomes, or stays, this node. */
async function admitNode(question: AttestQuestion, evidence: Evidence, ports: AdmissionPorts): Promise<Admission> {
  // What is on record of this machine and of this node name?
  const { examined, provider } = evidence;
  const records = await lookup(question, examined, ports);
  const misused = checkEvidenceUse(question, examined, records);
  if (misused !== undefined) return refuse(misused);

  // Do the records let this machine, with this key, be this node?
  const firstUse = decideFirstUse({
    identity: examined.identity,
    nodeName: question.nodeName,
    spkiSha256: question.spkiSha256,
    byNodeItself: question.username === `${nodeUserPrefix}${question.nodeName}`,
    secure: provider.secure,
    allowRestart: provider.restartWindow !== undefined,
    now: question.now,
    record: records.identity,
    holder: records.holder,
  });
  if (firstUse.kind === 'refused') return refuse(firstUse.violation);

  // Only now is a platform asked: a refusal or delay above costs no call.
  const handOver = handOverOf(firstUse, question, provider, ports.providers);
  const early = checkUses(records.identity, question) ?? notYet(handOver?.tooEarly);
  if (early !== undefined) return early;
  const machine = await evidence.machine();
  if (!machine.ok) return { kind: 'refused', violations: machine.problem };
  const [first, ...more] = checkMachine(question, machine.value, examined.identity);
  if (first !== undefined) return refuse(first, ...more);

  // Does the platform confirm that the node name, or the machine's key, may change hands?
  const notConfirmed = notYet(await handOver?.check(machine.value));
  if (notConfirmed !== undefined) return notConfirmed;
  return {
    kind: 'admitted',
    identity: examined.identity,
    firstKey: isFirstKey(firstUse),
    claim: firstUseClaim(question, examined, machine.value, firstUse, ports),
  };
}

/** A serving certificate: the machine must be registered as this node, and every name in the request must be its own. */
async function admitServing(
  question: AttestQuestion,
  evidence: Evidence | { readonly kind: 'record' },
  ports: AdmissionPorts,
): Promise<Admission> {
  // Stock kubelets send no evidence: their machine is the one that holds the node name.
  const examined = evidence.kind === 'evidence' ? evidence.examined : undefined;
  if (evidence.kind === 'evidence' && !evidence.provider.secure) return refuse(noServing);
  const ranged = rangeAddresses(question.request.sans, question.settings.addressRanges);
  if (ranged.length > mostAddresses) return refuse(tooManyAddresses);

  // Which machine is registered as this node?
  const records = await lookup(question, examined, ports);
  const misused = checkEvidenceUse(question, examined, records);
  if (misused !== undefined) return refuse(misused);
  const registered = checkRegistered(question, examined === undefined ? records.holder : records.identity);
  if (!registered.ok) return refuse(registered.problem);
  const record = registered.value;

  // How does its platform describe it?
  const describe = describerOf(question, evidence, record, ports.providers);
  if (!describe.ok) return refuse(describe.problem);
  const often = checkUses(record, question);
  if (often !== undefined) return often;
  const described = await describe.value();
  if (!described.ok) return { kind: 'refused', violations: described.problem };
  const { machine, violations } = described.value;
  const [first, ...more] = [...violations, ...checkMachine(question, machine, record.identity)];
  if (first !== undefined) return refuse(first, ...more);

  // Is every requested name its own?
  const holders = new Map(ranged.flatMap((address, index) => pairOf(address, records.addresses[index])));
  const [foreign, ...others] = checkNames({
    sans: question.request.sans,
    nodeName: question.nodeName,
    machine,
    addressRanges: question.settings.addressRanges,
    holders,
    ...(question.context.machine?.addresses === undefined ? {} : { only: question.context.machine.addresses }),
  });
  if (foreign !== undefined) return refuse(foreign, ...others);
  // One record holds at most so many addresses, and one transaction frees them all.
  if (new Set([...record.addresses, ...ranged]).size > mostAddresses) return refuse(tooManyAddresses);
  const newAddresses = ranged.filter((address) => !holders.has(address) && !machine.addresses.includes(address));
  return {
    kind: 'admitted',
    identity: record.identity,
    // Serving keys are not client keys: no serving key is the first key of a machine.
    firstKey: false,
    claim: servingClaim(question, record, machine, newAddresses, spentEvidence(question, examined)),
  };
}

// ── Its steps ───────────────────────────────────────────────────────────────────────────────────────────────────────

function lookup(
  { nodeName, now, serving, request, settings }: AttestQuestion,
  examined: Examined | undefined,
  { store }: AdmissionPorts,
): Promise<LookupResult> {
  return store.lookup({
    now,
    ...(examined === undefined ? {} : { identity: examined.identity }),
    nodeName,
    once: examined?.once ?? [],
    addresses: serving ? rangeAddresses(request.sans, settings.addressRanges) : [],
    machines: examined?.machines ?? [],
  });
}

/** Captured evidence comes with other bytes than those that spent it; a retry comes with the same bytes. */
function checkEvidenceUse(
  { requestSha256 }: AttestQuestion,
  examined: Examined | undefined,
  records: LookupResult,
): Violation | undefined {
  if (records.lock !== undefined) return machineLocked;
  if (records.once.some((spentBy) => spentBy !== undefined && spentBy !== requestSha256))
    return violation('AttestationInvalid', 'this proof was used before, by another request');
  if (examined !== undefined && examined.machines.length > 0 && !records.listed)
    return violation('IdentityNotAllowed', 'this machine is not on the list (countersign machines allow)');
  return undefined;
}

function checkRegistered(
  { nodeName }: AttestQuestion,
  record: IdentityRecord | undefined,
): Result<IdentityRecord, Violation> {
  if (record === undefined)
    return failure(violation('AttestationMissing', `no machine is registered as node ${quoted(nodeName)}`));
  if (record.state !== 'active') return failure(machineRetired);
  if (record.nodeName === nodeName) return success(record);
  return failure(violation('TofuNodeMismatch', `this machine is registered as node ${quoted(record.nodeName)}`));
}

/** Too many certificates of one machine within the window of request-limits.ts. */
function checkUses(record: IdentityRecord | undefined, { now }: AttestQuestion): Admission | undefined {
  const wait = record === undefined ? undefined : usedUp(record, now);
  if (wait === undefined) return undefined;
  return { kind: 'later', error: new LaterError('Limited', 'this machine had too many certificates lately', wait) };
}

/** A machine as its platform describes it; `violations`: it runs, and policy would not let it join today. */
interface Described {
  readonly machine: Machine;
  readonly violations: readonly Violation[];
}

/** The evidence describes its machine; without evidence, the provider of the machine on record does. */
function describerOf(
  { nodeName, wanted, now }: AttestQuestion,
  evidence: Evidence | { readonly kind: 'record' },
  record: IdentityRecord,
  providers: ReadonlyMap<string, AttestationProvider>,
): Result<() => Promise<Result<Described, Violations>>, Violation> {
  if (evidence.kind === 'evidence')
    return success(async () => {
      const machine = await evidence.machine();
      return machine.ok ? success({ machine: machine.value, violations: [] }) : machine;
    });
  const provider = providerOf(record, providers);
  if (provider === undefined || !wanted.providers.includes(provider.name))
    return failure(
      violation('IdentityNotAllowed', `node ${quoted(nodeName)} was registered by a provider not taken here`),
    );
  if (!provider.secure) return failure(noServing);
  return success(async () => {
    const state = await provider.describe(record.identity, now);
    if (state.kind === 'running') return success(state);
    return failure([violation('IdentityNotAllowed', `the machine of node ${quoted(nodeName)} is not running`)]);
  });
}

/** A node name passes to another machine, or a machine to another key: the platform must confirm it, in two looks. */
interface HandOver {
  /** Known from the record alone, without asking the platform. */
  readonly tooEarly: Change | undefined;
  check(machine: Machine): Promise<Change>;
}

function handOverOf(
  firstUse: FirstUse,
  { spkiSha256, now }: AttestQuestion,
  { restartWindow: window = 0 }: AttestationProvider,
  providers: ReadonlyMap<string, AttestationProvider>,
): HandOver | undefined {
  switch (firstUse.kind) {
    case 'first':
    case 'repeat':
    case 'renewal':
      return undefined;
    case 'restart': {
      const { record } = firstUse;
      return {
        tooEarly: restartTooEarly(record, spkiSha256, now),
        check: async ({ startedAt }) => checkRestarted({ record, spkiSha256, startedAt, window, now }),
      };
    }
    case 'takeover': {
      const { holder } = firstUse;
      return {
        tooEarly: holderTooEarly(holder, now),
        async check() {
          const provider = providerOf(holder, providers);
          // If the holder's provider is not configured any more, no platform can confirm that its machine is gone.
          const state = provider === undefined ? stopped : await provider.describe(holder.identity, now);
          return checkHolderGone(holder, state, now);
        },
      };
    }
  }
}

const stopped = { kind: 'stopped' } as const;

function notYet(change: Change | undefined): Admission | undefined {
  switch (change?.kind) {
    case undefined:
    case 'allowed':
      return undefined;
    case 'refused':
      return { ...refuse(change.violation), ...observedIn(change) };
    case 'later': {
      const error = new LaterError('SecondLook', change.message, change.afterMilliseconds);
      return { kind: 'later', error, ...observedIn(change) };
    }
  }
}

function observedIn({ observed }: Observed): Observed {
  return observed === undefined ? {} : { observed };
}

/** Identities begin with the name of their provider. */
function providerOf(
  { identity }: IdentityRecord,
  providers: ReadonlyMap<string, AttestationProvider>,
): AttestationProvider | undefined {
  return providers.get(identity.slice(0, identity.indexOf('#')));
}

function pairOf<T>(key: string, value: T | undefined): readonly (readonly [string, T])[] {
  return value === undefined ? [] : [[key, value]];
}

const tooManyAddresses = violation(
  'NameNotOwned',
  `a machine has at most ${mostAddresses} addresses of the operator's ranges`,
);
const noServing = violation(
  'IdentityNotAllowed',
  'machines that cannot prove who they are get no serving certificates',
);

function refuse(first: Violation, ...more: readonly Violation[]): EvidenceRefused {
  return { kind: 'refused', violations: [first, ...more] };
}
