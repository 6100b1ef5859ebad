/**
 * Finds the cluster and makes sure that it is the one: discovery as `kubeadm join` does it, without kubeadm.
 *
 *   1. read kube-public/cluster-info from a server nobody vouches for yet: at most 1.5 MiB, the kubeconfig at most 64 KiB
 *   2. the token's signature over the kubeconfig in it: whoever knows the token made it
 *   3. the CA in it against the pinned hashes: knowing the token is not enough, since every node of a pool knows it
 *   4. read again over TLS that only a pinned CA can answer: the same bytes, or somebody is in between
 *   5. only now parse the kubeconfig: until here the CA was found by a pattern, since a parser is more to attack
 *   6. show the token, over that connection only, and learn whether it may log in
 *
 * "No" is a value with a code and kubeadm's words. A server that does not answer is asked again until the time is over.
 */
import { readBoundedDocument } from '../../core/encoding/bounded-document.ts';
import { isSignedBy, tokenText } from '../../core/kubernetes/bootstrap-token.ts';
import type { BootstrapToken } from '../../core/kubernetes/bootstrap-token.ts';
import { authorityData, caCertificates, clusterEntry, pinnedOf } from '../../core/kubernetes/cluster-info.ts';
import type { CaCertificate, ClusterEntry } from '../../core/kubernetes/cluster-info.ts';
import type { Problem } from '../../core/encoding/der-reader.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { printable, quoted } from '../../core/outcome/printable-text.ts';

export type DiscoveryRefusal =
  | 'NotSetUp' // no cluster-info for everybody to read
  | 'TokenUnknown' // of another cluster, expired, or deleted
  | 'TokenCannotSign' // alive, without the usage signing
  | 'TokenCannotLogIn' // expired meanwhile, or without the usage authentication
  | 'SignatureInvalid' // another secret, or a changed ConfigMap
  | 'ClusterInfoMalformed'
  | 'CaNotPinned' // somebody who knows the token offers a CA of his own
  | 'ServerNotTrusted' // the server has no certificate of that CA
  | 'ClusterInfoChanged' // what was read first is not what the API server has
  | 'Unreachable'; // temporary: the only one that another try may change

export interface Discovered {
  readonly ok: true;
  readonly server: string;
  /** The whole bundle as the API server has it, once that server was believed. */
  readonly caPem: string;
  readonly pins: readonly string[];
  /** Things that will not stop the node from joining, and may stop it from getting a certificate. */
  readonly warnings: readonly string[];
}
export type Discovery =
  Discovered | { readonly ok: false; readonly why: DiscoveryRefusal; readonly message: string; readonly hint?: string };

/** The calls of one server. `caPem` undefined: whoever answers is believed, so nothing secret may be in the call. */
export interface DiscoveryWorld {
  call(server: string, caPem: string | undefined, call: DiscoveryCall): Promise<DiscoveryAnswer>;
  /** For who waits before the terminal. */
  say(line: string): void;
  sleep(milliseconds: number): Promise<void>;
  monotonic(): number;
}
export interface DiscoveryCall {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: JsonObject;
  readonly bearer?: string;
}
/** `undefined` text: longer than `maxAnswerBytes`. Throws when there was no answer; then `code` is Node's. */
export interface DiscoveryAnswer {
  readonly status: number;
  readonly text: string | undefined;
}

export interface Patience {
  /** How long a server may not answer: control planes come up at the same time as their nodes. */
  readonly reachMilliseconds: number;
  /** How long a signature may be missing: the bootstrap signer writes it a moment after the Secret. */
  readonly signatureMilliseconds: number;
  readonly intervalMilliseconds: number;
}
export const kubeadmPatience: Patience = {
  reachMilliseconds: 300_000,
  signatureMilliseconds: 30_000,
  intervalMilliseconds: 5_000,
};

/** What etcd takes for one object; a ConfigMap with the signatures of thousands of tokens is smaller. */
export const maxAnswerBytes = 1_572_864;
/** A kubeconfig with one server and a few CAs. */
const maxKubeconfigCharacters = 65_536;

const clusterInfoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
const createToken = 'make a new one: countersign token create, or kubeadm token create on a control-plane node';

