/** The findings of `countersign cluster harden`, and their text. */
import { printable } from '../../core/outcome/printable-text.ts';
import type { ClusterLogin } from './cluster-access.ts';
import type { ControllerManagerView, SeenController } from './controller-manager.ts';
import { relayName, relayText } from './relay-view.ts';
import type { Relay } from './relay-view.ts';

export interface Binding {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly role: string;
  readonly subjects: readonly string[];
}

export interface HardenView extends ClusterLogin {
  readonly controllerManager: ControllerManagerView;
  readonly bindings: readonly (Binding & { readonly means: string })[];
  /** Rights that bypass attestation, by any binding. */
  readonly rights: readonly { readonly user: string; readonly may: string; readonly answer: boolean | undefined }[];
  readonly relays: readonly Relay[];
}

/** One sentence for each open way around attestation. notSeen() lists what could not be seen. */
export function openBypasses({ controllerManager, bindings, rights }: HardenView): readonly string[] {
  const { csrsigning, csrapproving } = controllerManager;
  const ways = bindings.map(
    ({ name, subjects, means }) => `ClusterRoleBinding ${printable(name)} (${subjects.join(', ')}): ${means}`,
  );
  // If no listed binding explains the right, a wildcard role or a role of another name grants it.
  if (bindings.length === 0)
    for (const { user, may, answer } of rights)
      if (answer === true) ways.push(`${user} may ${may}, by a role of another name: kubectl auth can-i shows which`);
  if (csrsigning.state === 'on')
    ways.push('csrsigning is on: kube-controller-manager signs approved requests without attestation');
  // The in-tree approver approves only requests of users that have one of those rights.
  if (csrapproving.state !== 'off' && csrsigning.state === 'on' && ways.length > 1)
    ways.push(
      'csrapproving is on, or not seen: together with the above, certificates are issued without your approval',
    );
  return ways;
}

/** One sentence for each fact that matters and could not be seen. */
export function notSeen({ controllerManager, rights }: HardenView): readonly string[] {
  const { csrsigning } = controllerManager;
  return [
    ...(csrsigning.state === 'not seen' ? [`csrsigning was not seen (${csrsigning.seen.join(', ')})`] : []),
    ...rights
      .filter(({ answer }) => answer === undefined)
      .map(({ user, may }) => `whether ${user} may ${may} (no right to SubjectAccessReviews)`),
  ];
}

export function viewText(view: HardenView): string {
  const { csrsigning, csrapproving, afterUpgrade } = view.controllerManager;
  const controller = (name: string, { state, seen }: SeenController): string =>
    `${name.padEnd(24)}${state.padEnd(10)}${seen.join('; ')}\n`;
  const relays = view.relays.map(
    (relay) => `relay                   ${`${relay.ready} ready`.padEnd(10)}${relayName(relay)}: ${relayText(relay)}\n`,
  );
  return [
    controller('csrsigning', csrsigning),
    controller('csrapproving', csrapproving),
    controller('csrsigning, upgraded', afterUpgrade),
    ...(relays.length === 0 ? ['relay                   none found by the labels of the chart\n'] : relays),
    '\n',
    findingsText(view, 'Open'),
  ].join('');
}

function findingsText(view: HardenView, heading: string): string {
  const [open, unseen] = [openBypasses(view), notSeen(view)];
  const list = (title: string, mark: string, lines: readonly string[]): string =>
    lines.length === 0 ? '' : [`${title}:\n`, ...lines.map((line) => `  ${mark} ${line}\n`)].join('');
  const none = open.length + unseen.length === 0 ? 'Nothing that bypasses attestation was found.\n' : '';
  return `${none}${list(heading, '✗', open)}${list('Not seen, so it may be open or closed', '?', unseen)}`;
}

export function planText({ bindings, controllerManager }: HardenView): string {
  const { state } = controllerManager.csrsigning;
  const removed = bindings.map(({ name }) => printable(name)).join(', ');
  return [
    removed === '' ? '' : `\n--yes removes: ${removed}\n`,
    state === 'on'
      ? 'to switch csrsigning off, change the flags of kube-controller-manager: docs/kubeadm.md, step 3\n'
      : '',
    state === 'not seen' ? 'kube-controller-manager was not seen: --probe finds out whether it signs\n' : '',
  ].join('');
}

export function closingText(view: HardenView): string {
  return `\n${findingsText(view, 'Still open')}\nkubeadm upgrade creates these bindings again: run countersign cluster harden --check after it.\n`;
}
