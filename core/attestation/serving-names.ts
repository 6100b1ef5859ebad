/**
 * Does every name in a serving certificate belong to the machine that asks? What counts is what the platform says of
 * the machine and what the operator configured; never the Node object, which a kubelet writes itself. Names that no kubelet
 * may serve under were refused before, by the profile (serving-rules.ts).
 */
import type { Machine } from './evidence/provider.ts';
import type { SubjectAltNames } from '../x509/model.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import { isInRanges } from '../policy/patterns.ts';
import type { AddressRange } from '../policy/patterns.ts';
import { atMost, quoted } from '../outcome/printable-text.ts';

export interface NamesQuestion {
  readonly sans: SubjectAltNames;
  readonly nodeName: string;
  readonly machine: Pick<Machine, 'identity' | 'addresses' | 'dnsNames'>;
  /** CIDR blocks whose addresses belong to the machine that asks first. */
  readonly addressRanges: readonly AddressRange[];
  /** First user of a range address, by address. */
  readonly holders: ReadonlyMap<string, string>;
  /** What somebody who may only narrow says of the machine (a Cluster API Machine): nothing outside it is allowed. */
  readonly only?: readonly string[];
}

/** Range addresses among the requested ones: whose they are is on record, or decided by this request. */
export function rangeAddresses(sans: SubjectAltNames, addressRanges: readonly AddressRange[]): readonly string[] {
  return [...new Set(sans.ip)].filter((address) => isInRanges(addressRanges, address));
}

/** Every name that is not the machine's, in the order asked. */
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
  if (only !== undefined && !only.includes(address)) return false;
  // The interface first: an address the platform gave this machine is its own, even where an API server listens on it.
  if (machine.addresses.includes(address)) return true;
  return isInRanges(addressRanges, address) && (holders.get(address) ?? machine.identity) === machine.identity;
}

function ownsName({ nodeName, machine, only }: NamesQuestion, name: string): boolean {
  const asked = name.toLowerCase();
  if (only !== undefined && asked !== nodeName && !only.some((other) => other.toLowerCase() === asked)) return false;
  // Its node name is its own since its first use, and the claim on it is checked with this request's.
  return asked === nodeName || machine.dnsNames.includes(asked);
}
