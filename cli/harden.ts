/**
 * `countersign cluster harden`: takes away the ways to a node's certificate that lead around attestation. kubeadm makes two
 * of them: anybody with a bootstrap token, and any node, has requests approved by kube-controller-manager unseen.
 *
 * It shows what it saw and how, changes nothing without --yes, and nothing at all while no relay could take over.
 */
import { Command } from 'commander';
import { defaultTokenGroup } from '../core/bootstrap-token.ts';
import type { JsonObject } from '../core/ports.ts';
import { printable } from '../core/quoted.ts';
import { addClusterAccess, withObjects } from './cluster-objects.ts';
import type { ClusterAccessFlags } from './cluster-objects.ts';
import { viewControllerManager } from './controller-manager.ts';
import type { ControllerManagerView, SeenController } from './controller-manager.ts';
import { CommandFailure, exitCodes } from './exit.ts';
import type { ExitCode } from './exit.ts';
import type { Io } from './io.ts';
import { expected, listOf, mayThey, objectOf, textOf } from './object-answers.ts';
import type { Cluster } from './object-answers.ts';
import { json, outputOption } from './output.ts';
import { probeSigner } from './signer-probe.ts';

interface HardenFlags extends ClusterAccessFlags {
  readonly yes?: boolean;
  readonly check?: boolean;
  readonly probe?: boolean;
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

interface Binding {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly role: string;
  readonly subjects: readonly string[];
}

interface Relay {
  readonly name: string;
  readonly namespace: string;
  readonly ready: number;
  /** May it approve requests of kubelets' client certificates? undefined: could not be asked. */
  readonly approves: boolean | undefined;
}

export interface HardenView {
  readonly controllerManager: ControllerManagerView;
  readonly bindings: readonly (Binding & { readonly means: string })[];
  /** Rights that lead around attestation, whatever binding gives them. */
  readonly rights: readonly { readonly user: string; readonly may: string; readonly answer: boolean | undefined }[];
  readonly relays: readonly Relay[];
}

const bindingsPath = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';

export function clusterCommand(io: Io, finish: (code: ExitCode) => void): Command {
  const cluster = new Command('cluster').description(
    'look at, and close, what a cluster leaves open beside the signer',
  );
  addClusterAccess(cluster.command('harden'))
    .description(
      'find what gives nodes certificates without a proof: kube-controller-manager’s signer and approver, and the bindings\n' +
        'that make it approve. Shows them; --yes removes the bindings. Exit code 1 with --check: there is something.',
    )
    .option('--yes', 'remove the bindings')
    .option('--check', 'change nothing; exit code 1 when something was found, for a job that runs after every upgrade')
    .option(
      '--probe',
      'also ask: makes, approves and deletes a request that every signer must refuse, and sees who does',
    )
    .addOption(outputOption('text', 'json'))
    .addHelpText(
      'after',
      `
kubeadm upgrade makes the bindings anew: run --check after it.

Examples:
  countersign cluster harden
  countersign cluster harden --yes
  countersign cluster harden --check -o json
  countersign cluster harden --probe          # where kube-controller-manager’s flags cannot be seen`,
    )
    .action(async (flags: HardenFlags) => finish(await harden(flags, io)));
  return cluster;
}

async function harden(flags: HardenFlags, io: Io): Promise<ExitCode> {
  if (flags.yes === true && flags.check === true)
    throw new CommandFailure(exitCodes.usage, '--check changes nothing, --yes does: one of them');
  return withObjects(flags, io, async (cluster) => {
    const probed =
      flags.probe === true ? await probeSigner(cluster, Buffer.from(io.randomBytes(4)).toString('hex')) : undefined;
    const before = await look(cluster, probed);
    if (flags.yes !== true) {
      io.out(flags.output === 'json' ? json({ ...before, open: openWays(before) }) : viewText(before));
      if (flags.check === true) return openWays(before).length === 0 ? exitCodes.ok : exitCodes.refused;
      if (flags.output !== 'json') io.out(planText(before));
      return exitCodes.ok;
    }
    if (flags.output !== 'json') io.out(viewText(before));
    if (!before.relays.some(({ ready }) => ready > 0))
      throw new CommandFailure(
        exitCodes.refused,
        'no relay is Ready: without one, and without these bindings, no node gets or renews a certificate; nothing was changed',
        'docs/deploy.md, “Install the relay”',
      );
    const removed: string[] = [];
    for (const { name, uid, resourceVersion } of before.bindings) {
      // Only as it was shown: what somebody changed meanwhile was not agreed to.
      const gone = await cluster.api.remove(
        `${bindingsPath}/${encodeURIComponent(name)}`,
        { uid, resourceVersion },
        cluster.signal,
      );
      if (gone.ok || gone.why === 'NotFound') removed.push(name);
      else expected(gone, `ClusterRoleBinding ${printable(name)}`);
      if (flags.output !== 'json') io.out(`removed ClusterRoleBinding ${printable(name)}\n`);
    }
    const after = await look(cluster, probed);
    const open = openWays(after);
    if (flags.output === 'json') io.out(json({ ...after, removed, open }));
    else io.out(closingText(open));
    return open.length === 0 ? exitCodes.ok : exitCodes.refused;
  });
}

async function look(cluster: Cluster, probed: SeenController | undefined): Promise<HardenView> {
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
    relays: await relaysOf(cluster),
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

async function relaysOf(cluster: Cluster): Promise<readonly Relay[]> {
  const { api, signal } = cluster;
  const labelSelector = 'app.kubernetes.io/part-of=countersign,app.kubernetes.io/name=countersign-watch-relay';
  const found = expected(await api.list('/apis/apps/v1/deployments', { labelSelector }, signal), 'Deployments');
  const relays: Relay[] = [];
  for (const deployment of found) {
    const { name, namespace } = objectOf(deployment['metadata']);
    const template = objectOf(objectOf(objectOf(deployment['spec'])['template'])['spec']);
    const account = `system:serviceaccount:${textOf(namespace)}:${textOf(template['serviceAccountName'])}`;
    const approves = await mayThey(
      cluster,
      { user: account, groups: ['system:serviceaccounts', 'system:authenticated'] },
      {
        group: 'certificates.k8s.io',
        resource: 'signers',
        verb: 'approve',
        name: 'kubernetes.io/kube-apiserver-client-kubelet',
      },
    );
    const ready = objectOf(deployment['status'])['readyReplicas'];
    relays.push({ name: textOf(name), namespace: textOf(namespace), ready: Number(ready ?? 0), approves });
  }
  return relays;
}

/** One sentence for each way that is seen open. What is not seen is no finding: the text says that it was not seen. */
export function openWays({ controllerManager, bindings, rights }: HardenView): readonly string[] {
  const { csrsigning, csrapproving } = controllerManager;
  const ways = bindings.map(
    ({ name, subjects, means }) => `ClusterRoleBinding ${printable(name)} (${subjects.join(', ')}): ${means}`,
  );
  // Only where no binding of the list explains it: a wildcard role, or a binding to a role of another name.
  if (bindings.length === 0)
    for (const { user, may, answer } of rights)
      if (answer === true) ways.push(`${user} may ${may}, by a role of another name: kubectl auth can-i shows which`);
  if (csrsigning.state === 'on')
    ways.push('csrsigning is on: kube-controller-manager signs what is approved, and need not ask anybody');
  // With nobody who has those rights, the approver finds nothing to approve.
  if (csrapproving.state !== 'off' && csrsigning.state === 'on' && ways.length > 1)
    ways.push('csrapproving is on, or not seen: with the above, certificates are made without anybody’s word');
  return ways;
}

function viewText(view: HardenView): string {
  const { csrsigning, csrapproving, afterUpgrade } = view.controllerManager;
  const controller = (name: string, { state, seen }: SeenController): string =>
    `${name.padEnd(24)}${state.padEnd(10)}${seen.join('; ')}\n`;
  const relays = view.relays.map(({ namespace, name, ready, approves }) => {
    const may =
      approves === true ? 'may approve kubelets’ requests' : 'may NOT approve kubelets’ requests: somebody must';
    return `relay                   ${`${ready} ready`.padEnd(10)}${namespace}/${name}, ${approves === undefined ? 'its rights were not seen' : may}\n`;
  });
  const open = openWays(view);
  return [
    controller('csrsigning', csrsigning),
    controller('csrapproving', csrapproving),
    controller('csrsigning, upgraded', afterUpgrade),
    ...(relays.length === 0 ? ['relay                   none found by the labels of the chart\n'] : relays),
    ...view.rights
      .filter(({ answer }) => answer === undefined)
      .map(({ user, may }) => `not seen: whether ${user} may ${may} (no right to SubjectAccessReviews)\n`),
    '\n',
    open.length === 0 ? 'Nothing that leads around attestation was seen.\n' : 'Open:\n',
    ...open.map((way) => `  ✗ ${way}\n`),
  ].join('');
}

function planText({ bindings, controllerManager }: HardenView): string {
  const lines = [
    ...(bindings.length === 0 ? [] : [`\n--yes removes: ${bindings.map(({ name }) => printable(name)).join(', ')}\n`]),
    ...(controllerManager.csrsigning.state === 'on'
      ? ['csrsigning is switched off in kube-controller-manager’s own flags: docs/kubeadm.md, step 3\n']
      : []),
    ...(controllerManager.csrsigning.state === 'not seen'
      ? ['kube-controller-manager was not seen: --probe asks who would sign\n']
      : []),
  ];
  return lines.join('');
}

function closingText(open: readonly string[]): string {
  const still = open.length === 0 ? '' : `\nStill open:\n${open.map((way) => `  ✗ ${way}\n`).join('')}`;
  return `${still}\nkubeadm upgrade makes these bindings anew: run countersign cluster harden --check after it.\n`;
}
