/**
 * Decides about a serving certificate by the last description of its machine, which the record holds since the client certificate.
 * So a node that joins costs one call of its platform. The reasons are in
 * docs/internals/decisions/0030-an-instance-seen-moments-ago.md.
 */
import type { IdentityRecord, LastDescription } from '../../ports/attestation-store.ts';
import type { Instant } from '../../ports/instant.ts';
import { mostDescribed } from '../records/stored-records.ts';
import type { AttestationProvider, Machine } from './provider.ts';

/** How long after attest asked the platform a serving certificate may be decided by the answer. */
export const descriptionLasts = 120_000;

/** A machine, and what its record holds of the description from now on. */
export interface Look {
  readonly machine: Machine;
  readonly described: LastDescription | undefined;
}

type Reuse = Pick<AttestationProvider, 'reusesDescriptions'>;

/** The platform was asked. A description with very many names is not stored: DynamoDB bills each kilobyte of the record. */
export function newLook(machine: Machine, { reusesDescriptions }: Reuse, at: Instant): Look {
  const { addresses, dnsNames } = machine;
  const isStored = reusesDescriptions === true && addresses.length + dnsNames.length <= mostDescribed;
  return { machine, described: isStored ? { at, addresses, dnsNames } : undefined };
}

/** The machine as its platform described it moments ago; `undefined`: the platform must be asked. */
export function machineSeen(record: IdentityRecord, { reusesDescriptions }: Reuse, now: Instant): Machine | undefined {
  const { identity, nodeName, providerId, described, unknownSince, restart } = record;
  if (reusesDescriptions !== true || described === undefined) return undefined;
  // A description from the future comes from another clock, so its age is unknown.
  const age = now - described.at;
  if (!(age >= 0 && age < descriptionLasts)) return undefined;
  // Since then its platform reported the machine as terminated or unknown, or another key was requested for it.
  if (unknownSince !== undefined || restart !== undefined) return undefined;
  const { addresses, dnsNames } = described;
  return { identity, providerId, nodeNames: [nodeName], addresses, dnsNames };
}
