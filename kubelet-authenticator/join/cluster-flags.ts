/** The flags that name the cluster to join: address or discovery file, tokens, pins. */
import { dirname, resolve } from 'node:path';
import { parseBootstrapToken } from '../../core/kubernetes/bootstrap-token.ts';
import type { BootstrapToken } from '../../core/kubernetes/bootstrap-token.ts';
import { parsePins, readClusterEntry } from '../../core/kubernetes/cluster-info.ts';
import type { ClusterEntry } from '../../core/kubernetes/cluster-info.ts';
import { success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { discoverByFile, discoverByToken } from './discovery.ts';
import type { DiscoveredCluster, Discovery } from './discovery-result.ts';
import type { FirstLogin } from './first-login.ts';
import type { JoinFlags } from './join-options.ts';
import type { DiscoveryDependencies } from './server-calls.ts';
import { configuration, unreadable, usage } from './stop.ts';
import type { Stop } from './stop.ts';

/** What flags refer to on this machine: files, the host name, this program. */
export interface FlagDependencies {
  readText(path: string): string;
  hostname(): string;
  /** The program that the kubelet calls, unless --command names another. */
  readonly program: string;
}

export type Discover = (dependencies: DiscoveryDependencies) => Promise<Discovery<DiscoveredCluster>>;

interface Tokens {
  /** Absent only with --discovery-file, which needs none. */
  readonly discovery?: BootstrapToken;
  readonly login: FirstLogin;
}

export function tokensOf(flags: JoinFlags, dependencies: FlagDependencies): Result<Tokens, Stop> {
  let shared = flags.token;
  const file = flags['token-file'];
  if (file !== undefined) {
    if (shared !== undefined) return usage('--token and --token-file cannot both be set');
    try {
      shared = dependencies.readText(file).trim();
    } catch (error) {
      return unreadable(file, error);
    }
  }
  const login = flags['tls-bootstrap-token'] ?? shared;
  // As in kubeadm: a discovery file with a user needs no token.
  const discoveryFile = flags['discovery-file'];
  if (discoveryFile !== undefined && login === undefined)
    return success({ login: { kind: 'file', file: resolve(discoveryFile) } });
  const discovery = flags['discovery-token'] ?? shared ?? (discoveryFile === undefined ? undefined : login);
  if (login === undefined || discovery === undefined)
    return usage('discovery.bootstrapToken.token: Invalid value: "": the bootstrap token is missing: --token');
  const [parsedDiscovery, parsedLogin] = [parseBootstrapToken(discovery), parseBootstrapToken(login)];
  if (!parsedDiscovery.ok) return usage(parsedDiscovery.problem);
  if (!parsedLogin.ok) return usage(parsedLogin.problem);
  return success({ discovery: parsedDiscovery.value, login: { kind: 'token', token: parsedLogin.value } });
}

export function discoveryOf(
  flags: JoinFlags,
  endpoint: string | undefined,
  { discovery, login }: Tokens,
  dependencies: FlagDependencies,
): Result<Discover, Stop> {
  const hashes = (flags['discovery-token-ca-cert-hash'] ?? []).flatMap((text) => text.split(','));
  const unsafe = flags['discovery-token-unsafe-skip-ca-verification'] === true;
  const file = flags['discovery-file'];
  if (file !== undefined) {
    if (endpoint !== undefined || hashes.length > 0 || unsafe)
      return usage('bootstrapToken and file cannot both be set: --discovery-file already names the server and its CA');
    const entry = entryOf(file, dependencies);
    return entry.ok ? success((io) => discoverByFile({ entry: entry.value, login }, io)) : entry;
  }
  if (endpoint === undefined || discovery === undefined || login.kind === 'file')
    return usage('which cluster? give <host:port> or --discovery-file');
  if (!isEndpoint(endpoint)) return usage('the address is <host>:<port>, such as 10.0.0.10:6443 or [2001:db8::1]:6443');
  const pins = parsePins(hashes);
  if (!pins.ok) return usage(pins.problem);
  if (pins.value.length === 0 && !unsafe)
    return usage(
      'using token-based discovery without --discovery-token-ca-cert-hash can be unsafe. Pass --discovery-token-unsafe-skip-ca-verification to continue',
    );
  if (pins.value.length > 0 && unsafe)
    return usage(
      '--discovery-token-ca-cert-hash and --discovery-token-unsafe-skip-ca-verification contradict each other',
    );
  const wanted = { endpoint, discoveryToken: discovery, loginToken: login.token, pins: pins.value };
  return success((io) => discoverByToken(wanted, io));
}

/** The server and the CA of a discovery file. Its user is read by `bootstrapLogin`, if no token is given. */
function entryOf(file: string, dependencies: FlagDependencies): Result<ClusterEntry, Stop> {
  if (/^https?:/.test(file))
    return usage(
      '--discovery-file takes a path, not a URL: copy the file to this machine over a trusted channel first',
    );
  try {
    const read = readClusterEntry(dependencies.readText(file));
    if (!read.ok) return configuration(`the discovery file ${file} is malformed: ${read.problem}`);
    const entry = read.value;
    if (entry.caPem !== '') return read;
    if (entry.caFile === undefined)
      return configuration(`the discovery file ${file} contains no CA: add certificate-authority-data`);
    return success({ ...entry, caPem: dependencies.readText(resolve(dirname(file), entry.caFile)) });
  } catch (error) {
    return unreadable(file, error);
  }
}

function isEndpoint(text: string): boolean {
  return /^([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}$/.test(text) && URL.canParse(`https://${text}`);
}
