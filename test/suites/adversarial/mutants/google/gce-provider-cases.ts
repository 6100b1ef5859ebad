/** Tokens of good and of wrong VMs, and questions about recorded VMs, put to the gce provider. */
import { doesNotMatch } from 'node:assert/strict';
import { gceProvider } from '../../../../../core/attestation/gce/provider.ts';
import { casesBySubject } from '../../../../corpus/attestation/gce/cases.ts';
import { dataOf, judge, portsOf } from '../../../../corpus/attestation/gce/judge.ts';
import type { Case } from '../../../../corpus/attestation/gce/judge.ts';
import * as world from '../../../../corpus/attestation/gce/machine.ts';
import type { Case as MutantCase } from '../../../../harness/mutants/case-runner.ts';

const asked = Object.entries(casesBySubject).flatMap(([subject, list]) =>
  list.map((one) => ({ name: `${subject}: ${one.name}`, one, data: dataOf(one) })),
);
const listed: Case = { name: 'listed', expect: 'accepted', policy: { machines: 'listed' } };
const old = dataOf({ claims: { iat: world.now / 1_000 - 200 } });
const fresh = dataOf({});

const states: readonly (readonly [name: string, of: string, vm: NonNullable<Case['vm']>])[] = [
  ['running', world.identity, {}],
  ['without the label', world.identity, { labels: new Map() }],
  ['stopped', world.identity, { status: 'TERMINATED' }],
  ['being started', world.identity, { status: 'STAGING' }],
  ['not known', world.identity, 'notFound'],
  ['of another project', world.identity.replace(world.vm.projectNumber, '42'), {}],
  ['of the other provider', world.identity.replace('gce#', 'gce-vtpm#'), {}],
  ['not a VM', 'aws#x', {}],
  ['more behind the id', `${world.identity}/x`, {}],
];

/** Whether each wrong VM is refused comes first, so that a mutant that lets one in is caught by that. */
export function cases(): readonly MutantCase[] {
  return [
    ...asked
      .filter(({ one }) => one.expect !== 'accepted')
      .map(({ name, one, data }) => ({
        name: `refused: ${name}`,
        run: async () => doesNotMatch((await judge(gceProvider, one, data)).outcome, /^accepted/),
      })),
    ...asked.map(({ name, one, data }) => ({ name, run: () => outcomeOf(one, data) })),
    { name: 'on the list', run: () => outcomeOf(listed, fresh) },
    { name: 'a token that is some minutes old', run: () => outcomeOf({ ...listed, policy: {} }, old) },
    { name: 'one token, one once-key', run: () => onceKeys() },
    ...states.map(([name, of, vm]) => ({ name: `state: ${name}`, run: () => stateOf(of, vm) })),
  ];
}

async function outcomeOf(one: Case, data: Uint8Array): Promise<string> {
  const { outcome, machine, machines, once, asked: calls } = await judge(gceProvider, one, data);
  // The id is made of a token that another process signs with another key.
  return JSON.stringify([outcome, machine, machines, once?.map(({ expiresAt }) => expiresAt), calls.length]);
}

/** Of the last character of the signature some bits are not used. */
async function onceKeys(): Promise<string> {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const respelled = (usual: string): string =>
    usual.slice(0, -1) + alphabet.charAt(alphabet.indexOf(usual.at(-1) ?? '') + 1);
  const ids = await Promise.all(
    [fresh, dataOf({ token: respelled }), old].map(
      async (data) => (await judge(gceProvider, listed, data)).once?.[0]?.id,
    ),
  );
  return [new Set(ids).size, ids[0] === ids[1]].join();
}

async function stateOf(of: string, vm: NonNullable<Case['vm']>): Promise<string> {
  const calls: string[] = [];
  try {
    return JSON.stringify([await gceProvider(world.policy, portsOf({ vm }, calls)).describe(of, 0), calls.length]);
  } catch {
    return 'temporary';
  }
}
