/** Plans and writes adoptions: which running machines are adopted, are on record already, or need the operator's decision. */
import type { FoundMachine } from '../../core/attestation/aws/fleet.ts';
import type { AuditItem, IdentityRecord } from '../../core/ports/attestation-store.ts';
import { nameMatches } from '../../core/policy/patterns.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { tryTwice } from '../runtime/reason.ts';
import type { OpenRegister } from '../runtime/io.ts';
import { fullText } from '../output/tofu-text.ts';

export interface Adoption {
  readonly identity: string;
  readonly nodeName?: string;
  /** `adopt` becomes `adopted` once it is written, unless another command wrote first. */
  readonly decision: 'adopt' | 'adopted' | 'on record' | 'conflict' | 'no name' | 'refused';
  readonly why: string;
  readonly machine: FoundMachine;
}

interface OnRecord {
  readonly records: readonly IdentityRecord[];
  /** The machine list; undefined if the cluster has none. */
  readonly listed: readonly string[] | undefined;
}

/** `given`: the node name from the command line, for one machine. Without it the rules must give each machine exactly one name. */
export function planAdoptions(
  machines: readonly FoundMachine[],
  { records, listed }: OnRecord,
  given?: string,
): readonly Adoption[] {
  const byIdentity = new Map(records.map((record) => [record.identity, record]));
  // A retired machine no longer holds its name.
  const byName = new Map(records.filter(({ state }) => state !== 'retired').map((record) => [record.nodeName, record]));
  const planned = machines.map((machine) => {
    const recorded = byIdentity.get(machine.identity);
    return decide(machine, given, recorded, listed, (name) => byName.get(name));
  });
  // If two machines have one name, the operator must choose.
  const wanted = Map.groupBy(
    planned.filter(({ decision }) => decision === 'adopt'),
    ({ nodeName }) => nodeName,
  );
  return planned.map((adoption) => {
    const rivals = adoption.decision === 'adopt' ? (wanted.get(adoption.nodeName) ?? []) : [];
    if (rivals.length < 2) return adoption;
    return { ...adoption, decision: 'conflict', why: `${rivals.length} machines have this name` };
  });
}

function decide(
  machine: FoundMachine,
  given: string | undefined,
  recorded: IdentityRecord | undefined,
  listed: readonly string[] | undefined,
  holderOf: (nodeName: string) => IdentityRecord | undefined,
): Adoption {
  const { identity, names, allowed, violations } = machine;
  const [only, ...others] = names;
  const nodeName = given ?? (others.length === 0 ? only : undefined);
  const about = { identity, ...(nodeName === undefined ? {} : { nodeName }), machine };
  const onRecord = fromRecords(identity, nodeName, recorded, nodeName === undefined ? undefined : holderOf(nodeName));
  if (onRecord !== undefined) return { ...about, ...onRecord };
  const [first] = violations;
  if (first !== undefined) return { ...about, decision: 'refused', why: first.message };
  const entry = `aws#${identity.slice(identity.lastIndexOf('/') + 1)}`;
  if (listed !== undefined && !listed.some((pattern) => nameMatches(pattern, entry)))
    return { ...about, decision: 'refused', why: 'it is not on the list: countersign machines allow' };
  if (nodeName === undefined) return { ...about, decision: 'no name', why: noNameReason(names) };
  if (!allowed.some((pattern) => nameMatches(pattern, nodeName)))
    return { ...about, decision: 'refused', why: 'no rule of attestation.aws.nodeName permits this name' };
  return { ...about, decision: 'adopt', why: '' };
}

function noNameReason(names: readonly string[]): string {
  return names.length === 0
    ? 'no rule names it: adopt it by --node and --identity'
    : `it may be ${names.join(' or ')}: --name-rule chooses`;
}

/** The decision that the records of this machine or this name require; undefined without such a record. */
function fromRecords(
  identity: string,
  nodeName: string | undefined,
  recorded: IdentityRecord | undefined,
  holder: IdentityRecord | undefined,
): Pick<Adoption, 'decision' | 'why'> | undefined {
  if (recorded !== undefined) {
    const { nodeName: name, state } = recorded;
    const same = state === 'active' && (nodeName === undefined || name === nodeName);
    return { decision: same ? 'on record' : 'conflict', why: `it is on record as ${fullText(name)}, ${state}` };
  }
  if (holder !== undefined && holder.identity !== identity)
    return { decision: 'conflict', why: `the name belongs to ${fullText(holder.identity)}` };
  return undefined;
}

/** Writes one adoption, or returns what another command wrote first. */
export async function writeAdoption(
  adoption: Adoption,
  open: OpenRegister,
  now: Instant,
  audit: (record: IdentityRecord) => AuditItem,
): Promise<Adoption> {
  const { identity, nodeName, machine, decision } = adoption;
  if (decision !== 'adopt' || nodeName === undefined) return adoption;
  const { providerId, startedAt } = machine;
  const record: IdentityRecord = {
    identity,
    nodeName,
    state: 'active',
    previousSpkis: [],
    providerId,
    startedAt,
    addresses: [],
    firstSeen: now,
    lastSeen: now,
    renewals: 0,
    uses: 0,
    rev: 1,
  };
  return tryTwice<Adoption>(async () => {
    const write = await open.register.adopt(record, audit(record));
    if (write.kind === 'written') return { ...adoption, decision: 'adopted' };
    const [recorded, holder] = [await open.store.findIdentity(identity), await open.store.findNode(nodeName)];
    const found = fromRecords(identity, nodeName, recorded, holder);
    return found === undefined ? 'changed' : { ...adoption, ...found };
  }, fullText(identity));
}
