/**
 * Which machines on record no longer exist. It asks EC2, and never concludes from one answer that a machine is gone: an active machine
 * is an orphan after two looks, as in core/attestation/second-look.ts. A machine that cannot be asked about stays on record.
 */
import type { Ec2Endpoint, Ec2Fleet, InstancePlace } from '../../core/attestation/aws/endpoints.ts';
import { placesOf } from '../../core/attestation/aws/fleet.ts';
import { identityOf, instanceOf } from '../../core/attestation/aws/instance-identity.ts';
import { nameGrace } from '../../core/attestation/retirement/retire-gone.ts';
import { firstLookCounts, secondLookAfter } from '../../core/attestation/second-look.ts';
import type { AwsAttestation } from '../../core/configuration/providers/aws.ts';
import { counted } from '../../core/outcome/counted.ts';
import type { IdentityRecord } from '../../core/ports/attestation-store.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { instantText } from '../output/tofu-text.ts';

/** What one look shows of a machine. `live`: it exists, or nothing shows that it does not. */
export interface Finding {
  readonly record: IdentityRecord;
  /** `retired`: attest retired it, or another machine took its node name. */
  readonly state: 'live' | 'terminated' | 'unknown' | 'retired';
  readonly why: string;
}

export type Orphan = Finding & { readonly state: Exclude<Finding['state'], 'live'> };

export function isOrphan(finding: Finding): finding is Orphan {
  return finding.state !== 'live';
}

export interface Platform {
  readonly policy: AwsAttestation;
  readonly ec2: Ec2Fleet & Ec2Endpoint;
}

/** A platform forgets terminated machines after about an hour, and learns of new ones only after a while. */
const unknownAfter = 3_600_000;

/** The states in which an instance exists. */
const existing = ['pending', 'running', 'shutting-down', 'stopping', 'stopped'];

/**
 * One look at each of these machines. `many`: EC2 lists the instances that exist, 1 000 a call, and is asked about the others one by one,
 * since a listing may lack an instance that was just started. Throws if EC2 does not answer.
 */
export async function look(
  records: readonly IdentityRecord[],
  { policy, ec2 }: Platform,
  { now, many }: { readonly now: Instant; readonly many: boolean },
): Promise<readonly Finding[]> {
  const listed = new Set<string>();
  if (many)
    for (const place of placesOf(policy))
      for await (const { instanceId, ownerId } of ec2.listInstances(place, [
        { name: 'instance-state-name', values: existing },
      ]))
        if (ownerId === place.account) listed.add(identityOf({ ...place, instanceId }));
  const findings: Finding[] = [];
  for (const record of records)
    findings.push(
      listed.has(record.identity) ? { record, ...live('it exists') } : await lookAtOne(record, { policy, ec2 }, now),
    );
  return findings;
}

async function lookAtOne(record: IdentityRecord, { policy, ec2 }: Platform, now: Instant): Promise<Finding> {
  const named = instanceOf(record.identity);
  if (named === undefined) return { record, ...live('it is not an EC2 instance, so no platform can be asked') };
  const place = placesOf(policy).find(({ account, region }) => account === named.account && region === named.region);
  if (place === undefined)
    return { record, ...live(`attestation.aws has no account ${named.account} in region ${named.region}`) };
  const seen = await seenBy(ec2, place, named.instanceId);
  if (seen === 'exists') return { record, ...live('it exists') };
  return { record, ...(record.state === 'retired' ? retired(record, now) : active(record, seen, now)) };
}

async function seenBy(
  ec2: Ec2Endpoint,
  place: InstancePlace,
  instanceId: string,
): Promise<'exists' | 'terminated' | 'unknown'> {
  const instance = await ec2.describeInstance(place, instanceId);
  if (instance === 'notFound') return 'unknown';
  // An answer about another instance, or by another account, shows nothing about this machine.
  const isOther = instance.instanceId !== instanceId || instance.ownerId !== place.account;
  return instance.state === 'terminated' && !isOther ? 'terminated' : 'exists';
}

type Seen = Omit<Finding, 'record'>;

const live = (why: string): Seen => ({ state: 'live', why });

function active({ lastSeen }: IdentityRecord, seen: 'terminated' | 'unknown', now: Instant): Seen {
  if (seen === 'terminated') return { state: 'terminated', why: 'EC2 reports it as terminated' };
  return now - lastSeen > unknownAfter
    ? { state: 'unknown', why: 'EC2 does not know it, and it was last seen more than an hour ago' }
    : live('EC2 does not know it, but it was seen within the last hour');
}

function retired(record: IdentityRecord, now: Instant): Seen {
  const end = graceEnd(record);
  return end <= now
    ? { state: 'retired', why: `retired; its grace ended at ${instantText(end)}` }
    : live(`retired; its grace ends at ${instantText(end)}`);
}

/** Records that were retired before `retiredAt` existed were used before that. */
function graceEnd({ nameFreeAt, retiredAt, lastSeen }: IdentityRecord): Instant {
  return nameFreeAt ?? (retiredAt ?? lastSeen) + nameGrace;
}

/** Milliseconds until the second look may follow; 0 if attest made the first one early enough, or had both. */
export function waitFor({ record, state }: Orphan, firstLook: Instant, now: Instant): number {
  if (state === 'retired') return 0;
  const { unknownSince } = record;
  const first = firstLookCounts(unknownSince, now) ? Math.min(unknownSince, firstLook) : firstLook;
  return Math.max(0, first + secondLookAfter - now);
}

/** For standard error: how many machines the findings are about, and of which nothing was asked. */
export function lookText(findings: readonly Finding[]): string {
  const asked = findings.filter(({ record }) => instanceOf(record.identity) !== undefined).length;
  const others = findings.length - asked;
  const rest =
    others === 0 ? '' : `; ${counted(others, 'machine')} of other platforms stay, since no platform can be asked`;
  return `${counted(asked, 'machine')} of EC2 on record, of which ${findings.filter(isOrphan).length} no longer exist${rest}`;
}
