/**
 * What can be seen of kube-controller-manager from outside: whether it still approves and signs requests by itself. On
 * clusters made by kubeadm its static pods show their arguments as mirror pods; elsewhere nobody shows them, and then the
 * answer is "not seen", which is neither yes nor no.
 */
import { readBoundedDocument } from '../../core/encoding/bounded-document.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { expected, listOf, objectOf, textOf } from './object-answers.ts';
import type { Cluster } from './object-answers.ts';

export type ControllerState = 'on' | 'off' | 'not seen';

export interface SeenController {
  readonly state: ControllerState;
  /** What was looked at, for people. */
  readonly seen: readonly string[];
}

export interface ControllerManagerView {
  readonly csrsigning: SeenController;
  readonly csrapproving: SeenController;
  /** What the next `kubeadm upgrade` would make of csrsigning; `not seen` without a kubeadm-config. */
  readonly afterUpgrade: SeenController;
}

const names = {
  csrsigning: ['csrsigning', 'certificatesigningrequest-signing-controller'],
  csrapproving: ['csrapproving', 'certificatesigningrequest-approving-controller'],
} as const;
type ControllerName = keyof typeof names;

/** As kube-controller-manager reads --controllers: the first word about it decides, then `*` (IsControllerEnabled). */
export function controllerIsOn(flag: string | undefined, controller: ControllerName): boolean {
  const known: readonly string[] = names[controller];
  const words = (flag ?? '*').split(',').map((word) => word.trim());
  const first = words.find((word) => known.includes(word.replace(/^-/, '')));
  return first === undefined ? words.includes('*') : !first.startsWith('-');
}

/** Without any key to sign with the signing controller does not start. */
export function canSign(args: ReadonlyMap<string, string>): boolean {
  return [...args].some(([flag, value]) => /^cluster-signing-.*cert-file$/.test(flag) && value !== '');
}

/** Of command and args, which kubeadm and others use differently; the last of several flags counts, as in Go. */
export function flagsOf(words: readonly string[]): ReadonlyMap<string, string> {
  const flags = new Map<string, string>();
  for (const [index, word] of words.entries()) {
    const [, name, , value] = /^--([a-z0-9-]+)(=(.*))?$/s.exec(word) ?? [];
    if (name !== undefined) flags.set(name, value ?? words[index + 1] ?? '');
  }
  return flags;
}

export async function viewControllerManager(cluster: Cluster): Promise<ControllerManagerView> {
  const pods = await controllerManagerPods(cluster);
  const of = (controller: ControllerName): SeenController => {
    if (pods.length === 0)
      return { state: 'not seen', seen: ['no Pod in kube-system has component=kube-controller-manager or its name'] };
    const each = pods.map(({ name, flags }) => {
      const on =
        controllerIsOn(flags.get('controllers'), controller) && (controller !== 'csrsigning' || canSign(flags));
      const given = flags.get('controllers');
      const why =
        controller === 'csrsigning' && !canSign(flags)
          ? 'no --cluster-signing-cert-file'
          : given === undefined
            ? 'no --controllers'
            : `--controllers=${printable(given)}`;
      return { on, text: `${printable(name)}: ${why}` };
    });
    // Any of them may become the leader.
    return { state: each.some(({ on }) => on) ? 'on' : 'off', seen: each.map(({ text }) => text) };
  };
  return { csrsigning: of('csrsigning'), csrapproving: of('csrapproving'), afterUpgrade: await afterUpgrade(cluster) };
}

async function controllerManagerPods({ api, signal }: Cluster) {
  const pods = expected(await api.list('/api/v1/namespaces/kube-system/pods', {}, signal), 'pods of kube-system');
  return pods.flatMap((pod) => {
    const metadata = objectOf(pod['metadata']);
    const name = textOf(metadata['name']);
    const labelled = objectOf(metadata['labels'])['component'] === 'kube-controller-manager';
    if (!labelled && !name.startsWith('kube-controller-manager-')) return [];
    const containers = listOf(objectOf(pod['spec'])['containers']);
    const words = containers.flatMap(({ command, args }) =>
      [command, args].flatMap((list) => (Array.isArray(list) ? list.map(String) : [])),
    );
    return [{ name, flags: flagsOf(words) }];
  });
}

async function afterUpgrade({ api, signal }: Cluster): Promise<SeenController> {
  const answer = await api.get('/api/v1/namespaces/kube-system/configmaps/kubeadm-config', signal);
  if (!answer.ok) return { state: 'not seen', seen: [`ConfigMap kubeadm-config: ${answer.message}`] };
  const text = textOf(objectOf(answer.value['data'])['ClusterConfiguration']);
  const document = readBoundedDocument(text);
  if ('problem' in document) return { state: 'not seen', seen: [`ConfigMap kubeadm-config: ${document.problem}`] };
  const { extraArgs } = objectOf(objectOf(document.value)['controllerManager']);
  // v1beta4 has a list of names and values, v1beta3 had a map.
  const given = Array.isArray(extraArgs)
    ? listOf(extraArgs).findLast(({ name }) => name === 'controllers')?.['value']
    : objectOf(extraArgs)['controllers'];
  const flag = typeof given === 'string' ? given : undefined;
  const seen = `ConfigMap kubeadm-config: ${flag === undefined ? 'no controllers in controllerManager.extraArgs' : `controllers: ${printable(flag)}`}`;
  // kubeadm's own: *,bootstrapsigner,tokencleaner.
  return { state: controllerIsOn(flag, 'csrsigning') ? 'on' : 'off', seen: [seen] };
}
