/** Reads the ConfigMap kube-public/cluster-info, and waits for a token's signature in it. */
import { quoted } from '../../core/outcome/printable-text.ts';
import { refuse } from './discovery-result.ts';
import type { DiscoveryFailure } from './discovery-result.ts';
import { asObject, callServer, jsonObject, maxAnswerBytes } from './server-calls.ts';
import type { Server } from './server-calls.ts';

/** More than a kubeconfig with one server and a few CAs needs. */
const maxKubeconfigCharacters = 65_536;
const clusterInfoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info';

export interface ClusterInfo {
  readonly ok: true;
  readonly kubeconfig: string;
  readonly signature: string | undefined;
}

/** With `tokenId` it waits a while for that token's signature, then returns without one. */
export async function readClusterInfo(server: Server, tokenId?: string): Promise<ClusterInfo | DiscoveryFailure> {
  const { url, dependencies, patience } = server;
  const began = dependencies.monotonic();
  for (let logged = false; ; logged = true) {
    const read = await callServer(server, { method: 'GET', path: clusterInfoPath });
    if (!read.ok) return read;
    const { status, text } = read.answer;
    if (text === undefined)
      return refuse('ClusterInfoMalformed', `the answer of ${url} is larger than ${maxAnswerBytes} bytes`);
    const data = asObject(jsonObject(text)?.['data']);
    const kubeconfig = data?.['kubeconfig'];
    if (typeof kubeconfig === 'string' && kubeconfig.length > maxKubeconfigCharacters)
      return refuse(
        'ClusterInfoMalformed',
        `the kubeconfig in the cluster-info ConfigMap is longer than ${maxKubeconfigCharacters} characters`,
      );
    const signature = tokenId === undefined ? undefined : data?.[`jws-kubeconfig-${tokenId}`];
    const found = status === 200 && typeof kubeconfig === 'string' && kubeconfig !== '';
    if (found && (tokenId === undefined || (typeof signature === 'string' && signature !== '')))
      return { ok: true, kubeconfig, signature: typeof signature === 'string' ? signature : undefined };
    // kube-controller-manager may be about to write the ConfigMap, or this token's signature into it.
    if (dependencies.monotonic() - began >= patience.signatureMilliseconds)
      return found ? { ok: true, kubeconfig, signature: undefined } : notSetUp(status);
    if (!logged)
      dependencies.log(
        found
          ? `waiting for the cluster-info ConfigMap to receive a JWS signature for token id ${quoted(tokenId ?? '')}`
          : `waiting for the cluster-info ConfigMap (HTTP ${status})`,
      );
    await dependencies.sleep(patience.intervalMilliseconds);
  }
}

function notSetUp(status: number): DiscoveryFailure {
  const problem =
    status === 200
      ? 'there is no kubeconfig key in the cluster-info ConfigMap'
      : `failed to request the cluster-info ConfigMap: HTTP ${status}`;
  const hints: Readonly<Record<number, string>> = {
    200: 'kubeadm init phase bootstrap-token writes the ConfigMap; or use --discovery-file',
    404: 'kubeadm init phase bootstrap-token creates the ConfigMap; or use --discovery-file',
  };
  return refuse(
    'NotSetUp',
    `${problem}. This API Server isn't set up for token bootstrapping, can't connect`,
    hints[status] ??
      'anonymous users must be able to read it (Role kubeadm:bootstrap-signer-clusterinfo in kube-public); or use --discovery-file',
  );
}