export interface TokenDiscovery {
  /** `host:port`. */
  readonly endpoint: string;
  readonly discoveryToken: BootstrapToken;
  readonly loginToken: BootstrapToken;
  /** Canonical; empty only where the operator has said in so many words that none are needed. */
  readonly pins: readonly string[];
}

export async function discoverByToken(
  { endpoint, discoveryToken, loginToken, pins }: TokenDiscovery,
  world: DiscoveryWorld,
  patience: Patience = kubeadmPatience,
): Promise<Discovery> {
  const server = `https://${endpoint}`;
  const first = await readClusterInfo(server, undefined, world, patience, discoveryToken.id);
  if (!first.ok) return first;
  const { kubeconfig, signature } = first;

  if (signature === undefined) return withoutSignature(server, kubeconfig, discoveryToken, pins, world, patience);
  if (!isSignedBy(discoveryToken, kubeconfig, signature))
    return no(
      'SignatureInvalid',
      "failed to verify JWS signature of received cluster info object, can't trust this API Server",
      'the token has another secret than this cluster’s of that id, or somebody changed what the server sent',
    );

  const pinned = pinnedIn(authorityData(kubeconfig), pins);
  if (!pinned.ok) return pinned;
  const second = await readClusterInfo(server, pinned.trusted, world, patience);
  if (!second.ok) return second;
  if (second.kubeconfig !== kubeconfig)
    return no(
      'ClusterInfoChanged',
      'the second kubeconfig from the cluster-info ConfigMap (using validated TLS) was different from the first',
      'somebody between this machine and the server changed the first one; or it was changed just now: try again',
    );
  const believed = believe(kubeconfig, pins);
  if (!believed.ok) return believed;
  const { entry, trusted } = believed;
  return withLogin(server, trusted, loginToken, { entry, caPem: entry.caPem }, world, patience);
}

/** A file somebody brought here by a way he trusts stands for steps 1 to 3. */
export async function discoverByFile(
  { entry, loginToken }: { readonly entry: ClusterEntry; readonly loginToken: BootstrapToken },
  world: DiscoveryWorld,
  patience: Patience = kubeadmPatience,
): Promise<Discovery> {
  const certificates = caCertificates(entry.caPem);
  if ('problem' in certificates) return no('ClusterInfoMalformed', `the discovery file's CA: ${certificates.problem}`);
  const trusted = pemOf(certificates);
  return withLogin(entry.server, trusted, loginToken, { entry, caPem: trusted }, world, patience);
}

/** Of a kubeconfig that the API server itself has sent, over TLS of a pinned CA. */
function believe(
  kubeconfig: string,
  pins: readonly string[],
): { readonly ok: true; readonly entry: ClusterEntry; readonly trusted: string } | Refused {
  const document = readBoundedDocument(kubeconfig);
  const entry = 'problem' in document ? document : clusterEntry(document.value);
  if ('problem' in entry)
    return no('ClusterInfoMalformed', `malformed kubeconfig in the cluster-info ConfigMap: ${entry.problem}`);
  // The pattern may have found the CA of another entry.
  const pinned = pinnedIn(entry.caPem, pins);
  return pinned.ok ? { ok: true, entry, trusted: pinned.trusted } : pinned;
}

/** `trusted`: the pinned certificates alone, or all of them where the operator asked for no pins. */
function pinnedIn(bundle: string, pins: readonly string[]): { readonly ok: true; readonly trusted: string } | Refused {
  const certificates = caCertificates(bundle);
  if ('problem' in certificates)
    return no(
      'ClusterInfoMalformed',
      `failed to parse cluster CA from the cluster-info ConfigMap: ${certificates.problem}`,
    );
  const pinned: readonly CaCertificate[] | Problem = pins.length === 0 ? certificates : pinnedOf(certificates, pins);
  if ('problem' in pinned)
    return no(
      'CaNotPinned',
      pinned.problem,
      'the hash is of another cluster, or somebody who knows the token offers a CA of his own',
    );
  return { ok: true, trusted: pemOf(pinned) };
}

/**
 * No signature says only that something is wrong with the token. With pinned hashes the server can be made sure of all
 * the same, and then asked: it is the only one to show the token to.
 */
