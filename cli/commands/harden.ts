/**
 * `countersign cluster harden`: takes away the ways to a node's certificate that lead around attestation. kubeadm makes two
 * of them: anybody with a bootstrap token, and any node, has requests approved by kube-controller-manager unseen.
 *
 * It says which cluster this is, shows what it saw and how, changes nothing without --yes, and nothing at all unless a relay
 * certainly takes over.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { defaultTokenGroup } from '../../core/kubernetes/bootstrap-token.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { addClusterAccess, announce, withObjects } from '../cluster/cluster-objects.ts';
import type { ClusterAccessFlags, Whereabouts } from '../cluster/cluster-objects.ts';
import { viewControllerManager } from '../cluster/controller-manager.ts';
import type { ControllerManagerView, SeenController } from '../cluster/controller-manager.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import { closingText, notSeen, openWays, planText, viewText } from '../cluster/harden-view.ts';
import type { Binding, HardenView } from '../cluster/harden-view.ts';
import type { Io } from '../runtime/io.ts';
import { expected, listOf, mayThey, objectOf, textOf } from '../cluster/object-answers.ts';
import type { Cluster } from '../cluster/object-answers.ts';
import { commaList, json, outputOption } from '../output/output.ts';
import { canTakeOver, findRelays, relayName, relayText } from '../cluster/relay-view.ts';
import { probeSigner } from '../cluster/signer-probe.ts';

interface HardenFlags extends ClusterAccessFlags {
  readonly yes?: boolean;
  readonly check?: boolean;
  readonly probe?: boolean;
  readonly signerName: readonly string[];
  readonly output: string;
}

/** What the in-tree approver asks before it approves by itself (pkg/controller/certificates/approver/sarapprove.go). */
const bypasses = [
  {
    role: 'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
    subresource: 'nodeclient',
    who: {
      user: 'system:bootstrap:aaaaaa',
      groups: ['system:bootstrappers', defaultTokenGroup, 'system:authenticated'],
    },
    means: 'anybody with a bootstrap token becomes any node',
  },
  {
    role: 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
    subresource: 'selfnodeclient',
    who: { user: 'system:node:aaaaaa', groups: ['system:nodes', 'system:authenticated'] },
    means: 'whoever has a node’s certificate renews it on any machine',
  },
] as const;
type Bypass = (typeof bypasses)[number];

const bindingsPath = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';

export function clusterCommand(io: Io, finish: (code: ExitCode) => void): Command {
  const cluster = new Command('cluster').description(
    'look at, and close, what a cluster leaves open beside the signer',
  );
  addClusterAccess(cluster.command('harden'))
    .description(
      'find what gives nodes certificates without a proof: kube-controller-manager’s signer and approver, and the bindings\n' +
        'that make it approve. Shows them; --yes removes the bindings. Exit code with --check: 1 there is something, 5 not all was seen.',
    )
    .option('--yes', 'remove the bindings')
    .option(
      '--check',
      'change nothing; exit code 1 when something was found, 5 when something was not seen: for a job after every upgrade',
    )
    .option(
      '--probe',
      'also ask: makes, approves and deletes a request that every signer must refuse, and sees who does',
    )
    .addOption(
      new Option(
        '--signer-name <list>',
        'signers of which the relay must be able to approve and sign, before --yes removes',
      )
        .argParser(commaList)
        .default(['kubernetes.io/kube-apiserver-client-kubelet'], 'kubernetes.io/kube-apiserver-client-kubelet'),
    )
    .addOption(outputOption('text', 'json'))
    .addHelpText(
      'after',
      `
--yes removes nothing unless a Deployment of the relay is Available and its ServiceAccount may approve and sign in their place.

kubeadm upgrade makes the bindings anew: run --check after it.

Examples:
  countersign cluster harden
  countersign cluster harden --yes
  countersign cluster harden --check -o json
  countersign cluster harden --probe --check  # where kube-controller-manager’s flags cannot be seen`,
    )
    .action(async (flags: HardenFlags) => finish(await harden(flags, io)));
  return cluster;
}

async function harden(flags: HardenFlags, io: Io): Promise<ExitCode> {
  if (flags.yes === true && flags.check === true)
    throw new CommandFailure(exitCodes.usage, '--check changes nothing, --yes does: one of them');
  return withObjects(flags, io, async (cluster) => {
    const whereabouts = await announce(cluster, io);
    const probed =
      flags.probe === true ? await probeSigner(cluster, Buffer.from(io.randomBytes(4)).toString('hex')) : undefined;
    const lookAgain = async () => ({ ...whereabouts, ...(await look(cluster, probed, flags.signerName)) });
    const before = await lookAgain();
    const asJson = flags.output === 'json';
    if (flags.yes !== true) {
      io.out(asJson ? json(withFindings(before)) : viewText(before));
      if (flags.check === true) return verdict(before);
      if (!asJson) io.out(planText(before));
      return exitCodes.ok;
    }
    if (!asJson) io.out(viewText(before));
    if (before.bindings.length > 0) mustBeReplaceable(before, flags.signerName);
    const removed = await removeBindings(cluster, before.bindings, (text) => (asJson ? undefined : io.out(text)));
    let after = await lookAgain();
    // The authorizer of an API server learns of a removed binding by a watch: a moment later it may still say yes.
    for (let tries = 0; removed.length > 0 && tries < 10 && openWays(after).length > 0; tries += 1) {
      await sleep(300);
      after = await lookAgain();
    }
    const open = openWays(after);
    io.out(asJson ? json({ ...withFindings(after), removed }) : closingText(after));
    return open.length === 0 ? exitCodes.ok : exitCodes.refused;
  });
}

