/**
 * What a run has met: each fault at each call, everything else that goes wrong, each way a request ended, each step of a
 * record. A simulation that never meets something says nothing about it.
 */
import { refusalCodes } from '../../core/outcome/outcome.ts';

/** How often, by what. */
export type Counts = Map<string, number>;

export function count(counts: Counts, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

/** What can become of one call. */
export const fates = ['dies before', 'dies after', 'not sent', 'answer lost', 'throttled', 'late', 'slow'] as const;
export type Fault = (typeof fates)[number];

/** Every call that a simulated process can make. */
const calls: Readonly<Record<string, readonly string[]>> = {
  api: ['list', 'watch', 'get', 'updateStatus', 'updateApproval', 'reviewAccess', 'createEvent'],
  lease: ['get', 'create', 'update'],
  http: ['sign', 'attest', 'look'],
  schedule: ['retire'],
  ledger: ['find', 'open', 'takeOver', 'release', 'complete', 'expire'],
  key: ['sign'],
  attest: ['invoke'],
  attestations: [
    'findLock',
    'recall',
    'findVerdict',
    'findIdentity',
    'findNode',
    'lookup',
    'observe',
    'retire',
    'claim',
    'countRefusal',
  ],
  platform: ['verify', 'describe', 'challenge', 'goneMachines'],
};

/** What goes wrong besides. */
const troubles = [
  'a process stands still',
  'http repeats sign',
  'http repeats attest',
  'a stale list',
  'the past is compacted',
  'a watch breaks',
  'a watch is told 410',
  'a watch is told of a failure',
  'a watch is ended',
  'a watch falls silent',
  'a watch tells in another order',
  'a watch tells twice',
  'two leaders',
  'clocks 50 ms off',
  'clocks 2 s off',
  'clocks 2 min off',
  'clocks 20 min off',
  ...calls['api']!.map((method) => `forbidden: api.${method}`),
] as const;

/** What becomes of records, requests and rules. */
const steps = [
  'ledger.open: written',
  'ledger.open: not written',
  'ledger.open: not written: keyUsed',
  'ledger.takeOver: written',
  'ledger.takeOver: not written',
  'ledger.complete: written',
  'ledger.complete: not written',
  'ledger.expire: written',
  'ledger.expire: not written',
  'claim: first',
  'claim: repeat',
  'claim: renewal',
  'claim: restart',
  'claim: takeover',
  'claim: serving',
  'claim: an address',
  'claim: refused',
  'claim: not written: verdict',
  'claim: not written: changed',
  'claim: insecure',
  'claim: another attestation key',
  'audit: would refuse',
  'audit: unjudged',
  'operator: reset',
  'operator: lock',
  'operator: unlock',
  'operator: adopt',
  'operator: allow',
  'operator: remove',
  'relay: Approved',
  'relay: Denied',
  'relay: Failed',
  'padded: refused',
  'padded: does not fit',
  'relay: a certificate',
  'review: yes',
  'review: no',
  'rules: enforced from now on',
  'rules: another CA',
  'rules: another CA for some signers',
  'rules: the CA of before',
  'sign: issued',
  'sign: issued again',
  'sign: InProgress',
  'sign: Throttled',
  'sign: Unavailable',
  'sign: NotApproved',
  'sign: UnknownSigner',
  'attest: Throttled',
  'attest: Unavailable',
  'attest: approve again',
  'attest: deny again',
  'attest: challenge',
  'attest: challenge again',
  'fleet: the next machine of a name',
  'fleet: a hint',
  'objects: let in',
  'objects: a stale cache',
  'objects: no context',
  'objects: edited',
  'objects: deleted',
  'observe: written',
  'observe: changed',
  'retire: written',
  'retire: changed',
  'retired: by two looks',
  'retired: its name is taken over',
  'retired: its name is free',
  'machine: answers',
  'machine: answers too late',
  'machine: answers twice',
  'machine: loses its challenge',
] as const;

/** Each of these must be met in the run that every check makes. */
export function expected(): readonly string[] {
  const faults = Object.entries(calls).flatMap(([port, methods]) =>
    methods.flatMap((method) => fates.map((fate) => `fault: ${port}.${method} ${fate}`)),
  );
  const codes = refusalCodes.map((code) => `code: ${code}`);
  return [...faults, ...troubles.map((each) => `trouble: ${each}`), ...codes, ...steps.map((each) => `step: ${each}`)];
}

/** As a table: a line for each call, a column for each fault, and then the rest. */
export function describeCounts(counts: Counts): string {
  const width = 12;
  const lines = [`${'call'.padEnd(26)}${['in trouble', ...fates].map((each) => each.padStart(width)).join('')}`];
  for (const [port, methods] of Object.entries(calls))
    for (const method of methods) {
      const cells = [`call: ${port}.${method}`, ...fates.map((fate) => `fault: ${port}.${method} ${fate}`)];
      const numbers = cells.map((cell) => String(counts.get(cell) ?? 0).padStart(width));
      lines.push(`${`${port}.${method}`.padEnd(26)}${numbers.join('')}`);
    }
  const others = expected().filter((each) => !each.startsWith('fault: '));
  const more = [...counts.keys()].filter((each) => !/^(fault|call): /.test(each) && !others.includes(each)).toSorted();
  for (const each of [...others, ...more]) lines.push(`${String(counts.get(each) ?? 0).padStart(9)}  ${each}`);
  return lines.join('\n');
}
