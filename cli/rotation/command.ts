/** `countersign ca rotate`. docs/ca/rotation.md */
import { InvalidArgumentError, Option } from 'commander';
import { addClusterAccess } from '../cluster/cluster-access.ts';
import { addNamedCa } from '../commands/ca.ts';
import type { CliCommand } from '../runtime/command.ts';
import type { Io } from '../runtime/io.ts';
import { rotate } from './rotate.ts';
import type { RotateFlags } from './rotate.ts';

/** `ca`: the command group. */
export function rotateCommand(ca: CliCommand, io: Io): void {
  addClusterAccess(addNamedCa(ca.command('rotate')))
    .page('ca/rotation.md')
    .description(
      'show how far the replacement of a CA by another one is, what depends on the old one, and the next step. It changes nothing',
    )
    .option('--config <file>', 'with --data: the countersign.yaml in use')
    .addOption(
      new Option('--skip-kubernetes', 'do not read what the cluster trusts').conflicts(['kubeconfig', 'context']),
    )
    .addOption(
      new Option(
        '--days <n>',
        'read certificates that end within so many days (default: 366, or the longest maxTtl)',
      ).argParser(wholeNumber(36_500)),
    )
    .addOption(new Option('--limit <n>', 'list at most so many holders').argParser(wholeNumber(10_000)).default(50))
    .formats('table', 'json', 'yaml')
    .notes(
      'A rotation is a new CA with `replaces: <old CA>` in countersign.yaml. Its phase is derived from what is deployed, the ledger and the',
      'cluster, so nothing is stored: run the command before and after each step.',
      'Exit codes: 1: something is in the wrong order, and certificates are refused; 4: there is no such CA; 5: not everything could be read.',
      'In the cluster it reads three ConfigMaps and the pods of kube-system and kube-public, ClusterTrustBundles, webhook configurations,',
      'APIServices and CustomResourceDefinitions.',
    )
    .examples(
      'countersign ca rotate --cluster prod --name nodes',
      "countersign ca rotate --cluster prod --name nodes -o json | jq -r '.phase, .certificates.last'",
      'countersign ca rotate --data ./data/demo --config countersign.yaml --name ca --skip-kubernetes',
    )
    .runs((flags: RotateFlags) => rotate(flags, io));
}

function wholeNumber(most: number): (text: string) => number {
  return (text) => {
    const number = /^\d{1,5}$/.test(text) ? Number(text) : 0;
    if (number < 1 || number > most) throw new InvalidArgumentError(`It must be 1 to ${most}.`);
    return number;
  };
}
