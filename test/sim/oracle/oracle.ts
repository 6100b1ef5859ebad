/**
 * What must be true after every step, whatever happened. The oracle sees everything at once, the intended requests
 * included, and asks nothing of the parts that it judges.
 */
import { interpretAttest, interpretSign } from '../../../adapters/signing-api/answers.ts';
import type { WholeAnswer } from '../../../adapters/http/exchange.ts';
import type { SimulatedAttestations } from '../ports/attestations.ts';
import type { FunctionEvents, Invocation } from '../ports/function-ports.ts';
import { nameOf } from '../ports/function-ports.ts';
import { handApproved, nodeSigner, servingSigners } from '../scenario.ts';
import type { Demand, Scenario } from '../scenario.ts';
import { createIssuingOracle } from './issuing.ts';
import { createLockOracle } from './locks.ts';
import type { LockOracle } from './locks.ts';
import { createMachineOracle } from './machines.ts';
import type { SimulatedLedger } from '../ports/ledger.ts';
import { types } from '../ports/stored.ts';
import type { MachineObjects } from '../ports/machine-objects.ts';
import type { RequestEvents, SimulatedRequests } from '../ports/request-api.ts';
import type { SimulatedAuthorities } from '../actors/requests.ts';
import type { Process, Runtime } from '../runtime.ts';
import type { MachineFacts, GroundTruth } from '../ground-truth.ts';

export interface Judged {
  readonly runtime: Runtime;
  readonly scenario: Scenario;
  readonly ledger: SimulatedLedger;
  readonly attestations: SimulatedAttestations;
  readonly authorities: SimulatedAuthorities;
  readonly truths: ReadonlyMap<string, GroundTruth>;
  readonly facts: ReadonlyMap<string, MachineFacts>;
  readonly requests: () => SimulatedRequests;
  /** Undefined where machines need no Machine object. */
  readonly objects: MachineObjects | undefined;
}

export interface Oracle extends FunctionEvents, RequestEvents {
  /** After anything happened to records of machines. */
  readonly registered: () => void;
  /** The operator put an entry on the list of machines, or took it off. */
  readonly listed: (name: string, allowed: boolean) => void;
  /** The operator has locked something, or is about to unlock it. */
  readonly locks: Pick<LockOracle, 'locked' | 'unlocked'>;
  /** When everything should have come to its end: what has not. */
  unfinished(): readonly string[];
}

/** What a part of the oracle has in common with the others. */
export interface Bench extends Judged {
  readonly broken: (what: string) => void;
  readonly label: (uid: string) => string;
  readonly locks: LockOracle;
  /** What is demanded of this request by what is in force for that process; absent = no proof. */
  readonly demandOf: (process: Process, truth: GroundTruth) => Demand | undefined;
}

/** Everything that can be wrong with a proof and with nothing else. */
const proofCodes: ReadonlySet<string> = new Set([
  'AttestationMissing',
  'AttestationInvalid',
  'AttestationVersion',
  'AttestationChallenge',
  'IdentityNotAllowed',
  'TofuReuse',
  'TofuNodeMismatch',
  'TofuNodeTaken',
  'Revoked',
  'MachineNotFound',
  'MachineNotReady',
  'MachineAmbiguous',
  'MachineDeleting',
  'MachineOfOtherCluster',
  'MachineMismatch',
  'AttestorNotAuthorized',
  'NameNotOwned',
]);

