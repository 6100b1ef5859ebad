/** `countersign kubeadm`: certificates of kubeadm's control plane, on its machines (docs/ca/kubeadm.md). */
import { Option } from 'commander';
import type { CliCommand } from '../runtime/command.ts';
import type { Io } from '../runtime/io.ts';
import { thisHost } from './host.ts';
import type { Host } from './host.ts';
import { renew } from './renew.ts';
import type { RenewFlags } from './renew.ts';
import { sign } from './sign.ts';
import type { SignFlags } from './sign.ts';

export function kubeadmCommands(program: CliCommand, io: Io, host: Host = thisHost): void {
  const kubeadm = program
    .command('kubeadm')
    .description("certificates of kubeadm's control plane, signed without ca.key; run on each control-plane machine");

  withCommon(kubeadm.command('sign'), 'kubeadm wrote there')
    .page('ca/kubeadm.md')
    .description(
      'have the requests signed that kubeadm certs generate-csr wrote, and put the certificates beside their keys',
    )
    .notes(
      'Private keys stay where they are. The command can be repeated after any failure: the same request gets the same certificate.',
      'Each reason of a refusal is in docs/ca/kubeadm.md.',
    )
    .examples(
      'kubeadm certs generate-csr --config kubeadm.yaml && countersign kubeadm sign --cluster prod --include super-admin',
      'countersign kubeadm sign --data ./data/prod --config countersign.yaml --dir ./cp-1 --dry-run',
    )
    .runs((flags: SignFlags) => sign(flags, io, host));

  withCommon(kubeadm.command('renew'), 'are replaced')
    .description(
      'replace the certificates of this control-plane machine by new ones with new keys, under the same names',
    )
    .option('--kubeadm <program>', 'kubeadm, which makes keys and requests', 'kubeadm')
    .option(
      '--kubeadm-config <file>',
      'its configuration of this node: name, addresses, certSANs (default: what kubeadm finds out)',
    )
    .option('--allow-changed-names', 'accept other names than those of the present certificates')
    .notes(
      'The files before are kept in a folder countersign-backup-…. A killed command goes on where it ended when it is run again.',
      'kubelet.conf is left out: the kubelet renews its certificate itself.',
    )
    .examples('countersign kubeadm renew --cluster prod --kubeadm-config /etc/kubernetes/kubeadm.yaml')
    .runs((flags: RenewFlags) => renew(flags, io, host));
}

function withCommon(command: CliCommand, what: string): CliCommand {
  return command
    .option('--dir <dir>', `folder of the kubeconfigs that ${what}`, '/etc/kubernetes')
    .option('--cert-dir <dir>', 'folder of keys and certificates (default: pki in that folder)')
    .option('--cluster <name>', 'deployed cluster whose CAs sign [COUNTERSIGN_CLUSTER]; with --config one of that file')
    .option('--function <name>', 'its kubeadm function, if it does not have the name that the deployment gives it')
    .option('--region <name>', 'AWS region of the cluster’s stack (default: as for the aws command line)')
    .addOption(
      new Option('--data <dir>', 'instead of a deployed cluster: folder of the CAs’ files').conflicts([
        'function',
        'region',
      ]),
    )
    .option('--config <file>', 'with --data: the countersign.yaml with the key kubeadm')
    .addOption(
      new Option('--include <what…>', 'sign super-admin.conf too, which bypasses all authorization')
        .choices(['super-admin'])
        .default([]),
    )
    .option('--dry-run', 'only check what would be signed; nothing is signed or written')
    .formats('table', 'json', 'yaml');
}
