/** Which entries `cert find` shows. Each value is compared as a whole. */
import type { CertificateEntry } from '../../core/inventory/certificate-entry.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { namesOf } from './entry-text.ts';

type Filter = readonly [flag: string, about: string, matches: (entry: CertificateEntry, value: string) => boolean];

const filters = {
  node: ['--node <name>', 'of the user of this node', ({ nodeName }, value) => nodeName === value],
  identity: ['--identity <id>', 'of this machine, as tofu list shows it', ({ identity }, value) => identity === value],
  name: [
    '--name <name>',
    'with this common name or subjectAltName',
    (entry, value) => entry.commonName === value || namesOf(entry).includes(value),
  ],
  organization: [
    '--organization <name>',
    'with this organization, which Kubernetes takes as a group',
    ({ organizations }, value) => organizations.includes(value),
  ],
  signer: ['--signer <name>', 'of this signer', ({ signerName }, value) => signerName === value],
  requester: ['--requester <user>', 'requested by this user', ({ requester }, value) => requester === value],
  key: [
    '--key <sha256>',
    'of this public key (SHA-256 of its SPKI)',
    ({ publicKeySha256: key }, value) => key === value,
  ],
  fingerprint: [
    '--fingerprint <sha256>',
    'the certificate with this SHA-256',
    ({ fingerprintSha256: own }, value) => own === value.replaceAll(':', '').toLowerCase(),
  ],
} as const satisfies Readonly<Record<string, Filter>>;

export type FilterFlags = { readonly [Name in keyof typeof filters]?: string };

export function addFilters(command: CliCommand): CliCommand {
  for (const [flag, about] of Object.values(filters)) command.option(flag, `only those ${about}`);
  return command;
}

/** Throws CommandFailure if no filter is given: `cert list` shows all. */
export function matcherOf(flags: FilterFlags): (entry: CertificateEntry) => boolean {
  const given = Object.entries<Filter>(filters).flatMap(([name, [, , matches]]) => {
    const value = flags[name as keyof FilterFlags];
    return value === undefined ? [] : [(entry: CertificateEntry) => matches(entry, value)];
  });
  if (given.length > 0) return (entry) => given.every((holds) => holds(entry));
  throw new CommandFailure(exitCodes.usage, 'which certificates? give a filter', 'countersign cert find --help');
}
