/**
 * Names that no kubelet may serve under, on any machine and with any approval: with such a name a node could impersonate the
 * API server, a service or the cloud's metadata service. Only attestation can decide who owns the other names
 * (serving-names.ts).
 */
import { isHostName, isInRanges, isSubdomain, nameMatches, parseAddress, parseRange } from './patterns.ts';
import { atMost, quoted, quotedList } from '../outcome/printable-text.ts';
import type { Reserved } from './reserved-names.ts';
import type { Question, Rule } from './rule.ts';

/**
 * Names by which pods and components reach the control plane, services and the cloud's metadata. Resolvers of pods complete
 * `name` and `name.namespace`. `*.svc.*` covers every service even if `clusterDomain` is wrong.
 */
const neverHosts = [
  'kubernetes',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'etcd',
  '*.default',
  '*.kube-system',
  '*.svc',
  '*.svc.*',
  'localhost',
  '*.localhost',
  // Google Cloud and AWS: the names of 169.254.169.254.
  'metadata',
  'metadata.goog',
  'metadata.google.internal',
  'instance-data',
  'instance-data.*',
];

/**
 * Addresses by which no other host reaches a node: unspecified, loopback, link-local, multicast, class E, broadcast; IPv6 forms
 * of IPv4 addresses (RFC 4291 §2.5.5.1, RFC 6052 §2.1, RFC 8215), which reach the IPv4 address; and AWS's instance metadata
 * over IPv6.
 */
const neverAddresses = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/3',
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  'fd00:ec2::/32',
  'fe80::/10',
  'ff00::/8',
].flatMap((text) => parseRange(text) ?? []);

/** Deviation 15 (docs/signers.md). A name that can mean several hosts does not belong to one machine. */
export const servesHostNames: Rule = {
  check: 'DNS subjectAltNames are names of single hosts',
  code: 'SanNotPermitted',
  observed: ({ request }) => quotedList(request.sans.dns),
  applies: ({ request }) => request.sans.dns.length > 0,
  violations: ({ profile, request }) =>
    atMost(
      request.sans.dns.filter((name) => !isAllowed(profile, name) && hostNameFault(name) !== undefined),
      (name) => `DNS subjectAltName ${quoted(name)} ${hostNameFault(name) ?? ''}`,
    ),
};

/** Deviation 15 (docs/signers.md). */
export const servesNothingReserved: Rule = {
  check: 'no subjectAltName is reserved (control plane, services, loopback …)',
  code: 'NameReserved',
  observed: ({ request: { sans } }) => quotedList([...sans.dns, ...sans.ip]),
  applies: ({ request: { sans } }) => sans.dns.length + sans.ip.length > 0,
  violations: ({ profile, request: { sans } }) => {
    const { hosts, addresses } = refusedNames(profile.reserved);
    const refused = (name: string): string => `subjectAltName ${quoted(name)} is reserved: no kubelet serves under it`;
    return [
      ...atMost(
        sans.dns.filter((name) => isHostAmong(hosts, name) && !isAllowed(profile, name)),
        refused,
      ),
      ...atMost(
        sans.ip.filter((address) => isInRanges(addresses, address) && !isAllowed(profile, address)),
        refused,
      ),
    ];
  },
};

/** Whether a kubelet may use the name only if its profile lists it. */
export function isRefusedToKubelets(reserved: Reserved, name: string): boolean {
  const { hosts, addresses } = refusedNames(reserved);
  if (parseAddress(name) !== undefined) return isInRanges(addresses, name);
  return hostNameFault(name) !== undefined || isHostAmong(hosts, name);
}

function isAllowed({ allowReservedSans = [] }: Question['profile'], name: string): boolean {
  return allowReservedSans.includes(name.toLowerCase());
}

/** Why the name is not the name of one host. As in names of Nodes, labels may be longer than DNS allows. */
export function hostNameFault(text: string): string | undefined {
  const name = text.toLowerCase();
  if (name.includes('*')) return 'is a wildcard';
  if (!isHostName(name) && !isSubdomain(name)) return 'is not a host name';
  return readsAsAddress(name) ? 'reads as an address' : undefined;
}

/**
 * `10.96.0.1`, and other forms that resolvers take for an address (inet_aton(3)): `10.96.1`, `0x0a600001`, `174063617`. A single
 * number below 2^24 is permitted: its address would be in 0.0.0.0/8, which reaches nothing, and machines may have numbers.
 */
function readsAsAddress(name: string): boolean {
  const labels = name.split('.');
  return (
    labels.every((label) => /^(0x[0-9a-f]+|[0-9]+)$/.test(label)) && (labels.length > 1 || Number(name) >= 2 ** 24)
  );
}

/** Patterns of host names, and blocks of addresses. Created once for each request, which may have hundreds of names. */
function refusedNames({ names, addresses, clusterDomain }: Reserved) {
  return {
    hosts: [...neverHosts, clusterDomain, `*.${clusterDomain}`, ...names],
    addresses: [...neverAddresses, ...addresses],
  };
}

function isHostAmong(patterns: readonly string[], text: string): boolean {
  const name = text.toLowerCase();
  return patterns.some((pattern) => nameMatches(pattern, name));
}
