/** An entry of the list of machines, from the text of an operator: one line of a file, or an argument with its flags. */
import { mostAddresses } from '../../core/attestation/records/stored-records.ts';
import type { MachineEntry } from '../../core/ports/attestation-store.ts';
import { quoted } from '../../core/outcome/printable-text.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { canonicalAddress, isSubdomain } from '../../core/policy/patterns.ts';
import { hostNameFault } from '../../core/policy/serving-rules.ts';

/** As the operator wrote it. */
export interface EntryText {
  readonly name: string;
  readonly node?: string | undefined;
  readonly addresses: readonly string[];
  readonly dns: readonly string[];
}

/** What the operator decides about one machine. */
export type ListedMachine = Pick<MachineEntry, 'name' | 'nodeName' | 'addresses' | 'dnsNames'>;

/** The machine, or the problem: a sentence. */
export function readEntry({ name, node, addresses, dns }: EntryText): Result<ListedMachine, string> {
  const hasNames = node !== undefined || addresses.length > 0 || dns.length > 0;
  const problem = nameProblem(name) ?? familyProblem(name) ?? (hasNames ? namesProblem(name) : undefined);
  if (problem !== undefined) return failure(problem);
  if (node !== undefined && !isSubdomain(node)) return failure(`${quoted(node)} is not the name of a node`);
  const canonical: string[] = [];
  for (const text of addresses) {
    const address = canonicalAddress(text);
    if (address === undefined) return failure(`${quoted(text)} is not an IP address`);
    canonical.push(address);
  }
  for (const text of dns) {
    const fault = hostNameFault(text);
    if (fault !== undefined) return failure(`the DNS name ${quoted(text)} ${fault}`);
  }
  if (Math.max(addresses.length, dns.length) > mostAddresses)
    return failure(`a machine has at most ${mostAddresses} addresses and as many DNS names`);
  return success({
    name,
    ...(node === undefined ? {} : { nodeName: node }),
    addresses: unique(canonical),
    dnsNames: unique(dns.map((text) => text.toLowerCase())),
  });
}

/** Why no entry has this name. Names of every provider are accepted, since one list serves all versions of the deployment. */
export function nameProblem(text: string): string | undefined {
  if (/^i-[0-9a-f]*$/.test(text)) return `It begins with its provider: aws#${text}`;
  if (/^[0-9A-Fa-f]{64}$/.test(text)) return `It begins with its provider: tpm#${text.toLowerCase()}`;
  if (!/^[a-z][a-z0-9-]*#[\x21-\x7e]{1,200}$/.test(text)) return 'It looks like aws#i-0123456789abcdef0.';
  return undefined;
}

/** Why no machine can match the entry, or more than the operator wants. An entry that is on the list can be removed all the same. */
function familyProblem(name: string): string | undefined {
  if (name.startsWith('aws#') && !name.includes('*') && !/^aws#i-(?:[0-9a-f]{8}|[0-9a-f]{17})$/.test(name))
    return 'Instance ids are i- and 8 or 17 hexadecimal digits.';
  if (!name.startsWith('tpm#')) return undefined;
  if (name.includes('*'))
    return 'A TPM is listed by its exact name: an entry is trust in one endorsement key, and keys whose hashes look alike have nothing in common.';
  if (!/^tpm#[0-9a-f]{64}$/.test(name))
    return 'The name of a TPM is tpm# and 64 lower-case hexadecimal digits: countersign machines ek prints it.';
  return undefined;
}

/** Why the operator cannot name this machine. Only for a TPM the list is the source of its names; a second source would contradict the first. */
function namesProblem(name: string): string | undefined {
  const provider = name.slice(0, name.indexOf('#'));
  if (provider === 'aws') return 'EC2 vouches for the node name, the addresses and the DNS names of an aws# machine.';
  return provider === 'tpm'
    ? undefined
    : `Provider ${provider} does not take the names of its machines from this list.`;
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}