export function createOracle(judged: Judged): Oracle {
  const { runtime, scenario, ledger, attestations, truths } = judged;
  const bench: Bench = {
    ...judged,
    broken: (what) => runtime.fail(what),
    locks: createLockOracle(runtime),
    label: (uid) => truths.get(uid)?.what ?? uid.slice(0, 8),
    demandOf(process, { signerName, evidence }) {
      const demand = scenario.at(process.startedAt).demands.get(signerName);
      return demand === undefined || (!demand.required && !evidence) ? undefined : demand;
    },
  };
  const { broken, demandOf } = bench;
  const machines = createMachineOracle(bench);
  const issuing = createIssuingOracle(bench, machines);
  const refusedOnce = new Set<string>();
  /** Writes that did not fit, by process and UID. */
  const tooLarge = new Map<string, number>();
  /** Who was told yes, by process and user: for what. */
  const leave = new Map<string, Map<string, number>>();

  function checkVerdict({ process, object }: Invocation, answer: WholeAnswer): void {
    const said = interpretAttest(answer);
    if (said.kind !== 'verdict') return;
    const { uid } = object['metadata'] as { readonly uid: string };
    const truth = truths.get(uid);
    if (truth === undefined) return;
    const { verdict } = said;
    const demand = demandOf(process, truth);
    if (
      verdict.decision !== 'approve' &&
      verdict.decision !== 'ignore' &&
      demand?.mode === 'audit' &&
      proofCodes.has(verdict.reason)
    )
      return broken(`${process.name} refuses ${truth.what} for ${verdict.reason}, and should only take note of it`);
    if (verdict.decision !== 'approve') return;
    const lock = bench.locks.against(process, truth, undefined);
    if (lock !== undefined) return broken(`${process.name} approves ${truth.what}, and ${lock} is locked`);
    const stored = attestations.verdicts.get(uid);
    if (verdict.annotations['countersign.dev/identity'] !== undefined) {
      if (stored?.decision !== 'approve')
        broken(`${process.name} approves ${truth.what}, and no verdict of that is stored`);
      return;
    }
    if (demand?.mode === 'enforce') return broken(`${process.name} approves ${truth.what}, and names no machine`);
    // What could not be judged is let pass too; and only then is there nothing to keep.
    const holder = attestations.names.get(truth.node ?? '') ?? '';
    const waits =
      attestations.identities.get(truth.machine ?? '')?.restart !== undefined ||
      attestations.identities.get(holder)?.unknownSince !== undefined;
    // For a Machine object that is only late, nothing is recorded.
    if (scenario.clusterApi) return;
    if (demand !== undefined && process.failures === 0 && !waits && stored?.violations === undefined)
      broken(`${process.name} lets ${truth.what} pass, and keeps no note of what it would have refused`);
  }

  function checkRefusal({ process, object }: Invocation, codes: readonly string[]): void {
    const { uid } = object['metadata'] as { readonly uid: string };
    refusedOnce.add(uid);
    const truth = truths.get(uid);
    if (truth === undefined || demandOf(process, truth)?.mode === 'enforce') return;
    const code = codes.find((each) => proofCodes.has(each));
    if (code !== undefined) broken(`${process.name} refuses ${truth.what} for ${code}, where no proof is demanded`);
  }

  function checkApproval(truth: GroundTruth, writer: Process): void {
    const { uid, what, signerName, username, byNode, createdAt } = truth;
    if (!scenario.approver || handApproved.has(signerName))
      return broken(`${writer.name} approves ${what}, which people do`);
    const demand = demandOf(writer, truth);
    const proven = demand?.mode === 'enforce';
    if (proven) {
      const verdict = attestations.verdicts.get(uid);
      if (verdict?.decision !== 'approve' || verdict.requestDigest !== truth.digest)
        return broken(`${writer.name} approves ${what} without a verdict that says so`);
      if (!demand.review) return;
    }
    const wanted = servingSigners.has(signerName)
      ? ['selfnodeserver']
      : ['nodeclient', ...(byNode ? ['selfnodeclient'] : [])];
    const told = leave.get(`${writer.name} ${username}`);
    const names = wanted.map((name) => (proven ? `countersign-${name}` : name));
    if (!names.some((name) => (told?.get(name) ?? -1) >= createdAt))
      broken(`${writer.name} approves ${what}, without permission from the cluster`);
  }

  /** Approved, does it have to end in a certificate? */
  function nothingAgainst(truth: GroundTruth): boolean {
    if (truth.padded !== undefined) return false;
    if (bench.locks.ever(truth)) return false;
    if (truth.plain) return true;
    const audited = scenario.epochs.every(({ demands }) => demands.get(truth.signerName)?.mode === 'audit');
    // In audit mode neither a proof nor a requester is refused.
    return audited && truth.sound && !(scenario.freshKeys && truth.signerName === nodeSigner);
  }

  /** Begun, and given up for good: whether it might be was judged then. */
  function gaveUp(uid: string): boolean {
    return ledger.records.get(uid)?.state === 'expired';
  }

  return {
    ...issuing.events,
    claimed(invocation, claim, written) {
      if (written) machines.claimed(invocation, claim);
    },
    observed(_, record) {
      machines.registered();
      machines.observed(record);
    },
    retired: (_, record, nameFreeAt) => machines.retired(record, nameFreeAt),
    answers(invocation, answer) {
      if (invocation.part === 'attest') return checkVerdict(invocation, answer);
      const said = interpretSign(answer);
      if (said.kind === 'refused')
        checkRefusal(
          invocation,
          said.violations.map(({ code }) => code),
        );
      if (said.kind === 'issued') issuing.issued(invocation, said.certificatePem);
    },
    alarm({ process, object }, error) {
      const text = error instanceof Error ? error.message : JSON.stringify(error);
      broken(`${process.name} raises an alarm about ${nameOf(object)}: ${text}`);
    },
    changed(before, after, writer) {
      const { uid, name } = after.metadata;
      issuing.written(before, after, writer);
      const fresh = new Set(types(after).filter((type) => !types(before).includes(type)));
      for (const type of fresh) runtime.count(`step: relay: ${String(type)}`);
      const truth = truths.get(uid);
      if (fresh.has('Failed') && !refusedOnce.has(uid) && truth?.padded === undefined)
        broken(`${writer.name} ends ${name} as Failed, and no function refused it`);
      if (truth?.padded !== undefined && (fresh.has('Failed') || fresh.has('Denied')))
        runtime.count('step: padded: refused');
      if (fresh.has('Approved') && truth !== undefined) checkApproval(truth, writer);
    },
    reviewed(process, { user, subresource }, allowed) {
      if (!allowed) return;
      const key = `${process.name} ${user}`;
      const told = leave.get(key) ?? new Map<string, number>();
      leave.set(key, told.set(subresource, runtime.timeline.now()));
    },
    tooLarge({ metadata: { uid, name } }, writer) {
      const key = `${writer.name} ${uid}`;
      const times = (tooLarge.get(key) ?? 0) + 1;
      tooLarge.set(key, times);
      // Minutes lie between two tries, and each new term of a replica tries once.
      if (times > 8 + runtime.timeline.now() / 300_000)
        broken(`${writer.name} has asked the API server ${times} times to store more on ${name} than fits`);
    },
    crime: broken,
    registered: machines.registered,
    locks: bench.locks,
    listed: machines.listed,
    unfinished() {
      return judged
        .requests()
        .objects()
        .flatMap((object) => {
          const { name, uid } = object.metadata;
          const has = types(object);
          const issued = object.status['certificate'] !== undefined;
          const truth = truths.get(uid);
          if (has.includes('Denied') || truth?.padded === 'full') return [];
          if (!has.includes('Approved')) {
            const byHand = truth !== undefined && handApproved.has(truth.signerName);
            const waits = scenario.approver && !byHand && truth?.unpermitted !== true;
            return waits ? [`${name} is pending`] : [];
          }
          if (!issued && !has.includes('Failed')) return [`${name} is approved and unanswered`];
          if (!issued && truth !== undefined && nothingAgainst(truth) && !gaveUp(uid))
            return [`${name} is Failed, and nothing speaks against it`];
          return [];
        });
    },
  };
}
