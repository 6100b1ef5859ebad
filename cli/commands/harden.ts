/**
 * `countersign cluster harden`: removes the ways to a node's certificate that bypass attestation. kubeadm creates two: kube-
 * controller-manager approves every request of a client with a bootstrap token, and every renewal of a node.
 *
 * The command prints which cluster it works on and what it saw. It removes bindings only with --yes, and only if a relay is
 * known to be able to approve in their place.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Option } from 'commander';
import type { ClusterClients } from '../../adapters/kubernetes/clients.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { addClusterAccess, announce, withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import { closingText, notSeen, openBypasses, planText, viewText } from '../cluster/harden-view.ts';
import type { Binding, HardenView } from '../cluster/harden-view.ts';
import type { Io } from '../runtime/io.ts';
import { failIfRefused, unlessRefused } from '../cluster/object-answers.ts';
import { formatOutput } from '../output/output.ts';
import { canTakeOver, relayName, relayText } from '../cluster/relay-view.ts';
import { probeSigner } from '../cluster/signer-probe.ts';
import { viewBypasses } from '../cluster/view-bypasses.ts';

interface HardenFlags extends ClusterAccessFlags {
  readonly yes?: boolean;
  readonly check?: boolean;
  readonly probe?: boolean;
  readonly signerName: readonly string[];
  readonly output: string;
}

export function clusterCommands(program: CliCommand, io: Io): void {
  const cluster = program.command('cluster').description('find and close ways to certificates that bypass the signer');
  addClusterAccess(cluster.command('harden'))
    .description(
      'find what gives nodes certificates without evidence: kube-controller-manager’s signer and approver, and the bindings\n' +
        'that make it approve. --yes removes the bindings. Exit code with --check: 1 something is open, 5 not all was seen.',
    )
    .addOption(new Option('--yes', 'remove the bindings').conflicts('check'))
    .option(
      '--check',
      'change nothing; exit code 1 if something is open, 5 if not everything could be seen: for a job after every upgrade',
    )
    .option(
      '--probe',
      'also create, approve and delete a request that every signer must refuse, to see which signer answers',
    )
    .listOption(
      '--signer-name <list>',
      'signers that the relay must be able to approve and sign for before --yes removes anything',
      'kubernetes.io/kube-apiserver-client-kubelet',
    )
    .formats('table', 'json', 'yaml')
    .notes(
      '--yes removes nothing unless a Deployment of the relay is Available and its ServiceAccount may approve and sign in their place.',
      '',
      'kubeadm upgrade creates the bindings again: run --check after it.',
    )
    .examples(
      'countersign cluster harden',
      'countersign cluster harden --yes',
      'countersign cluster harden --check -o json',
      'countersign cluster harden --probe --check  # where kube-controller-manager’s flags cannot be seen',
    )
    .runs((flags: HardenFlags) => harden(flags, io));
}

async function harden(flags: HardenFlags, io: Io): Promise<ExitCode> {
  return withCluster(flags, io, async (cluster) => {
    const login = await announce(cluster, io);
    const probed =
      flags.probe === true
        ? await probeSigner(cluster, Buffer.from(io.randomBytes(4)).toString('hex'), sleep)
        : undefined;
    const currentView = async () => ({ ...login, ...(await viewBypasses(cluster, probed, flags.signerName)) });
    const before = await currentView();
    const print = (text: string): void => (flags.output === 'table' ? io.out(text) : undefined);
    print(viewText(before));
    if (flags.yes !== true) {
      if (flags.check !== true) print(planText(before));
      io.out(formatOutput(flags.output, withFindings(before), () => ''));
      return flags.check === true ? checkExitCode(before) : exitCodes.ok;
    }
    if (before.bindings.length > 0) requireRelay(before, flags.signerName);
    const removed = await removeBindings(cluster, before.bindings, print);
    let after = await currentView();
    // The API server's authorizer sees a removed binding through a watch, so for a moment it may still grant the right.
    for (let tries = 0; removed.length > 0 && tries < 10 && openBypasses(after).length > 0; tries += 1) {
      await sleep(300);
      after = await currentView();
    }
    const open = openBypasses(after);
    io.out(formatOutput(flags.output, { ...withFindings(after), removed }, () => closingText(after)));
    return open.length === 0 ? exitCodes.ok : exitCodes.refused;
  });
}

function withFindings(view: HardenView): object {
  return { ...view, open: openBypasses(view), notSeen: notSeen(view) };
}

/** The exit code of --check, which passes only if everything was seen and closed. */
function checkExitCode(view: HardenView): ExitCode {
  if (openBypasses(view).length > 0) return exitCodes.refused;
  const unseen = notSeen(view);
  if (unseen.length === 0) return exitCodes.ok;
  throw new CommandFailure(
    exitCodes.temporary,
    `nothing open was seen, but the check does not pass because not everything could be seen: ${unseen.join('; ')}`,
    '--probe finds out whether kube-controller-manager signs if its flags cannot be read; docs/join.md lists the rights that this command needs',
  );
}

/** Throws CommandFailure unless a relay is known to be able to approve in place of kube-controller-manager. */
function requireRelay({ relays, bindings }: HardenView, signerNames: readonly string[]): void {
  if (relays.some(canTakeOver)) return;
  const nothing = 'nothing was changed: without these bindings no node would get or renew a certificate';
  const names = bindings.map(({ name }) => printable(name)).join(' ');
  const hint = `docs/deploy.md, “Install the relay”, with approval: approve for ${signerNames.join(', ')}; --signer-name names other signers of the nodes; with an approver of your own: kubectl delete clusterrolebinding ${names}`;
  if (relays.length === 0)
    throw new CommandFailure(exitCodes.refused, `no relay was found by the labels of the chart; ${nothing}`, hint);
  const why = relays.map((relay) => `${relayName(relay)}: ${relayText(relay)}`).join('. ');
  // If only the relay's rights are unknown, another login may see them.
  const unseen = relays.some(({ ready, available, approves }) => ready > 0 && available && approves === undefined);
  throw new CommandFailure(
    unseen ? exitCodes.temporary : exitCodes.refused,
    `no relay is known to approve in their place (${why}); ${nothing}`,
    hint,
  );
}

/** Removes only bindings that are still as they were shown; a changed binding is a conflict. */
async function removeBindings(
  { rbac }: ClusterClients,
  bindings: readonly Binding[],
  print: (text: string) => void,
): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const { name, uid, resourceVersion } of bindings) {
    const removal = rbac.deleteClusterRoleBinding({ name, body: { preconditions: { uid, resourceVersion } } });
    await failIfRefused(unlessRefused(removal, 'NotFound'), `ClusterRoleBinding ${printable(name)}`);
    removed.push(name);
    print(`removed ClusterRoleBinding ${printable(name)}\n`);
  }
  return removed;
}
