/** Reads the ConfigMap kube-public/cluster-info, and waits for a token's signature in it. */
import { objectOf, parsedObject } from '../../core/encoding/json-object.ts';
import { quoted } from '../../core/outcome/printable-text.ts';
import { success } from '../../core/outcome/result.ts';
import { refuse } from './discovery-result.ts';
import type { Discovery } from './discovery-result.ts';
import { callServer, maxAnswerBytes } from './server-calls.ts';
import type { Server } from './server-calls.ts';

/** More than a kubeconfig with one server and a few CAs needs. */
const maxKubeconfigCharacters = 65_536;
const clusterInfoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info';

interface ClusterInfo {
  readonly kubeconfig: string;
  readonly signature: string | undefined;
}

/** With `tokenId` it waits a while for that token's signature, then returns without one. */
export async function readClusterInfo(server: Server, tokenId?: string): Promise<Discovery<ClusterInfo>> {
  const { url, dependencies } = server;
  const { patience } = dependencies;
  const began = dependencies.monotonic();
  for (let logged = false; ; logged = true) {
    const read = await callServer(server, { method: 'GET', path: clusterInfoPath });
    if (!read.ok) return read;
    const { status, text } = read.value;
    if (text === undefined)
      return refuse('ClusterInfoMalformed', `the answer of ${url} is larger than ${maxAnswerBytes} bytes`);
    const data = objectOf(parsedObject(text ?? '')?.['data']);
    const { kubeconfig } = data;
    if (typeof kubeconfig === 'string' && kubeconfig.length > maxKubeconfigCharacters)
      return refuse(
        'ClusterInfoMalformed',
        `the kubeconfig in the cluster-info ConfigMap is longer than ${maxKubeconfigCharacters} characters`,
      );
    const given = data[`jws-kubeconfig-${tokenId ?? ''}`];
    const signature = typeof given === 'string' && given !== '' ? given : undefined;
    const found = status === 200 && typeof kubeconfig === 'string' && kubeconfig !== '';
    if (found && (tokenId === undefined || signature !== undefined)) return success({ kubeconfig, signature });
    // kube-controller-manager may be about to write the ConfigMap, or this token's signature into it.
    if (dependencies.monotonic() - began >= patience.signatureMilliseconds)
      return found ? success({ kubeconfig, signature }) : notSetUp(status);
    if (!logged)
      dependencies.log(
        found
          ? `waiting for the cluster-info ConfigMap to receive a JWS signature for token id ${quoted(tokenId ?? '')}`
          : `waiting for the cluster-info ConfigMap (HTTP ${status})`,
      );
    await dependencies.sleep(patience.intervalMilliseconds);
  }
}

function notSetUp(status: number): Discovery<never> {
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
