/**
 * The checks before `countersign token create` prints a join command: the same as in `kubelet-authenticator join`. If join would
 * refuse the command, no token is created.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClusterClients } from '../../adapters/kubernetes/clients.ts';
import { createTransport } from '../../adapters/kubernetes/transport.ts';
import { caCertificates, readClusterEntry } from '../../core/kubernetes/cluster-info.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { ifFound } from './object-answers.ts';

const clusterInfoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
const tokenOnly = '-o token creates only a token, for kubelet-authenticator join --discovery-file';
const reachMilliseconds = 5_000;
const signatureMilliseconds = 10_000;

/**
 * The endpoint (`host:port`), the pins of its CAs, and warnings about what cannot be checked from here. Throws CommandFailure
 * if a machine could not find the cluster, or could not verify that it is the right cluster.
 */
export async function findJoinEndpoint(cluster: ClusterClients, server: string | undefined) {
  const { kubeconfig = '' } = await clusterInfo(cluster);
  if (kubeconfig === '')
    throw new CommandFailure(
      exitCodes.notFound,
      'no join command can be printed: there is no ConfigMap cluster-info in kube-public, which holds the address of the API server and its CA',
      `kubeadm init phase bootstrap-token creates it; ${tokenOnly}`,
    );
  const entry = readClusterEntry(kubeconfig);
  const authority = entry.ok ? caCertificates(entry.value.caPem) : entry;
  if (!entry.ok || !authority.ok)
    throw new CommandFailure(
      exitCodes.configuration,
      `no join command can be printed: ConfigMap cluster-info in kube-public is not usable (${authority.ok ? '' : authority.problem})`,
      `kubeadm init phase bootstrap-token creates it again; ${tokenOnly}`,
    );
  const certificates = authority.value;
  const endpoint = server ?? hostPort(entry.value.server);
  // With --server a loopback address is intended: everything runs on one machine.
  if (server === undefined && isThisMachine(endpoint))
    throw new CommandFailure(
      exitCodes.configuration,
      `no join command can be printed: the address of the API server in cluster-info is ${endpoint}, which on each machine is that machine itself`,
      '--server HOST:PORT names where machines find it',
    );
  const warnings = await tryEndpoint(endpoint, certificates.map(({ pem }) => pem).join(''));
  return { endpoint, pins: certificates.map(({ pin }) => pin), warnings };
}

/** The data of ConfigMap cluster-info; empty if it does not exist. */
async function clusterInfo({ core }: ClusterClients): Promise<Readonly<Record<string, string>>> {
  const name = { namespace: 'kube-public', name: 'cluster-info' };
  return (await ifFound(core.readNamespacedConfigMap(name), 'cluster-info'))?.data ?? {};
}

/** Reads cluster-info as join does: without a login, with the pinned CA. An unreachable address is a warning, since machines may reach it. */
async function tryEndpoint(endpoint: string, ca: string): Promise<string[]> {
  const transport = createTransport(new URL(`https://${endpoint}`), () => Promise.resolve({ ca }));
  try {
    const signal = AbortSignal.timeout(reachMilliseconds);
    const { status } = await transport.call({ method: 'GET', path: clusterInfoPath, signal, maxBytes: 1_572_864 });
    if (status === 200) return [];
    throw new CommandFailure(
      exitCodes.configuration,
      `no join command can be printed: https://${endpoint} does not show cluster-info to a machine without a login (HTTP ${status})`,
      `kubeadm init phase bootstrap-token grants that right (Role kubeadm:bootstrap-signer-clusterinfo); ${tokenOnly}`,
    );
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== undefined && tlsRefusals.test(code))
      throw new CommandFailure(
        exitCodes.configuration,
        `no join command can be printed: join would not trust https://${endpoint}, whose certificate has another issuer than the CA in cluster-info, or other names (${code})`,
        '--server HOST:PORT names another address of the API server',
      );
    return [
      `https://${endpoint} cannot be reached from here (${printable(code ?? message)}): make sure that machines can reach it`,
    ];
  } finally {
    transport.close();
  }
}

/** Node's error codes for a certificate that does not verify. */
const tlsRefusals =
  /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_|CRL_|ERROR_IN_CERT|INVALID_(CA|PURPOSE)|PATH_LENGTH|HOSTNAME_MISMATCH|ERR_TLS_CERT_)/;

/** Whether cluster-info has the signature that join checks. kube-controller-manager writes it shortly after the token is created. */
export async function waitForSignature(cluster: ClusterClients, tokenId: string): Promise<boolean> {
  const until = performance.now() + signatureMilliseconds;
  for (;;) {
    if ((await clusterInfo(cluster))[`jws-kubeconfig-${tokenId}`]) return true;
    if (performance.now() >= until) return false;
    await sleep(100);
  }
}

export function unsignedClusterInfo(tokenId: string): CommandFailure {
  return new CommandFailure(
    exitCodes.temporary,
    `kube-controller-manager did not sign cluster-info for token "${tokenId}" in ${signatureMilliseconds / 1_000} s, and join refuses a token without a signature; the token was removed again`,
    `does it run, with bootstrapsigner in --controllers? ${tokenOnly}`,
  );
}

export function isEndpoint(text: string): boolean {
  return /^([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}$/.test(text) && URL.canParse(`https://${text}`);
}

/** URL omits the default port. */
function hostPort(server: string): string {
  const { hostname, port } = new URL(server);
  return `${hostname}:${port === '' ? '443' : port}`;
}

/** Loopback and unspecified addresses. */
function isThisMachine(endpoint: string): boolean {
  const { hostname } = new URL(`https://${endpoint}`);
  return /^(127\.\d+\.\d+\.\d+|0\.0\.0\.0|localhost\.?|.*\.localhost\.?|\[::1?\]|\[::ffff:7f[0-9a-f:]+\])$/i.test(
    hostname,
  );
}
