/**
 * The command with which a machine joins, held against what `kubelet-authenticator join` will do with it: a line that join
 * would refuse is not printed, and no token is made for it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createTransport } from '../../adapters/kubernetes/transport.ts';
import { readBoundedDocument } from '../../core/encoding/bounded-document.ts';
import { caCertificates, clusterEntry } from '../../core/kubernetes/cluster-info.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { ifFound, objectOf, textOf } from './object-answers.ts';
import type { Cluster } from './object-answers.ts';

export interface JoinPlace {
  /** `host:port`. */
  readonly endpoint: string;
  readonly pins: readonly string[];
  /** What may be wrong, and cannot be seen from here. */
  readonly warning?: string;
}

const clusterInfoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
const tokenOnly = '-o token makes a token alone, for kubelet-authenticator join --discovery-file';
const reachMilliseconds = 5_000;
const signatureMilliseconds = 10_000;

/** Throws CommandFailure where a machine could not find the cluster, or could not tell that it is the right one. */
export async function findJoinPlace({ api, signal }: Cluster, server: string | undefined): Promise<JoinPlace> {
  const found = ifFound(await api.get(clusterInfoPath, signal), 'cluster-info');
  const kubeconfig = textOf(objectOf(found?.['data'])['kubeconfig']);
  if (kubeconfig === '')
    throw new CommandFailure(
      exitCodes.notFound,
      'no join command can be printed: there is no ConfigMap cluster-info in kube-public, which holds the address of the API server and its CA',
      `kubeadm init phase bootstrap-token makes it; ${tokenOnly}`,
    );
  const document = readBoundedDocument(kubeconfig);
  const entry = 'problem' in document ? document : clusterEntry(document.value);
  const certificates = 'problem' in entry ? entry : caCertificates(entry.caPem);
  if ('problem' in certificates || 'problem' in entry)
    throw new CommandFailure(
      exitCodes.configuration,
      `no join command can be printed: ConfigMap cluster-info in kube-public is of no use (${'problem' in entry ? entry.problem : 'problem' in certificates ? certificates.problem : ''})`,
      `kubeadm init phase bootstrap-token makes it anew; ${tokenOnly}`,
    );
  const endpoint = server ?? hostPort(entry.server);
  // Told by the operator it may be meant: everything on one machine.
  if (server === undefined && isThisMachine(endpoint))
    throw new CommandFailure(
      exitCodes.configuration,
      `no join command can be printed: cluster-info says that the API server is at ${endpoint}, which on every machine is that machine itself`,
      '--server HOST:PORT names where machines find it',
    );
  const warning = await tryEndpoint(endpoint, certificates.map(({ pem }) => pem).join(''));
  return { endpoint, pins: certificates.map(({ pin }) => pin), ...(warning === undefined ? {} : { warning }) };
}

/** The same call as join's, without a login and with the pinned CA. A machine may reach what we cannot: then it is a warning. */
async function tryEndpoint(endpoint: string, ca: string): Promise<string | undefined> {
  const transport = createTransport(new URL(`https://${endpoint}`), () => Promise.resolve({ ca }));
  try {
    const signal = AbortSignal.timeout(reachMilliseconds);
    const { status } = await transport.call({ method: 'GET', path: clusterInfoPath, signal, maxBytes: 1_572_864 });
    if (status === 200) return undefined;
    throw new CommandFailure(
      exitCodes.configuration,
      `no join command can be printed: https://${endpoint} does not show cluster-info to a machine without a login (HTTP ${status})`,
      `kubeadm init phase bootstrap-token gives that right (Role kubeadm:bootstrap-signer-clusterinfo); ${tokenOnly}`,
    );
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== undefined && tlsRefusals.test(code))
      throw new CommandFailure(
        exitCodes.configuration,
        `no join command can be printed: join would not trust https://${endpoint}, whose certificate is of another CA than cluster-info names, or for other names (${code})`,
        '--server HOST:PORT names another address of the API server',
      );
    return `https://${endpoint} cannot be reached from here (${printable(code ?? message)}): make sure that machines can reach it`;
  } finally {
    transport.close();
  }
}

/** What Node calls OpenSSL's verdicts on a chain, and its own on the name. */
const tlsRefusals =
  /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_|CRL_|ERROR_IN_CERT|INVALID_(CA|PURPOSE)|PATH_LENGTH|HOSTNAME_MISMATCH|ERR_TLS_CERT_)/;

/** Whether the signature that join looks for is there: kube-controller-manager writes it a moment after the token. */
export async function waitForSignature({ api, signal }: Cluster, tokenId: string): Promise<boolean> {
  const until = performance.now() + signatureMilliseconds;
  for (;;) {
    const found = ifFound(await api.get(clusterInfoPath, signal), 'cluster-info');
    if (textOf(objectOf(found?.['data'])[`jws-kubeconfig-${tokenId}`]) !== '') return true;
    if (performance.now() >= until) return false;
    await sleep(100);
  }
}

export function unsigned(tokenId: string): CommandFailure {
  return new CommandFailure(
    exitCodes.temporary,
    `kube-controller-manager did not sign cluster-info for token "${tokenId}" in ${signatureMilliseconds / 1_000} s, and join refuses a token without a signature; the token was removed again`,
    `does it run, with bootstrapsigner in --controllers? ${tokenOnly}`,
  );
}

export function isEndpoint(text: string): boolean {
  return /^([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}$/.test(text) && URL.canParse(`https://${text}`);
}

/** URL leaves out the port that https has anyway. */
function hostPort(server: string): string {
  const { hostname, port } = new URL(server);
  return `${hostname}:${port === '' ? '443' : port}`;
}

/** Loopback, and the addresses that mean any of this machine's. */
function isThisMachine(endpoint: string): boolean {
  const { hostname } = new URL(`https://${endpoint}`);
  return /^(127\.\d+\.\d+\.\d+|0\.0\.0\.0|localhost\.?|.*\.localhost\.?|\[::1?\]|\[::ffff:7f[0-9a-f:]+\])$/i.test(
    hostname,
  );
}