async function withoutSignature(
  server: string,
  kubeconfig: string,
  token: BootstrapToken,
  pins: readonly string[],
  world: DiscoveryWorld,
  patience: Patience,
): Promise<Discovery> {
  const unknown = no(
    'TokenUnknown',
    `token id ${quoted(token.id)} is invalid for this cluster or it has expired`,
    createToken,
  );
  if (pins.length === 0) return unknown;
  const pinned = pinnedIn(authorityData(kubeconfig), pins);
  if (!pinned.ok) return pinned;
  const login = await logIn(server, pinned.trusted, token, world, patience);
  if (!login.ok) return login.why === 'TokenCannotLogIn' ? unknown : login;
  return no(
    'TokenCannotSign',
    `token id ${quoted(token.id)} is valid, but there is no signature of it in the cluster-info ConfigMap`,
    // The API server remembers a login for ten seconds.
    'its Secret lacks usage-bootstrap-signing: "true", or kube-controller-manager runs without bootstrapsigner, or it expired just now',
  );
}

async function withLogin(
  server: string,
  trusted: string,
  token: BootstrapToken,
  { entry, caPem }: { readonly entry: ClusterEntry; readonly caPem: string },
  world: DiscoveryWorld,
  patience: Patience,
): Promise<Discovery> {
  const login = await logIn(server, trusted, token, world, patience);
  if (!login.ok) return login;
  const certificates = caCertificates(caPem);
  const pins = 'problem' in certificates ? [] : certificates.map(({ pin }) => pin);
  return { ok: true, server: entry.server, caPem, pins, warnings: login.warnings };
}

/** Who the token makes us, and whether that one may ask for a certificate. */
async function logIn(
  server: string,
  trusted: string,
  token: BootstrapToken,
  world: DiscoveryWorld,
  patience: Patience,
): Promise<{ readonly ok: true; readonly warnings: readonly string[] } | Refused> {
  const bearer = tokenText(token);
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
  const who = await patiently(server, trusted, { method: 'POST', path, body, bearer }, world, patience);
  if (!who.ok) return who;
  if (!loggedIn(who.answer, token))
    return no(
      'TokenCannotLogIn',
      `token id ${quoted(token.id)} cannot log in: it is invalid for this cluster, it has expired, or its Secret lacks usage-bootstrap-authentication: "true"`,
      createToken,
    );
  const may = await patiently(server, trusted, { method: 'POST', ...mayRequest, bearer }, world, patience);
  if (!may.ok) return may;
  const status = objectOf(objectOf(json(may.answer.text))?.['status']);
  const warnings =
    may.answer.status === 201 && status?.['allowed'] === false
      ? [
          `token id ${quoted(token.id)} may not create CertificateSigningRequests: bind ClusterRole system:node-bootstrapper to a group of its auth-extra-groups`,
        ]
      : [];
  return { ok: true, warnings };
}

/** The answer must name us. 403 comes after authentication, but to those without a login as well: it names whom it means. */
function loggedIn({ status, text }: DiscoveryAnswer, { id }: BootstrapToken): boolean {
  // Servers before 1.28 do not know the question, and refuse strangers before saying so.
  return status === 404 || ((status === 201 || status === 403) && text?.includes(`system:bootstrap:${id}`) === true);
}

const mayRequest = {
  path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  body: {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: {
      resourceAttributes: { verb: 'create', group: 'certificates.k8s.io', resource: 'certificatesigningrequests' },
    },
  },
} as const;

type Refused = Extract<Discovery, { readonly ok: false }>;

function no(why: DiscoveryRefusal, message: string, hint?: string): Refused {
  return { ok: false, why, message, ...(hint === undefined ? {} : { hint }) };
}

