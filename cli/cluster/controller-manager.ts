/**
 * Whether kube-controller-manager still approves and signs requests, as far as the API server shows it. On kubeadm clusters
 * the mirror pods of its static pods show its flags. Elsewhere the answer is "not seen", which means neither on nor off.
 */
import type { ClusterClients } from '../../adapters/kubernetes/clients.ts';
import { ApiRefused } from '../../adapters/kubernetes/refused.ts';
import { readBoundedDocument } from '../../core/encoding/bounded-document.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { allPages } from './object-answers.ts';

export interface SeenController {
  readonly state: 'on' | 'off' | 'not seen';
  /** The source of the state, as text. */
  readonly seen: readonly string[];
}

export interface ControllerManagerView {
  readonly csrsigning: SeenController;
  readonly csrapproving: SeenController;
  /** The state of csrsigning after the next `kubeadm upgrade`; `not seen` without a kubeadm-config. */
  readonly afterUpgrade: SeenController;
}

const names = {
  csrsigning: ['csrsigning', 'certificatesigningrequest-signing-controller'],
  csrapproving: ['csrapproving', 'certificatesigningrequest-approving-controller'],
} as const;
type ControllerName = keyof typeof names;

/** Like IsControllerEnabled of kube-controller-manager: the first entry for the controller decides; without such an entry, `*`. */
export function controllerIsOn(flag: string | undefined, controller: ControllerName): boolean {
  const known: readonly string[] = names[controller];
  const words = (flag ?? '*').split(',').map((word) => word.trim());
  const first = words.find((word) => known.includes(word.replace(/^-/, '')));
  return first === undefined ? words.includes('*') : !first.startsWith('-');
}

/** The signing controller does not start without a key. */
function canSign(args: ReadonlyMap<string, string>): boolean {
  return [...args].some(([flag, value]) => /^cluster-signing-.*cert-file$/.test(flag) && value !== '');
}

/** Flags in `--name=value` and `--name value` form. The last value of a repeated flag counts, as in Go. */
export function flagsOf(words: readonly string[]): ReadonlyMap<string, string> {
  const flags = new Map<string, string>();
  for (const [index, word] of words.entries()) {
    const [, name, , value] = /^--([a-z0-9-]+)(=(.*))?$/s.exec(word) ?? [];
    if (name !== undefined) flags.set(name, value ?? words[index + 1] ?? '');
  }
  return flags;
}

export async function viewControllerManager(cluster: ClusterClients): Promise<ControllerManagerView> {
  const pods = await controllerManagerPods(cluster);
  const stateOf = (controller: ControllerName): SeenController => {
    if (pods.length === 0)
      return { state: 'not seen', seen: ['no Pod in kube-system has component=kube-controller-manager or its name'] };
    const each = pods.map(({ name, flags }) => {
      const given = flags.get('controllers');
      const lacksKey = controller === 'csrsigning' && !canSign(flags);
      const why = given === undefined ? 'no --controllers' : `--controllers=${printable(given)}`;
      return {
        on: controllerIsOn(given, controller) && !lacksKey,
        text: `${printable(name)}: ${lacksKey ? 'no --cluster-signing-cert-file' : why}`,
      };
    });
    // Each replica may become the leader.
    return { state: each.some(({ on }) => on) ? 'on' : 'off', seen: each.map(({ text }) => text) };
  };
  const [csrsigning, csrapproving] = [stateOf('csrsigning'), stateOf('csrapproving')];
  return { csrsigning, csrapproving, afterUpgrade: await afterUpgrade(cluster) };
}

async function controllerManagerPods({ core }: ClusterClients) {
  const namespace = 'kube-system';
  const pods = await allPages((page) => core.listNamespacedPod({ namespace, ...page }), 'pods of kube-system');
  return pods.flatMap(({ metadata, spec }) => {
    const name = metadata?.name ?? '';
    const labelled = metadata?.labels?.['component'] === 'kube-controller-manager';
    if (!labelled && !name.startsWith('kube-controller-manager-')) return [];
    const words = (spec?.containers ?? []).flatMap(({ command = [], args = [] }) => [...command, ...args]);
    return [{ name, flags: flagsOf(words) }];
  });
}

/** The part of kubeadm's ClusterConfiguration that matters here. */
interface KubeadmConfiguration {
  readonly controllerManager?: {
    /** v1beta4 has a list of names and values, v1beta3 has a map. */
    readonly extraArgs?: { name?: unknown; value?: unknown }[] | { controllers?: unknown };
  } | null;
}

async function afterUpgrade({ core }: ClusterClients): Promise<SeenController> {
  const unseen = (why: string): SeenController => ({ state: 'not seen', seen: [`ConfigMap kubeadm-config: ${why}`] });
  let text: string;
  try {
    const found = await core.readNamespacedConfigMap({ namespace: 'kube-system', name: 'kubeadm-config' });
    text = found.data?.['ClusterConfiguration'] ?? '';
  } catch (error) {
    if (error instanceof ApiRefused) return unseen(error.message);
    throw error;
  }
  const document = readBoundedDocument(text);
  if (!document.ok) return unseen(document.problem);
  const extraArgs = (document.value as KubeadmConfiguration | null)?.controllerManager?.extraArgs;
  const given = Array.isArray(extraArgs)
    ? extraArgs.findLast((argument) => argument?.name === 'controllers')?.value
    : extraArgs?.controllers;
  const flag = typeof given === 'string' ? given : undefined;
  const seen = `ConfigMap kubeadm-config: ${flag === undefined ? 'no controllers in controllerManager.extraArgs' : `controllers: ${printable(flag)}`}`;
  // kubeadm's default is *,bootstrapsigner,tokencleaner.
  return { state: controllerIsOn(flag, 'csrsigning') ? 'on' : 'off', seen: [seen] };
}
