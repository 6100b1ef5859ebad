/**
 * The instance identity document: what a region says about one of its instances, in JSON, inside the CMS that the region
 * signed. A bearer document: whoever reads the instance's metadata has it, for as long as the instance lives. It says
 * which machine is meant, and nothing about who sent it.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-identity-documents.html
 */
import type { Problem } from '../../encoding/der-reader.ts';
import { parseAddress } from '../../policy/patterns.ts';
import type { Instant } from '../../ports/instant.ts';
import { partitionOf } from './partition.ts';
import type { Partition } from './partition.ts';
import { readJsonObject } from '../../encoding/strict-json.ts';

/** Which instance the evidence is about. What is here was checked for its form, and becomes part of names and queries. */
export interface ClaimedInstance {
  readonly partition: Partition;
  readonly accountId: string;
  readonly region: string;
  readonly instanceId: string;
  /** Of the document; `aws/v2` has none. */
  readonly availabilityZone?: string;
  /** Likewise; absent for an instance in a subnet without IPv4. */
  readonly privateIp?: string;
}

/** Our clock and the region's may differ that much. */
const clockSkew = 60_000;

/** `region` is the one whose key signed. Keys that are not used here may come and go: AWS writes them, not the sender. */
export function readIdentityDocument(
  content: Uint8Array,
  region: string,
  now: Instant,
): { readonly instance: ClaimedInstance } | Problem {
  const read = readJsonObject(content);
  if (!read.ok) return { problem: `is signed, but ${read.problem}` };
  const { accountId, instanceId, availabilityZone, pendingTime, privateIp, ...others } = read.value;
  // A region speaks for its own instances only: the key of one that is given away would otherwise speak for all.
  if (others['region'] !== region) return { problem: 'is of another region than the key that signed it' };
  const partition = partitionOf(region);
  if (partition === undefined) return { problem: 'is of a region of no known partition' };
  if (typeof accountId !== 'string' || !isAccountId(accountId)) return { problem: 'names no account' };
  if (typeof instanceId !== 'string' || !isInstanceId(instanceId)) return { problem: 'names no instance' };
  if (typeof availabilityZone !== 'string' || !isZoneOf(region, availabilityZone))
    return { problem: 'names no availability zone of its region' };
  const started = typeof pendingTime === 'string' ? readTime(pendingTime) : Number.NaN;
  if (Number.isNaN(started)) return { problem: 'has no pendingTime' };
  if (started > now + clockSkew) return { problem: 'is of an instance that starts in the future' };
  const instance = { partition, accountId, region, instanceId, availabilityZone };
  if (privateIp === undefined || privateIp === null) return { instance };
  if (typeof privateIp !== 'string' || !isIpv4(privateIp))
    return { problem: 'has a privateIp that is no IPv4 address' };
  return { instance: { ...instance, privateIp } };
}

export function isAccountId(text: string): boolean {
  return /^[0-9]{12}$/.test(text);
}

/** 8 digits until 2016, 17 since. Never more, and lower case only: it becomes part of names and of queries. */
export function isInstanceId(text: string): boolean {
  return /^i-(?:[0-9a-f]{8}|[0-9a-f]{17})$/.test(text);
}

/** `eu-central-1a`; local and wavelength zones have longer tails: `us-east-1-bos-1a`, `us-east-1-wl1-bos-wlz-1`. */
function isZoneOf(region: string, zone: string): boolean {
  return zone.startsWith(region) && /^[a-z](?:[a-z0-9-]{0,60}[a-z0-9])?$/.test(zone) && zone !== region;
}

function readTime(text: string): number {
  return /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$/.test(text) ? Date.parse(text) : Number.NaN;
}

function isIpv4(text: string): boolean {
  return !text.includes(':') && parseAddress(text) !== undefined;
}
