/**
 * Retires the machines that their platforms report as terminated, so that they get no more certificates and their node names become
 * free without an operator. A schedule starts it about all terminated machines; a deleted Machine or Node is a hint that starts it
 * about one node name. A hint only starts the look, and decides nothing.
 *
 * Every write is one transaction about the record that was read. So a run may end at any line, and any number may run at once.
 * docs/internals/decisions/0029-retired-by-schedule.md.
 */
import type { AttestationStore, ChangeResult, IdentityRecord } from '../../ports/attestation-store.ts';
import type { Instant } from '../../ports/instant.ts';
import type { AttestationProvider, MachineState } from '../evidence/provider.ts';
import { registrarOf } from '../evidence/registrar.ts';
import { ulid } from '../records/ulid.ts';
import { holderTooEarly } from '../second-look.ts';
import { lookAt } from './look-at.ts';

/** How long the node name of a retired machine stays taken. Until then another machine gets it only if the platform is asked again. */
export const nameGrace = 3_600_000;
/** The most node names of one hint. */
export const mostHints = 20;
/** The most machines of one scheduled run. Reads take milliseconds, so this many fit into one call of the attest function. */
export const mostMachines = 10_000;
/** How many machines are looked at concurrently. */
const atOnce = 8;

export interface RetirementPorts {
  readonly store: Pick<AttestationStore, 'findIdentity' | 'findNode' | 'observe' | 'retire'>;
  /** The providers in the cluster's configuration, by name. */
  readonly providers: ReadonlyMap<string, AttestationProvider>;
  now(): Instant;
  /** Cryptographically strong. */
  randomBytes(count: number): Uint8Array;
}

/** `scheduled`: all machines that the platforms list as terminated. `nodeNames`: at most `mostHints`. */
export type RetirementScope = 'scheduled' | { readonly nodeNames: readonly string[] };

export interface RetirementReport {
  /** How many machines with an active record were looked at. */
  readonly looked: number;
  /** How many of them were reported as terminated for the first time. */
  readonly marked: number;
  /** Of how many an earlier first look was erased, because they exist. */
  readonly unmarked: number;
  readonly retired: readonly RetiredMachine[];
  /** How many records changed between their look and its write. The next run decides about these. */
  readonly changed: number;
  /** What could not be read or written now: a platform, or one machine. The next run tries again. */
  readonly failures: readonly RetirementFailure[];
  /** Whether there were more than `mostMachines` terminated machines. */
  readonly cutShort: boolean;
}

export interface RetiredMachine {
  readonly identity: string;
  readonly nodeName: string;
  readonly nameFreeAt: Instant;
}

export interface RetirementFailure {
  /** The name of a provider, an identity or a node name. */
  readonly about: string;
  readonly error: unknown;
}

/** Never rejects because of one machine or one platform: `failures` has these errors. Throws a TypeError for too many hints. */
export async function retireGone(ports: RetirementPorts, scope: RetirementScope): Promise<RetirementReport> {
  const run = newRun(ports);
  if (scope === 'scheduled') await lookAtListed(ports, run);
  else await lookAtHinted(ports, run, scope.nodeNames);
  return run.report();
}

/** Each platform lists its terminated machines; most of them may be of other clusters, and have no record here. */
async function lookAtListed(
  { store, providers }: Pick<RetirementPorts, 'store' | 'providers'>,
  run: Run,
): Promise<void> {
  const seen = new Set<string>();
  for (const provider of providers.values()) {
    const listed = provider.goneMachines?.();
    if (listed === undefined) continue;
    await run.attempt(provider.name, async () => {
      for await (const identities of groupsOf(listed, atOnce)) {
        const fresh = identities.filter((identity) => !seen.has(identity));
        if (seen.size + fresh.length > mostMachines) return run.cutShort();
        for (const identity of fresh) seen.add(identity);
        const look = async (identity: string) => run.decide(await store.findIdentity(identity), async () => 'gone');
        await Promise.all(fresh.map((identity) => run.attempt(identity, () => look(identity))));
      }
    });
  }
}

async function lookAtHinted(ports: RetirementPorts, run: Run, nodeNames: readonly string[]): Promise<void> {
  const { store, providers } = ports;
  if (nodeNames.length > mostHints) throw new TypeError(`at most ${mostHints} node names are looked at by one hint`);
  // One after the other: hints must not use up the platform's quota, which joins need.
  for (const nodeName of new Set(nodeNames))
    await run.attempt(nodeName, async () => {
      const record = await store.findNode(nodeName);
      const provider = record === undefined ? undefined : providers.get(registrarOf(record));
      // Without a provider in the configuration no platform can confirm that the machine is terminated.
      if (record === undefined || provider === undefined) return;
      await run.decide(record, async () => (await provider.describe(record.identity, ports.now())).kind);
    });
}

type Run = ReturnType<typeof newRun>;

function newRun(ports: RetirementPorts) {
  const { store } = ports;
  const counts = { looked: 0, marked: 0, unmarked: 0, changed: 0 };
  const retired: RetiredMachine[] = [];
  const failures: RetirementFailure[] = [];
  let cutShort = false;

  async function retire(record: IdentityRecord, at: Instant): Promise<ChangeResult> {
    const { identity, nodeName } = record;
    const nameFreeAt = at + nameGrace;
    const audit = {
      id: ulid(at, ports.randomBytes(10)),
      at,
      by: 'attest',
      action: 'retire',
      subject: identity,
      nodeName,
      reason: 'its platform reported it as terminated at two looks',
      before: record,
    } as const;
    // Irreversible: from now on neither attest nor sign accepts this machine. A crash before this write leaves the first look.
    const write = await store.retire(record, { nameFreeAt, audit });
    if (write.kind === 'written') retired.push({ identity, nodeName, nameFreeAt });
    return write;
  }

  return {
    async attempt(about: string, work: () => Promise<void>): Promise<void> {
      try {
        await work();
      } catch (error) {
        failures.push({ about, error });
      }
    },
    /** `ask` is not called if the record alone shows that it is too early for the second look. */
    async decide(record: IdentityRecord | undefined, ask: () => Promise<MachineState['kind']>): Promise<void> {
      if (record?.state !== 'active') return;
      counts.looked += 1;
      if (holderTooEarly(record, ports.now()) !== undefined) return;
      const state = await ask();
      const at = ports.now();
      const look = lookAt(record, state, at);
      switch (look.kind) {
        case 'keep':
          return;
        case 'observe':
          if (!(await store.observe(look.record))) counts.changed += 1;
          else if (state === 'gone') counts.marked += 1;
          else counts.unmarked += 1;
          return;
        case 'retire':
          if ((await retire(look.record, at)).kind !== 'written') counts.changed += 1;
      }
    },
    cutShort: (): void => void (cutShort = true),
    report: (): RetirementReport => ({ ...counts, retired, failures, cutShort }),
  };
}

/** The items before an error are yielded before it is thrown. */
async function* groupsOf<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<readonly T[]> {
  let group: T[] = [];
  const errors: unknown[] = [];
  try {
    for await (const item of items) {
      group.push(item);
      if (group.length < size) continue;
      yield group;
      group = [];
    }
  } catch (error) {
    errors.push(error);
  }
  if (group.length > 0) yield group;
  if (errors.length > 0) throw errors[0];
}
