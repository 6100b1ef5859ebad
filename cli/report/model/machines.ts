/** First-use conflicts: one name and two machines, or one machine and two names or keys. */
import type { RefusalCode } from '../../../core/outcome/outcome.ts';
import type { IdentityRecord } from '../../../core/ports/attestation-store.ts';
import type { Lock } from '../../../core/ports/locks.ts';
import { instantText } from '../../output/tofu-text.ts';
import type { Records } from './facts.ts';
import { compareText } from './nodes.ts';

export interface Conflict {
  readonly node: string;
  /** `RestartContested`: after one start of the machine two other keys were requested, so neither is accepted. */
  readonly code: RefusalCode | 'RestartContested';
  readonly message: string;
  /** The machine on record under the name. */
  readonly holder?: string;
  /** Only of requests: how many in the last 25 hours. */
  readonly times?: number;
  readonly seen: string;
}

export interface Machines {
  readonly active: number;
  readonly retired: number;
  /** Adopted by an operator, and not used yet. */
  readonly unused: number;
  /** The platform reported these as terminated or unknown at the last look. */
  readonly unknown: readonly { readonly node: string; readonly machine: string; readonly since: string }[];
  /** Entries of the list of machines that may join. */
  readonly listed: number;
  /** Those of them that are patterns. */
  readonly patterns: number;
}

export interface ShownLock {
  readonly node?: string;
  readonly machine?: string;
  readonly keySha256?: string;
  readonly since: string;
  readonly by: string;
  readonly reason: string;
}

const conflictCodes: ReadonlySet<RefusalCode> = new Set(['TofuReuse', 'TofuNodeMismatch', 'TofuNodeTaken']);

export function isConflict(code: RefusalCode): boolean {
  return conflictCodes.has(code);
}

/** The latest first. */
export function conflictsOf({ verdicts, identities }: Records): readonly Conflict[] {
  const active = new Map(
    identities.filter(({ state }) => state === 'active').map((record) => [record.nodeName, record] as const),
  );
  const found = new Map<string, Conflict>();
  for (const { nodeName: node = '', violations = [], decidedAt, decision } of verdicts) {
    const violation = decision === 'deny' ? violations.find(({ code }) => conflictCodes.has(code)) : undefined;
    if (violation === undefined) continue;
    const key = `${violation.code} ${node}`;
    const before = found.get(key);
    const seen = instantText(decidedAt);
    const holder = active.get(node)?.identity;
    found.set(key, {
      node,
      ...(before !== undefined && before.seen > seen ? before : { ...violation, seen }),
      ...(holder === undefined ? {} : { holder }),
      times: (before?.times ?? 0) + 1,
    });
  }
  return [...found.values(), ...identities.flatMap(contested)].toSorted((a, b) => compareText(b.seen, a.seen));
}

function contested({ nodeName, identity, restart }: IdentityRecord): readonly Conflict[] {
  if (restart?.contested !== true) return [];
  const message = 'two other keys were requested after one start of this machine: neither is accepted';
  return [{ node: nodeName, code: 'RestartContested', message, holder: identity, seen: instantText(restart.since) }];
}

export function machinesOf({ identities, machines }: Records): Machines {
  const active = identities.filter(({ state }) => state === 'active');
  return {
    active: active.length,
    retired: identities.length - active.length,
    unused: active.filter(({ uses }) => uses === 0).length,
    unknown: active.flatMap(({ nodeName: node, identity: machine, unknownSince }) =>
      unknownSince === undefined ? [] : [{ node, machine, since: instantText(unknownSince) }],
    ),
    listed: machines.length,
    patterns: machines.filter(({ name }) => name.includes('*')).length,
  };
}

export function shownLock({ nodeName, identity, spkiSha256, at, by, reason }: Lock): ShownLock {
  return {
    ...(nodeName === undefined ? {} : { node: nodeName }),
    ...(identity === undefined ? {} : { machine: identity }),
    ...(spkiSha256 === undefined ? {} : { keySha256: spkiSha256 }),
    since: instantText(at),
    by,
    reason,
  };
}