function withFindings(view: HardenView): object {
  return { ...view, open: openWays(view), notSeen: notSeen(view) };
}

/** A gate: what was not seen is no pass. */
function verdict(view: HardenView): ExitCode {
  if (openWays(view).length > 0) return exitCodes.refused;
  const unseen = notSeen(view);
  if (unseen.length === 0) return exitCodes.ok;
  throw new CommandFailure(
    exitCodes.temporary,
    `nothing open was seen, but this is no pass, since not everything could be seen: ${unseen.join('; ')}`,
    '--probe asks who signs where the flags of kube-controller-manager cannot be read; rights to look are in docs/join.md',
  );
}

/** Ends the command unless a relay certainly does what the bindings made kube-controller-manager do. */
function mustBeReplaceable({ relays, bindings }: HardenView, signerNames: readonly string[]): void {
  if (relays.some(canTakeOver)) return;
  const nothing = 'nothing was changed: without these bindings no node would get or renew a certificate';
  const names = bindings.map(({ name }) => printable(name)).join(' ');
  const hint = `docs/deploy.md, “Install the relay”, with approval: approve for ${signerNames.join(', ')}; --signer-name names other signers of the nodes; with an approver of your own: kubectl delete clusterrolebinding ${names}`;
  if (relays.length === 0)
    throw new CommandFailure(exitCodes.refused, `no relay was found by the labels of the chart; ${nothing}`, hint);
  const why = relays.map((relay) => `${relayName(relay)}: ${relayText(relay)}`).join('. ');
  // Of a relay that lacks nothing else, only its rights are not known: another login may see them.
  const unseen = relays.some(({ ready, available, approves }) => ready > 0 && available && approves === undefined);
  throw new CommandFailure(
    unseen ? exitCodes.temporary : exitCodes.refused,
    `no relay is known to approve in their place (${why}); ${nothing}`,
    hint,
  );
}

/** Only as they were shown: what another user changed meanwhile was not agreed to. */
async function removeBindings(
  { api, signal }: Cluster,
  bindings: readonly Binding[],
  say: (text: string) => void,
): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const { name, uid, resourceVersion } of bindings) {
    const gone = await api.remove(`${bindingsPath}/${encodeURIComponent(name)}`, { uid, resourceVersion }, signal);
    if (gone.ok || gone.why === 'NotFound') removed.push(name);
    else expected(gone, `ClusterRoleBinding ${printable(name)}`);
    say(`removed ClusterRoleBinding ${printable(name)}\n`);
  }
  return removed;
}

async function look(
  cluster: Cluster,
  probed: SeenController | undefined,
  signerNames: readonly string[],
): Promise<Omit<HardenView, keyof Whereabouts>> {
  const rights = [];
  for (const { who, subresource } of bypasses) {
    const resource = {
      group: 'certificates.k8s.io',
      resource: 'certificatesigningrequests',
      verb: 'create',
      subresource,
    };
    const may = `create certificatesigningrequests/${subresource}`;
    // kube-controller-manager asks with version *; RBAC does not look at it.
    rights.push({ user: who.user, may, answer: await mayThey(cluster, who, { ...resource, version: '*' }) });
  }
  return {
    controllerManager: withProbe(await viewControllerManager(cluster), probed),
    bindings: await bypassBindings(cluster),
    rights,
    relays: await findRelays(cluster, signerNames),
  };
}

/** Flags that were seen count for all replicas, a probe for whoever answered: either one's yes is a yes. */
function withProbe(view: ControllerManagerView, probed: SeenController | undefined): ControllerManagerView {
  if (probed === undefined) return view;
  const { state, seen } = view.csrsigning;
  const both = state === 'on' || probed.state === 'not seen' ? state : probed.state;
  return { ...view, csrsigning: { state: both, seen: [...seen, ...probed.seen] } };
}

/** By what they give, not by their names: Kubernetes' own documentation has people make the same under other names. */
async function bypassBindings({ api, signal }: Cluster) {
  const all = expected(await api.list(bindingsPath, {}, signal), 'ClusterRoleBindings');
  return all.flatMap((binding) => {
    const role = textOf(objectOf(binding['roleRef'])['name']);
    const bypass: Bypass | undefined = bypasses.find((known) => known.role === role);
    const subjects = listOf(binding['subjects']).map(subjectText);
    if (bypass === undefined || subjects.length === 0) return [];
    const { name, uid, resourceVersion } = objectOf(binding['metadata']);
    return [
      {
        name: textOf(name),
        uid: textOf(uid),
        resourceVersion: textOf(resourceVersion),
        role,
        subjects,
        means: bypass.means,
      },
    ];
  });
}

function subjectText({ kind, namespace, name }: JsonObject): string {
  return [kind, namespace, name]
    .map(textOf)
    .filter((word) => word !== '')
    .map(printable)
    .join(' ');
}
