/**
 * May this machine be this node? The records are checked first, then the machine as its platform describes it, then both
 * together. The result is a claim, or the reason why the machine is not admitted.
 */
import { violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import { quoted } from '../outcome/printable-text.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import { nodeUserPrefix } from '../policy/in-tree-rules.ts';
import type { AttestationStore, IdentityRecord, LookupResult } from '../ports/attestation-store.ts';
import type { AttestQuestion } from './attest-question.ts';
import { checkMachine } from './check-machine.ts';
import { checkObjects, objectOf } from './cluster-api/check-objects.ts';
import { firstUseClaim, servingClaim, spentEvidence } from './claims.ts';
import type { AdmissionClaim } from './claims.ts';
import { later, refusalOf, refuse } from './declined.ts';
import type { Declined } from './declined.ts';
import { checkDevice, deviceAnnotations } from './device.ts';
import type { AttestationProvider, Examined, Machine } from './evidence/provider.ts';
import { machineSeen, newLook } from './evidence/last-description.ts';
import type { Look } from './evidence/last-description.ts';
import { checkRegistrar, registrarOf } from './evidence/registrar.ts';
import type { Evidence, EvidenceResult } from './examine-evidence.ts';
import { decideFirstUse, isFirstKey, machineRetired } from './first-use.ts';
import { machineLocked } from './locks.ts';
import { mostAddresses } from './records/stored-records.ts';
import { usedUp } from './records/request-limits.ts';
import { handOverOf } from './second-look.ts';
import { checkNames, rangeAddresses } from './serving-names.ts';

export type Admission =
  | {
      readonly kind: 'admitted';
      readonly identity: string;
      /** Whether the requested key is the machine's first and was never replaced. */
      readonly firstKey: boolean;
      readonly claim: AdmissionClaim;
      /** Of the machine, for the request. */
      readonly annotations: Readonly<Record<string, string>>;
    }
  | Declined;

interface AdmissionPorts {
  readonly store: Pick<AttestationStore, 'lookup'>;
  readonly providers: ReadonlyMap<string, AttestationProvider>;
  randomBytes(count: number): Uint8Array;
}

/** If the claim of another request is written first, attest calls this again, with the new records. */
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

/** For a client certificate: the machine becomes this node, or already is. */
async function admitNode(question: AttestQuestion, evidence: Evidence, ports: AdmissionPorts): Promise<Admission> {
  // What is recorded about this machine and this node name?
  const { examined, provider } = evidence;
  const records = await lookup(question, examined, ports);
  const misused = checkRecords(question, evidence, records);
  if (misused !== undefined) return misused;

  // Do the records let this machine, with this key, be this node?
  const firstUse = decideFirstUse({
    identity: examined.identity,
    nodeName: question.nodeName,
    spkiSha256: question.spkiSha256,
    byNodeItself: question.username === `${nodeUserPrefix}${question.nodeName}`,
    secure: provider.secure,
    allowRestart: provider.restartWindow !== undefined,
    ...(provider.provesHardware === undefined ? {} : { provesHardware: true }),
    now: question.now,
    record: records.identity,
    holder: records.holder,
  });
  if (firstUse.kind === 'refused') return firstUse;

  // Does a Machine of Cluster API stand behind this machine, if one must?
  const noObject = checkObjects(question, provider.name);
  if (noObject !== undefined) return noObject;

  // The platform is asked last, so that a refusal or delay above costs no call.
  const handOver = handOverOf(firstUse, question, provider, ports.providers);
  const early = checkUses(records.identity, question) ?? handOver?.tooEarly;
  if (early !== undefined) return early;
  const machine = await evidence.machine();
  if (!machine.ok) return refuse(...machine.problem);
  const mismatch = refusalOf(checkMachine(question, machine.value, examined.identity));
  if (mismatch !== undefined) return mismatch;

  // Is the TPM behind this request the one on record, or does it have to answer a challenge first?
  const unknownDevice = await checkDevice(machine.value, records.identity?.device);
  if (unknownDevice !== undefined) return unknownDevice;

  // Does the platform confirm that the node name may pass to this machine, or that the machine may change its key?
  const notConfirmed = await handOver?.check(machine.value);
  if (notConfirmed !== undefined) return notConfirmed;
  return {
    kind: 'admitted',
    identity: examined.identity,
    firstKey: isFirstKey(firstUse),
    claim: {
      ...firstUseClaim(question, examined, newLook(machine.value, provider, question.now), firstUse, ports),
      ...entryOf(records, machine.value),
    },
    annotations: deviceAnnotations(machine.value),
  };
}

/** For a serving certificate: the machine must be registered as this node, and own every name in the request. */
async function admitServing(
  question: AttestQuestion,
  evidence: Evidence | { readonly kind: 'record' },
  ports: AdmissionPorts,
): Promise<Admission> {
  // A stock kubelet sends no evidence; its machine is the holder of the node name.
  const examined = evidence.kind === 'evidence' ? evidence.examined : undefined;
  if (evidence.kind === 'evidence' && !evidence.provider.secure) return noServing;
  const ranged = rangeAddresses(question.request.sans, question.settings.addressRanges);
  if (ranged.length > mostAddresses) return tooManyAddresses;

  // Which machine is registered as this node?
  const records = await lookup(question, examined, ports);
  const misused = checkRecords(question, evidence, records);
  if (misused !== undefined) return misused;
  const registered = checkRegistered(question, examined === undefined ? records.holder : records.identity);
  if (!registered.ok) return registered.problem;
  const record = registered.value;
  const noObject = checkObjects(question, evidence.kind === 'evidence' ? evidence.provider.name : registrarOf(record));
  if (noObject !== undefined) return noObject;

  // Does a machine own every requested name?
  const holders = new Map(ranged.flatMap((address, index) => pairOf(address, records.addresses[index])));
  const foreignNames = (machine: Machine) =>
    checkNames({
      sans: question.request.sans,
      nodeName: question.nodeName,
      machine,
      addressRanges: question.settings.addressRanges,
      holders,
      only: objectOf(question)?.addresses ?? [],
    });

  // How does the platform describe the machine, now or moments ago? An earlier description only admits: if it does not have a
  // requested name, the platform may have added it since.
  const isAdmitted = (seen: Machine) =>
    [...checkMachine(question, seen, record.identity), ...foreignNames(seen)].length === 0;
  const described = await describe(question, evidence, record, ports.providers, isAdmitted);
  if (!described.ok) return described.problem;
  const { machine, violations } = described.value;
  const mismatch = refusalOf([...violations, ...checkMachine(question, machine, record.identity)]);
  if (mismatch !== undefined) return mismatch;

  const unknownDevice = await checkDevice(machine, record.device);
  if (unknownDevice !== undefined) return unknownDevice;

  const foreign = refusalOf(foreignNames(machine));
  if (foreign !== undefined) return foreign;
  // The limit of one record, because one transaction must be able to free all its addresses.
  if (new Set([...record.addresses, ...ranged]).size > mostAddresses) return tooManyAddresses;
  const newAddresses = ranged.filter((address) => !holders.has(address) && !machine.addresses.includes(address));
  return {
    kind: 'admitted',
    identity: record.identity,
    // Serving keys are not client keys: no serving key is the first key of a machine.
    firstKey: false,
    claim: {
      ...servingClaim(question, record, described.value, newAddresses, spentEvidence(question, examined)),
      ...entryOf(records, machine),
    },
    annotations: deviceAnnotations(machine),
  };
}

// ── Steps ───────────────────────────────────────────────────────────────────────────────────────────────────────────

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

/** Evidence may be used again only by the same request bytes (a retry): an attacker who copied it sends other bytes. */
function checkRecords(
  { requestSha256 }: AttestQuestion,
  evidence: Evidence | { readonly kind: 'record' },
  records: LookupResult,
): Declined | undefined {
  if (records.lock !== undefined) return refuse(machineLocked);
  if (records.once.some((spentBy) => spentBy !== undefined && spentBy !== requestSha256))
    return refuse(violation('AttestationInvalid', 'this proof was used before, by another request'));
  if (evidence.kind === 'record') return undefined;
  const { examined, provider } = evidence;
  if (examined.machines.length > 0 && !records.listed)
    return refuse(violation('IdentityNotAllowed', 'this machine is not on the list (countersign machines allow)'));
  return refusalOf(checkRegistrar(records.identity, provider));
}

function checkRegistered(
  { nodeName }: AttestQuestion,
  record: IdentityRecord | undefined,
): Result<IdentityRecord, Declined> {
  if (record === undefined)
    return failure(refuse(violation('AttestationMissing', `no machine is registered as node ${quoted(nodeName)}`)));
  if (record.state !== 'active') return failure(refuse(machineRetired));
  if (record.nodeName === nodeName) return success(record);
  const message = `this machine is registered as node ${quoted(record.nodeName)}`;
  return failure(refuse(violation('TofuNodeMismatch', message)));
}

/** The limit on certificates of one machine (request-limits.ts). */
function checkUses(record: IdentityRecord | undefined, { now }: AttestQuestion): Declined | undefined {
  const wait = record === undefined ? undefined : usedUp(record, now);
  return wait === undefined ? undefined : later('Limited', 'this machine had too many certificates lately', wait);
}

/**
 * The machine as its platform describes it: through the evidence, or through the provider of the registered machine. The platform is
 * not asked about a machine that it described moments ago in a way that admits it.
 */
async function describe(
  question: AttestQuestion,
  evidence: Evidence | { readonly kind: 'record' },
  record: IdentityRecord,
  providers: ReadonlyMap<string, AttestationProvider>,
  isAdmitted: (seen: Machine) => boolean,
): Promise<Result<Look & { readonly violations: readonly Violation[] }, Declined>> {
  const { nodeName, wanted, now } = question;
  const provider = providers.get(registrarOf(record));
  if (provider === undefined || !wanted.providers.includes(provider.name)) {
    const message = `node ${quoted(nodeName)} was registered by a provider not taken here`;
    return failure(refuse(violation('IdentityNotAllowed', message)));
  }
  if (!provider.secure) return failure(noServing);
  const tooMany = checkUses(record, question);
  if (tooMany !== undefined) return failure(tooMany);
  const last = machineSeen(record, provider, now);
  const seen = last !== undefined && isAdmitted(last) ? last : undefined;
  if (evidence.kind === 'evidence') {
    // The record of a provider admits no machine to another provider.
    const confirm = evidence.provider === provider ? evidence.examined.confirm : undefined;
    const confirmed = seen === undefined ? undefined : await confirm?.(seen);
    const machine = confirmed ?? (await evidence.machine());
    if (!machine.ok) return failure(refuse(...machine.problem));
    const look =
      confirmed === undefined
        ? newLook(machine.value, provider, now)
        : { machine: machine.value, described: record.described };
    return success({ ...look, violations: [] });
  }
  if (seen !== undefined) return success({ machine: seen, described: record.described, violations: [] });
  const state = await provider.describe(record.identity, now);
  if (state.kind === 'running')
    return success({ ...newLook(state.machine, provider, now), violations: state.violations });
  return failure(refuse(violation('IdentityNotAllowed', `the machine of node ${quoted(nodeName)} is not running`)));
}

/** The entry that admits the machine: if an operator removes it before the claim is written, attest decides again. */
function entryOf(records: LookupResult, machine: Machine): Pick<AdmissionClaim, 'entry'> {
  return { entry: records.entry ?? machine.entry };
}

function pairOf<T>(key: string, value: T | undefined): readonly (readonly [string, T])[] {
  return value === undefined ? [] : [[key, value]];
}

const tooManyAddresses = refuse(
  violation('NameNotOwned', `a machine has at most ${mostAddresses} addresses of the operator's ranges`),
);
const noServing = refuse(
  violation('IdentityNotAllowed', 'machines that cannot prove who they are get no serving certificates'),
);
