/**
 * Finds the cluster and verifies its identity: discovery as `kubeadm join` does it, without kubeadm.
 *
 *   1. read kube-public/cluster-info from a server that is not verified yet: at most 1.5 MiB, the kubeconfig at most 64 KiB
 *   2. check the signature over the kubeconfig: only a holder of the token can make it
 *   3. compare its CA with the pinned hashes: the signature is not enough, since every node of a pool knows the token
 *   4. read it again over TLS, trusting only the pinned CAs: other bytes mean that the first read was intercepted
 *   5. only now parse the kubeconfig. Until then a pattern finds its CA, since a parser is easier to attack
 *   6. send the token (or the user's credentials of a discovery file), over the verified connection only, and check that it can log in
 *
 * A refusal is a value with a code and kubeadm's words. A server that does not answer is called again until the time is over.
 */
import { isSignedBy } from '../../core/kubernetes/bootstrap-token.ts';
import type { BootstrapToken } from '../../core/kubernetes/bootstrap-token.ts';
import { authorityData, caCertificates, pinnedOf, readClusterEntry } from '../../core/kubernetes/cluster-info.ts';
import type { CaCertificate, ClusterEntry } from '../../core/kubernetes/cluster-info.ts';
import { quoted } from '../../core/outcome/printable-text.ts';
import { success } from '../../core/outcome/result.ts';
import { refuse } from './discovery-result.ts';
import type { DiscoveredCluster, Discovery } from './discovery-result.ts';
import { readClusterInfo } from './read-cluster-info.ts';
import type { DiscoveryDependencies, Server } from './server-calls.ts';
import { credentialOf, credentialOfToken, logIn, newTokenHint } from './first-login.ts';
import type { Credential, FirstLogin } from './first-login.ts';

export interface TokenDiscovery {
  /** `host:port`. */
  readonly endpoint: string;
  readonly discoveryToken: BootstrapToken;
  readonly loginToken: BootstrapToken;
  /** Canonical; empty only with --discovery-token-unsafe-skip-ca-verification. */
  readonly pins: readonly string[];
}

export async function discoverByToken(
  { endpoint, discoveryToken, loginToken, pins }: TokenDiscovery,
  dependencies: DiscoveryDependencies,
): Promise<Discovery<DiscoveredCluster>> {
  const unverified: Server = { url: `https://${endpoint}`, trusted: undefined, dependencies };
  const first = await readClusterInfo(unverified, discoveryToken.id);
  if (!first.ok) return first;
  const { kubeconfig, signature } = first.value;

  if (signature === undefined) return explainMissingSignature(unverified, kubeconfig, discoveryToken, pins);
  if (!isSignedBy(discoveryToken, kubeconfig, signature))
    return refuse(
      'SignatureInvalid',
      "failed to verify JWS signature of received cluster info object, can't trust this API Server",
      'this cluster has a token of the same id with another secret, or the answer was changed on its way',
    );

  const pinned = pinnedIn(authorityData(kubeconfig), pins);
  if (!pinned.ok) return pinned;
  const second = await readClusterInfo({ ...unverified, trusted: pinned.value });
  if (!second.ok) return second;
  if (second.value.kubeconfig !== kubeconfig)
    return refuse(
      'ClusterInfoChanged',
      'the second kubeconfig from the cluster-info ConfigMap (using validated TLS) was different from the first',
      'the first answer was changed on its way, or an administrator has just changed the ConfigMap: try again',
    );
  const entry = readClusterEntry(kubeconfig);
  if (!entry.ok)
    return refuse('ClusterInfoMalformed', `malformed kubeconfig in the cluster-info ConfigMap: ${entry.problem}`);
  // The pattern may have found the CA of another entry.
  const verified = pinnedIn(entry.value.caPem, pins);
  if (!verified.ok) return verified;
  return checkLogin({ ...unverified, trusted: verified.value }, credentialOfToken(loginToken), entry.value);
}

/** The operator obtained the file in a trusted way, so it replaces steps 1 to 3. */
export async function discoverByFile(
  { entry, login }: { readonly entry: ClusterEntry; readonly login: FirstLogin },
  dependencies: DiscoveryDependencies,
): Promise<Discovery<DiscoveredCluster>> {
  const certificates = caCertificates(entry.caPem);
  if (!certificates.ok) return refuse('ClusterInfoMalformed', `the discovery file's CA: ${certificates.problem}`);
  const trusted = pemOf(certificates.value);
  const credential = await credentialOf(login);
  if (!credential.ok) return credential;
  return checkLogin({ url: entry.server, trusted, dependencies }, credential.value, { ...entry, caPem: trusted });
}

/** The pinned certificates of the bundle in PEM, or all of them if the operator skips CA verification. */
function pinnedIn(bundle: string, pins: readonly string[]): Discovery<string> {
  const certificates = caCertificates(bundle);
  if (!certificates.ok)
    return refuse(
      'ClusterInfoMalformed',
      `failed to parse cluster CA from the cluster-info ConfigMap: ${certificates.problem}`,
    );
  const pinned = pins.length === 0 ? certificates : pinnedOf(certificates.value, pins);
  if (!pinned.ok)
    return refuse(
      'CaNotPinned',
      pinned.problem,
      'the hash is of another cluster, or a holder of the token presents a CA of their own',
    );
  return success(pemOf(pinned.value));
}

/**
 * A missing signature has several causes. If the operator gave hashes, the server is verified with them and gets the token, to
 * learn whether the token is valid. A server that is not verified never gets the token.
 */
async function explainMissingSignature(
  server: Server,
  kubeconfig: string,
  token: BootstrapToken,
  pins: readonly string[],
): Promise<Discovery<never>> {
  const unknown = refuse(
    'TokenUnknown',
    `token id ${quoted(token.id)} is invalid for this cluster or it has expired`,
    newTokenHint,
  );
  if (pins.length === 0) return unknown;
  const pinned = pinnedIn(authorityData(kubeconfig), pins);
  if (!pinned.ok) return pinned;
  const login = await logIn({ ...server, trusted: pinned.value }, credentialOfToken(token));
  if (!login.ok) return login.problem.why === 'TokenCannotLogIn' ? unknown : login;
  return refuse(
    'TokenCannotSign',
    `token id ${quoted(token.id)} is valid, but there is no signature of it in the cluster-info ConfigMap`,
    // The API server caches a login for ten seconds, so a token that has just expired may still log in.
    'its Secret lacks usage-bootstrap-signing: "true", or kube-controller-manager runs without bootstrapsigner, or it has just expired',
  );
}

async function checkLogin(
  server: Server & { readonly trusted: string },
  credential: Credential,
  { server: address, caPem }: ClusterEntry,
): Promise<Discovery<DiscoveredCluster>> {
  const login = await logIn(server, credential);
  if (!login.ok) return login;
  const certificates = caCertificates(caPem);
  const pins = certificates.ok ? certificates.value.map(({ pin }) => pin) : [];
  return success({ server: address, caPem, pins, warnings: login.value });
}

function pemOf(certificates: readonly CaCertificate[]): string {
  return certificates.map(({ pem }) => pem).join('');
}
