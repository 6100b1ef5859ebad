/** `countersign cert revoke` and `cert revoked`. docs/ca/revocation.md */
import { InvalidArgumentError, Option } from 'commander';
import { reasonCodes } from '../../core/ports/revocations.ts';
import type { RevocationReason } from '../../core/ports/revocations.ts';
import { addClusterAccess } from '../cluster/cluster-access.ts';
import type { CliCommand } from '../runtime/command.ts';
import type { Io } from '../runtime/io.ts';
import { reasonText } from '../runtime/reason.ts';
import { serialNumber } from '../trace/place.ts';
import { revoke } from './revoke.ts';
import type { RevokeFlags } from './revoke.ts';
import { revoked } from './revoked.ts';
import type { RevokedFlags } from './revoked.ts';

const reasons = Object.keys(reasonCodes) as RevocationReason[];

/** `cert`: the command group. */
export function revocationCommands(cert: CliCommand, io: Io): void {
  addPlace(cert.command('revoke'))
    .page('ca/revocation.md')
    .description(
      'revoke certificates: lock their node, machine and key, record the revocations, issue the CRL. It can be repeated after any failure',
    )
    .addOption(selector('--serial <hex>', 'the certificate with this serial number', serialNumber))
    .addOption(selector('--node <name>', 'all certificates of this node'))
    .addOption(selector('--identity <machine>', 'all certificates of this machine, as tofu list shows it'))
    .addOption(
      selector('--key <sha256>', 'all certificates with this key: SHA-256 of its SubjectPublicKeyInfo', spkiDigest),
    )
    .addOption(new Option('--reason <reason>', 'RFC 5280, section 5.3.1').choices(reasons).makeOptionMandatory())
    .addOption(
      new Option('--note <text>', 'why, for the record; not published').argParser(reasonText).makeOptionMandatory(),
    )
    .addOption(
      new Option('--days <n>', 'for a node, machine or key: search certificates that expire within so many days')
        .argParser(wholeDays)
        .default(366),
    )
    .formats('table', 'json', 'yaml')
    .notes(
      'Order: the locks first, so that nothing is renewed meanwhile; then an audit item, and one record a certificate; then the CRL.',
      'Locked are the nodes and machines of the certificates; with --key that key, and with reason keyCompromise the keys of all of them.',
      'With reason superseded nothing is locked: the node goes on with its newer certificate. A revocation is final; unlock ends a lock.',
      'kube-apiserver reads no CRL: cert revoked --authorization writes the configuration that it obeys.',
    )
    .examples(
      "countersign cert revoke --node worker-3 --reason keyCompromise --note 'stolen, ticket 4711' --cluster prod",
      "countersign cert revoke --serial 3f9c0a1b77 --reason superseded --note 'reissued' --cluster prod",
    )
    .runs((flags: RevokeFlags) => revoke(flags, io));

  addClusterAccess(addPlace(cert.command('revoked')))
    .description(
      'list the revoked certificates that have not expired; write what kube-apiserver obeys; check that it does',
    )
    .addOption(
      new Option(
        '--authorization <kubeconfig>',
        'print an AuthorizationConfiguration that refuses them; the path on the API servers’ machines leads to the relay',
      ),
    )
    .addOption(
      new Option('--base <file>', 'with --authorization: the configuration in use, whose other authorizers are kept'),
    )
    .option('--check', 'ask the API server about each of them; exit code 1: it accepts one')
    .formats('table', 'wide', 'json', 'yaml')
    .examples(
      'countersign cert revoked --cluster prod',
      'countersign cert revoked --cluster prod --authorization /etc/kubernetes/countersign-revoked.kubeconfig > authorization.yaml.new',
      'countersign cert revoked --cluster prod --check',
    )
    .runs((flags: RevokedFlags) => revoked(flags, io));
}

const selectors = ['serial', 'node', 'identity', 'key'] as const;

function selector(flags: string, description: string, parse?: (text: string) => string): Option {
  const option = new Option(flags, description).conflicts(selectors.filter((name) => !flags.startsWith(`--${name} `)));
  return parse === undefined ? option : option.argParser(parse);
}

function addPlace(command: CliCommand): CliCommand {
  return command
    .option('--cluster <name>', 'deployed cluster [COUNTERSIGN_CLUSTER]')
    .option('--region <name>', 'AWS region of its stack (default: as for the aws command line)')
    .option('--function <name>', 'its ca function, if it does not have the name that the deployment gives it')
    .addOption(
      new Option(
        '--data <dir>',
        'instead of a deployed cluster: folder of a cluster of the dev server, such as ./data/demo',
      ).conflicts(['region', 'function']),
    );
}

function spkiDigest(text: string): string {
  const digits = text.replaceAll(':', '').toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(digits))
    throw new InvalidArgumentError('It has 64 hexadecimal digits, as cert show prints it.');
  return digits;
}

function wholeDays(text: string): number {
  const days = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (days < 1 || days > 3_650) throw new InvalidArgumentError('It must be 1 to 3650.');
  return days;
}