/** With `tokenId` it waits a while for that token's signature, and gives up without one. */
async function readClusterInfo(
  server: string,
  trusted: string | undefined,
  world: DiscoveryWorld,
  patience: Patience,
  tokenId?: string,
): Promise<{ readonly ok: true; readonly kubeconfig: string; readonly signature: string | undefined } | Refused> {
  const began = world.monotonic();
  for (let told = false; ; told = true) {
    const read = await patiently(server, trusted, { method: 'GET', path: clusterInfoPath }, world, patience);
    if (!read.ok) return read;
    const { status, text } = read.answer;
    if (text === undefined)
      return no('ClusterInfoMalformed', `the answer of ${server} is larger than ${maxAnswerBytes} bytes`);
    const data = objectOf(objectOf(json(text))?.['data']);
    const kubeconfig = data?.['kubeconfig'];
    if (typeof kubeconfig === 'string' && kubeconfig.length > maxKubeconfigCharacters)
      return no(
        'ClusterInfoMalformed',
        `the kubeconfig in the cluster-info ConfigMap is longer than ${maxKubeconfigCharacters} characters`,
      );
    const signature = tokenId === undefined ? undefined : data?.[`jws-kubeconfig-${tokenId}`];
    const found = status === 200 && typeof kubeconfig === 'string' && kubeconfig !== '';
    if (found && (tokenId === undefined || (typeof signature === 'string' && signature !== '')))
      return { ok: true, kubeconfig, signature: typeof signature === 'string' ? signature : undefined };
    // Absent, or without this token's signature: both may be a moment away from being there.
    if (world.monotonic() - began >= patience.signatureMilliseconds)
      return found ? { ok: true, kubeconfig, signature: undefined } : notSetUp(status);
    if (!told)
      world.say(
        found
          ? `waiting for the cluster-info ConfigMap to receive a JWS signature for token id ${quoted(tokenId ?? '')}`
          : `waiting for the cluster-info ConfigMap (HTTP ${status})`,
      );
    await world.sleep(patience.intervalMilliseconds);
  }
}

function notSetUp(status: number): Refused {
  if (status === 200)
    return no(
      'NotSetUp',
      "there is no kubeconfig key in the cluster-info ConfigMap. This API Server isn't set up for token bootstrapping, can't connect",
    );
  return no(
    'NotSetUp',
    `failed to request the cluster-info ConfigMap: HTTP ${status}. This API Server isn't set up for token bootstrapping, can't connect`,
    status === 404
      ? 'kubeadm init phase bootstrap-token makes the ConfigMap; or use --discovery-file'
      : 'everybody must be able to read it (Role kubeadm:bootstrap-signer-clusterinfo in kube-public, anonymous requests on); or use --discovery-file',
  );
}

/** One answer of any status below 500 but "slow down"; whoever does not answer is asked again while there is time. */
async function patiently(
  server: string,
  trusted: string | undefined,
  call: DiscoveryCall,
  world: DiscoveryWorld,
  patience: Patience,
): Promise<{ readonly ok: true; readonly answer: DiscoveryAnswer } | Refused> {
  const began = world.monotonic();
  for (let told = ''; ;) {
    let reason: string;
    try {
      const answer = await world.call(server, trusted, call);
      if (answer.status < 500 && answer.status !== 429) return { ok: true, answer };
      reason = `HTTP ${answer.status}`;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      // Waiting does not change who somebody is.
      if (trusted !== undefined && code !== undefined && tlsRefusals.test(code)) return notTrusted(server, code);
      reason = printable(message);
    }
    if (world.monotonic() - began >= patience.reachMilliseconds)
      return no(
        'Unreachable',
        `${server} did not answer: ${reason}`,
        'is the address right, and is a firewall in between?',
      );
    if (reason !== told) world.say(`waiting for ${server}: ${reason}`);
    told = reason;
    await world.sleep(patience.intervalMilliseconds);
  }
}

/** What Node calls OpenSSL's verdicts on a chain, and its own on the name. */
const tlsRefusals =
  /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_|CRL_|ERROR_IN_CERT|INVALID_(CA|PURPOSE)|PATH_LENGTH|HOSTNAME_MISMATCH|ERR_TLS_CERT_)/;

function notTrusted(server: string, code: string): Refused {
  const why =
    code === 'ERR_TLS_CERT_ALTNAME_INVALID'
      ? 'its certificate is of the right CA, but for other names or addresses'
      : code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID'
        ? 'its certificate is not valid at this time (is the clock of this machine right?)'
        : 'its certificate is of another CA than the one this node may trust: somebody may be in between';
  return no('ServerNotTrusted', `${server} cannot be trusted: ${why} (${code})`);
}

function pemOf(certificates: readonly CaCertificate[]): string {
  return certificates.map(({ pem }) => pem).join('');
}

function json(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
}

function objectOf(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}
