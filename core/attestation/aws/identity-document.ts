/**
 * The instance identity document: JSON about one instance, inside the CMS message that its region signed. Every program that
 * can read the instance's metadata can copy it, and it does not expire. So it names a machine, but does not prove that this
 * machine sent it.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-identity-documents.html
 */
import { parseAddress } from '../../policy/patterns.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';
import type { ExpectedInstance } from './instance.ts';
import { identityOf, isAccountId, isInstanceId } from './instance-identity.ts';
import { partitionOf } from './partition.ts';
import type { Partition } from './partition.ts';
import { readJsonObject } from '../../encoding/strict-json.ts';

/** The instance that the evidence claims. Only its form was checked. */
export interface ClaimedInstance extends ExpectedInstance {
  readonly partition: Partition;
}

/** How far our clock and the region's may differ. */
const clockSkew = 60_000;

/** `region`: the region whose key signed. Unknown fields are accepted, because AWS wrote them, not the sender. */
export function readIdentityDocument(
  content: Uint8Array,
  region: string,
  now: Instant,
): Result<ClaimedInstance, string> {
  const read = readJsonObject(content);
  if (!read.ok) return failure(`is signed, but ${read.problem}`);
  const { accountId: account, instanceId, availabilityZone, pendingTime, privateIp, ...others } = read.value;
  // A region's key is valid only for its own instances: otherwise one stolen key would be valid for all regions.
  if (others['region'] !== region) return failure('is of another region than the key that signed it');
  const partition = partitionOf(region);
  if (partition === undefined) return failure('is of a region of no known partition');
  if (typeof account !== 'string' || !isAccountId(account)) return failure('names no account');
  if (typeof instanceId !== 'string' || !isInstanceId(instanceId)) return failure('names no instance');
  if (typeof availabilityZone !== 'string' || !isZoneOf(region, availabilityZone))
    return failure('names no availability zone of its region');
  const started = typeof pendingTime === 'string' ? readTime(pendingTime) : Number.NaN;
  if (Number.isNaN(started)) return failure('has no pendingTime');
  if (started > now + clockSkew) return failure('is of an instance that starts in the future');
  const identity = identityOf({ account, region, instanceId });
  const instance = { identity, partition, account, region, instanceId, availabilityZone };
  // An instance in a subnet without IPv4 has no privateIp.
  if (privateIp === undefined || privateIp === null) return success(instance);
  if (typeof privateIp !== 'string' || !isIpv4(privateIp)) return failure('has a privateIp that is no IPv4 address');
  return success({ ...instance, privateIp });
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
