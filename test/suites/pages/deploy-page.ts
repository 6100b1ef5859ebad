/**
 * The files of docs/deploy.md, and its relay where no node starts the pod: the chart is installed, and the relay runs as a process
 * with the pod's account.
 */
import { join } from 'node:path';
import type { ControlPlane } from '../../harness/kubernetes/control-plane.ts';
import { writeTokenKubeconfig } from '../../harness/stack/stack.ts';
import { readPage } from './commands.ts';

const [namespace, account] = ['countersign-system', 'countersign-watch-relay'];

/** The command of the pages that waits for the pod, and what stands for it here. */
export const rollout = `kubectl -n ${namespace} rollout status deployment/${account}`;
export const noNode = ': # no node starts the pod, so the rollout would never end';

/** countersign.yaml as docs/deploy.md has it. */
export function deployConfiguration(): string {
  const [, configuration] = /```yaml\n(version: 1\n[\s\S]*?)```/.exec(readPage('docs/deploy.md')) ?? [];
  if (configuration === undefined) throw new Error('docs/deploy.md has no countersign.yaml');
  return configuration;
}

const image = { REGISTRY: 'registry.example.com', 'sha256:…': `sha256:${'0'.repeat(64)}` };

/** relay-values.yaml as docs/deploy.md shows it, with an image. */
export function relayValues(): string {
  const [, block = ''] = /```yaml\n(# From the outputs of stack[\s\S]*?)```/.exec(readPage('docs/deploy.md')) ?? [];
  const text = Object.entries(image).reduce((done, [from, to]) => done.replaceAll(from, to), block);
  if (block === '' || /[<>…]/.test(text)) throw new Error(`not filled in: ${text}`);
  return text;
}

/** What the command of the page, which writes that file, is given in its place. */
export const imageOfThePage: Readonly<Record<string, string>> = image;

/** With a token of the service account that the chart made. */
export async function relayKubeconfig(plane: ControlPlane): Promise<string> {
  const token = await plane.kubectl(['create', 'token', account, '-n', namespace, '--duration=1h']);
  return writeTokenKubeconfig(plane, token.trim(), join(plane.dir, 'relay-of-the-page.kubeconfig'));
}
