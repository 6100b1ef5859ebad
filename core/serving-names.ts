/**
 * Does every name in a serving certificate belong to the machine that asks? What counts is what the platform says of
 * the machine and what the operator configured; never the Node object, which a kubelet writes itself.
 */
import type { ServingNames } from './attestation-configuration.ts';
import type { Machine } from './attestation/provider.ts';
import type { SubjectAltNames } from './csr.ts';
import { violation } from './outcome.ts';
import type { Violation } from './outcome.ts';
import { dnsMatches, parseRange, rangeHolds } from './patterns.ts';
import { atMost, quoted } from './quoted.ts';

export interface NamesQuestion {
  readonly sans: SubjectAltNames;
  readonly nodeName: string;
  readonly machine: Pick<Machine, 'identity' | 'addresses' | 'dnsNames'>;
  readonly names: ServingNames;
  /** First user of a range address, by address. */
  readonly holders: ReadonlyMap<string, string>;
  /** What somebody who may only narrow says of the machine (a Cluster API Machine): nothing outside it is allowed. */
  readonly only?: readonly string[];
}

/**
 * Names by which pods reach Kubernetes itself and its services: a node that had one could stand in for the API server.
 * `svc.*` and `*.cluster.local` cover every service of every namespace, whatever the cluster's domain.
 */
const serviceNames = [
  'kubernetes',
  'kubernetes.default',
  'localhost',
  '*.svc',
  '*.svc.*',
  '*.cluster.local',
  'cluster.local',
];
/** Addresses that are everybody's or nobody's: unspecified, loopback, link-local, multicast, broadcast. */
const nobodysRanges = ['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3', '::/127', 'fe80::/10', 'ff00::/8'];

/** Range addresses among the requested ones: whose they are is on record, or decided by this request. */
export function rangeAddresses(sans: SubjectAltNames, { addressRanges }: ServingNames): readonly string[] {
  return [...new Set(sans.ip)].filter((address) => inside(addressRanges, address));
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

function ownsAddress({ machine, names, holders, only }: NamesQuestion, address: string): boolean {
  if (inside(nobodysRanges, address) || inside(names.reservedAddresses, address)) return false;
  if (only !== undefined && !only.includes(address)) return false;
  // The interface first: an address the platform gave this machine is its own, even where an API server listens on it.
  if (machine.addresses.includes(address)) return true;
  return inside(names.addressRanges, address) && (holders.get(address) ?? machine.identity) === machine.identity;
}

function ownsName({ nodeName, machine, names, only }: NamesQuestion, name: string): boolean {
  const asked = name.toLowerCase();
  // `kubernetes.` is the same host to a resolver; and one name must have one spelling here.
  if (asked.endsWith('.') || asked.startsWith('*')) return false;
  if ([...serviceNames, ...names.reservedNames].some((pattern) => dnsMatches(pattern, asked))) return false;
  if (only !== undefined && asked !== nodeName && !only.some((other) => other.toLowerCase() === asked)) return false;
  // Its node name is its own since its first use, and the claim on it is checked with this request's.
  return asked === nodeName || machine.dnsNames.includes(asked);
}

function inside(ranges: readonly string[], address: string): boolean {
  return ranges.some((text) => {
    const range = parseRange(text);
    return range !== undefined && rangeHolds(range, address);
  });
}
