/**
 * Does every name in a serving certificate belong to the machine? The platform's description of the machine and the operator's
 * address ranges decide, not the Node object, which the kubelet writes. The profile has already refused names that no kubelet
 * may serve under (serving-rules.ts).
 */
import type { Machine } from './evidence/provider.ts';
import type { SubjectAltNames } from '../x509/model.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import { canonicalAddress, isInRanges } from '../policy/patterns.ts';
import type { AddressRange } from '../policy/patterns.ts';
import { atMost, quoted } from '../outcome/printable-text.ts';

export interface NamesQuestion {
  readonly sans: SubjectAltNames;
  readonly nodeName: string;
  readonly machine: Pick<Machine, 'identity' | 'addresses' | 'dnsNames'>;
  /** CIDR blocks; an address in them belongs to the machine that requested it first. */
  readonly addressRanges: readonly AddressRange[];
  /** For each address in the ranges, the identity that requested it first. */
  readonly holders: ReadonlyMap<string, string>;
  /** Addresses and DNS names of the Machine of Cluster API; they can only narrow what is allowed. Empty: it lists none. */
  readonly only: readonly string[];
}

/** The requested addresses in the operator's ranges: each belongs to the machine that requested it first. */
export function rangeAddresses(sans: SubjectAltNames, addressRanges: readonly AddressRange[]): readonly string[] {
  return [...new Set(sans.ip)].filter((address) => isInRanges(addressRanges, address));
}

/** A violation for each name that does not belong to the machine. */
export function checkNames(question: NamesQuestion): readonly Violation[] {
  const { sans } = question;
  const foreign = [
    ...sans.ip.filter((address) => !ownsAddress(question, address)).map((address) => `address ${address}`),
    ...sans.dns.filter((name) => !ownsName(question, name)).map((name) => `DNS name ${quoted(name)}`),
  ];
  return atMost(foreign, (name) => `${name} does not belong to this machine`).map((message) =>
    violation('NameNotOwned', message),
  );
}

function ownsAddress({ machine, addressRanges, holders, only }: NamesQuestion, address: string): boolean {
  // An address that the platform gave this machine belongs to it, even if an API server listens on it.
  if (machine.addresses.includes(address) && lists(only, address)) return true;
  return isInRanges(addressRanges, address) && (holders.get(address) ?? machine.identity) === machine.identity;
}

function ownsName({ nodeName, machine, only }: NamesQuestion, name: string): boolean {
  const asked = name.toLowerCase();
  // The node name belongs to the machine since its first use, which the claim of this request checks again.
  return asked === nodeName || (machine.dnsNames.includes(asked) && lists(only, asked));
}

/** The API server keeps the addresses of a Machine as they were written: IPv6 may be in any form, names in capitals. */
function lists(only: readonly string[], name: string): boolean {
  return only.length === 0 || only.some((other) => (canonicalAddress(other) ?? other.toLowerCase()) === name);
}
