/** What `kubelet-authenticator join` was told on its command line, and what is wrong with it before anything is asked. */
import { dirname, isAbsolute, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readBoundedDocument } from '../../core/encoding/bounded-document.ts';
import { parseBootstrapToken } from '../../core/kubernetes/bootstrap-token.ts';
import type { BootstrapToken } from '../../core/kubernetes/bootstrap-token.ts';
import { clusterEntry, parsePins } from '../../core/kubernetes/cluster-info.ts';
import type { ClusterEntry } from '../../core/kubernetes/cluster-info.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { discoverByFile, discoverByToken } from './discovery.ts';
import type { Discovery, DiscoveryWorld, Patience } from './discovery.ts';
import { placesOf, servingWays } from './join-files.ts';
import type { ServingWay } from './join-files.ts';
import { UnsafeFileError } from '../files/own-files.ts';
import { defaultCacheDirectory, resolveSettings } from '../settings/settings.ts';
import type { Settings } from '../settings/settings.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** As of every command; 6 means: it is there already, and was not overwritten. */
export const joinExits = { ok: 0, refused: 1, usage: 2, configuration: 3, temporary: 5, conflict: 6 } as const;

const options = {
  token: { type: 'string' },
  'discovery-token': { type: 'string' },
  'tls-bootstrap-token': { type: 'string' },
  'token-file': { type: 'string' },
  'discovery-token-ca-cert-hash': { type: 'string', multiple: true },
  'discovery-token-unsafe-skip-ca-verification': { type: 'boolean' },
  'discovery-file': { type: 'string' },
  'discovery-timeout': { type: 'string' },
  'node-name': { type: 'string' },
  'cluster-name': { type: 'string' },
  audience: { type: 'string' },
  provider: { type: 'string' },
  'signer-name': { type: 'string' },
  'serving-signer-name': { type: 'string' },
  'serving-name': { type: 'string', multiple: true },
  'keep-bootstrap-token': { type: 'boolean' },
  serving: { type: 'string' },
  'client-ca-bundle': { type: 'string' },
  'key-kind': { type: 'string' },
  'evidence-version': { type: 'string' },
  directory: { type: 'string' },
  'cache-dir': { type: 'string' },
  command: { type: 'string' },
  'dry-run': { type: 'boolean' },
  force: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

export const joinHelp = `usage: kubelet-authenticator join <host:port> --token TOKEN --discovery-token-ca-cert-hash HASH… --audience NAME [flags]
       kubelet-authenticator join --discovery-file FILE --token TOKEN --audience NAME [flags]

Finds the cluster, makes sure that it is the right one, and writes what the kubelet needs: its kubeconfig with
kubelet-authenticator as credential plugin, a configuration drop-in, and the plugin's own settings. Nothing is asked
for yet: the kubelet's first call does that. countersign token create prints the whole command.

Which cluster:
  --token abcdef.0123456789abcdef       for both of the next two
  --discovery-token TOKEN               whose signature over cluster-info is checked
  --tls-bootstrap-token TOKEN           with which the plugin asks for the first certificate
  --token-file FILE                     holds the token instead, where other users can see command lines
  --discovery-token-ca-cert-hash HASH   sha256:<hex> of a CA's public key; repeat it for several CAs
  --discovery-token-unsafe-skip-ca-verification   without any hash: whoever has the token can be the cluster
  --discovery-file FILE                 a kubeconfig with server and CA instead of the address
  --discovery-timeout SECONDS           how long to wait for a server that does not answer (300)

Which node:
  --node-name NAME            (this machine's host name)
  --audience NAME             the deployment, as countersign token create prints it: <account>/<region>/<cluster>
  --cluster-name NAME         in countersign.yaml (the audience's last part)
  --provider aws|insecure     how this machine proves which one it is (aws)
  --signer-name NAME          (cluster.x-k8s.io/kube-apiserver-client-kubelet-<provider>)
  --client-ca-bundle FILE     CAs of client certificates; others are not used
  --keep-bootstrap-token      leave the token on disk after the first certificate; otherwise it is removed
  --key-kind KIND             P-256, P-384, P-521, RSA-2048, RSA-3072, RSA-4096, Ed25519 (P-256)
  --evidence-version VERSION  aws/v2, aws/v1: send no other (the newest, or an older one where only that is taken)
  --serving kubelet|attested|none   who makes the serving certificate: the kubelet asks by itself (serverTLSBootstrap),
                              kubelet-authenticator serving does with a proof, or nobody (kubelet)
  --serving-signer-name NAME  for attested (cluster.x-k8s.io/kubelet-serving-<provider>)
  --serving-name NAME         for attested: a further IP address or DNS name; repeat it

Files:
  --directory DIR             (/etc/kubernetes)
  --cache-dir DIR             keys and certificates (${defaultCacheDirectory})
  --command FILE              the plugin as the kubelet starts it (this program)
  --force                     overwrite what is there with another content
  --dry-run                   discover, show what would be written, write nothing

Examples:
  kubelet-authenticator join 10.0.0.10:6443 --token-file /run/join-token \\
    --discovery-token-ca-cert-hash sha256:4f…e1 --audience 123456789012/eu-central-1/prod --provider aws
  kubelet-authenticator join --discovery-file cluster.conf --token abcdef.0123456789abcdef \\
    --audience 123456789012/eu-central-1/prod --serving attested
  kubelet-authenticator join 10.0.0.10:6443 … --dry-run

Exit codes: 0 joined, 1 refused, 2 usage, 3 configuration, 5 temporary, 6 files are there already
`;

/** What flags may need of the machine. */
export interface FlagWorld {
  readText(path: string): string;
  hostname(): string;
  /** What the kubelet is to call, unless a flag says so. */
  readonly program: string;
}

/** Ends the command; the sentence goes to standard error. */
export interface Stop {
  readonly exit: number;
  readonly message: string;
  readonly hint?: string;
}

export interface JoinPlan {
  readonly discover: (world: DiscoveryWorld, patience: Patience) => Promise<Discovery>;
  readonly settings: (server: string) => Settings | Stop;
  readonly loginToken: BootstrapToken;
  readonly serving: ServingWay;
  readonly directory: string;
  readonly command: string;
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly timeoutSeconds: number;
}

export function planOf(argv: readonly string[], world: FlagWorld): JoinPlan | Stop | { readonly help: true } {
  let given;
  try {
    given = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    return usage(errorMessage(error));
  }
  const { values: flags, positionals } = given;
  if (flags.help === true) return { help: true };
  if (positionals.length > 1) return usage('only one address');

  const tokens = tokensOf(flags, world);
  if ('exit' in tokens) return tokens;
  const where = whereOf(flags, positionals[0], tokens, world);
  if ('exit' in where) return where;
  const serving = servingWays.find((way) => way === (flags.serving ?? 'kubelet'));
  if (serving === undefined) return usage(`--serving is one of ${servingWays.join(', ')}`);
  const directory = flags.directory ?? '/etc/kubernetes';
  const command = flags.command ?? world.program;
  if (!isAbsolute(directory) || !isAbsolute(command)) return usage('--directory and --command are absolute paths');
  const timeout = flags['discovery-timeout'] ?? '300';
  if (!/^\d{1,5}$/.test(timeout)) return usage('--discovery-timeout is a number of seconds');

  const settings = settingsOf(flags, { serving, directory, hostname: world.hostname() });
  // Everything but the server is known now: what is wrong with it need not wait for the network.
  const checked = settings('https://127.0.0.1');
  if ('exit' in checked) return checked;
  return {
    ...where,
    settings,
    loginToken: tokens.login,
    serving,
    directory,
    command,
    dryRun: flags['dry-run'] === true,
    force: flags.force === true,
    timeoutSeconds: Number(timeout),
  };
}

type Flags = ReturnType<typeof parseArgs<{ options: typeof options; strict: true }>>['values'];

interface Tokens {
  readonly discovery: BootstrapToken;
  readonly login: BootstrapToken;
}

function tokensOf(flags: Flags, world: FlagWorld): Tokens | Stop {
  let both = flags.token;
  const file = flags['token-file'];
  if (file !== undefined) {
    if (both !== undefined) return usage('--token and --token-file say the same');
    try {
      both = world.readText(file).trim();
    } catch (error) {
      return unreadable(file, error);
    }
  }
  const login = flags['tls-bootstrap-token'] ?? both;
  // Discovery by file needs no token of its own.
  const discovery = flags['discovery-token'] ?? both ?? (flags['discovery-file'] === undefined ? undefined : login);
  if (login === undefined || discovery === undefined)
    return usage('discovery.bootstrapToken.token: Invalid value: "": the bootstrap token is missing: --token');
  const [first, second] = [discovery, login].map(parseBootstrapToken);
  if (first === undefined || second === undefined) return usage('the bootstrap token is missing');
  if ('problem' in first) return usage(first.problem);
  if ('problem' in second) return usage(second.problem);
  return { discovery: first, login: second };
}

function whereOf(
  flags: Flags,
  endpoint: string | undefined,
  { discovery, login }: Tokens,
  world: FlagWorld,
): Pick<JoinPlan, 'discover'> | Stop {
  const hashes = (flags['discovery-token-ca-cert-hash'] ?? []).flatMap((text) => text.split(','));
  const unsafe = flags['discovery-token-unsafe-skip-ca-verification'] === true;
  const file = flags['discovery-file'];
  if (file !== undefined) {
    if (endpoint !== undefined || hashes.length > 0 || unsafe)
      return usage(
        'bootstrapToken and file cannot both be set: --discovery-file says where the cluster is and which CA',
      );
    const entry = entryOf(file, world);
    if ('exit' in entry) return entry;
    return { discover: (to, patience) => discoverByFile({ entry, loginToken: login }, to, patience) };
  }
  if (endpoint === undefined) return usage('which cluster? <host:port>, or --discovery-file');
  if (!isEndpoint(endpoint)) return usage('the address is <host>:<port>, such as 10.0.0.10:6443 or [2001:db8::1]:6443');
  const pins = parsePins(hashes);
  if ('problem' in pins) return usage(pins.problem);
  if (pins.length === 0 && !unsafe)
    return usage(
      'using token-based discovery without --discovery-token-ca-cert-hash can be unsafe. Pass --discovery-token-unsafe-skip-ca-verification to continue',
    );
  if (pins.length > 0 && unsafe)
    return usage(
      '--discovery-token-ca-cert-hash and --discovery-token-unsafe-skip-ca-verification contradict each other',
    );
  const wanted = { endpoint, discoveryToken: discovery, loginToken: login, pins };
  return { discover: (to, patience) => discoverByToken(wanted, to, patience) };
}

/** A discovery file: of a kubeconfig only where the cluster is and which CA it has. */
function entryOf(file: string, world: FlagWorld): ClusterEntry | Stop {
  if (/^https?:/.test(file)) return usage('--discovery-file is a file: fetch it by a way you trust first');
  try {
    const document = readBoundedDocument(world.readText(file));
    const entry = 'problem' in document ? document : clusterEntry(document.value);
    if ('problem' in entry) return configuration(`the discovery file ${file} is malformed: ${entry.problem}`);
    if (entry.caPem !== '') return entry;
    if (entry.caFile === undefined) return configuration(`the discovery file ${file} names no CA`);
    return { ...entry, caPem: world.readText(resolve(dirname(file), entry.caFile)) };
  } catch (error) {
    return unreadable(file, error);
  }
}

function settingsOf(
  flags: Flags,
  {
    serving,
    directory,
    hostname: host,
  }: { readonly serving: ServingWay; readonly directory: string; readonly hostname: string },
): (server: string) => Settings | Stop {
  const places = placesOf(directory);
  const provider = flags.provider ?? 'aws';
  const audience = flags.audience ?? '';
  const given = {
    'node-name': flags['node-name'] ?? host.trim().toLowerCase(),
    audience,
    'cluster-name': flags['cluster-name'] ?? (audience.includes('/') ? (audience.split('/').at(-1) ?? '') : ''),
    provider,
    'certificate-authority': places.ca,
    'bootstrap-credentials': places.bootstrapCredentials,
    ...(flags['cache-dir'] === undefined ? {} : { 'cache-dir': flags['cache-dir'] }),
    ...(flags['signer-name'] === undefined ? {} : { 'signer-name': flags['signer-name'] }),
    ...(flags['client-ca-bundle'] === undefined ? {} : { 'client-ca-bundle': flags['client-ca-bundle'] }),
    ...(flags['key-kind'] === undefined ? {} : { 'key-kind': flags['key-kind'] }),
    ...(flags['evidence-version'] === undefined ? {} : { 'evidence-version': flags['evidence-version'] }),
    ...(serving === 'attested'
      ? { 'serving-signer-name': flags['serving-signer-name'] ?? `cluster.x-k8s.io/kubelet-serving-${provider}` }
      : {}),
  };
  const names = flags['serving-name'] ?? [];
  const keep = flags['keep-bootstrap-token'] === true ? { 'keep-bootstrap-token': true } : {};
  return (server) => {
    if (audience === '')
      return usage(
        '--audience is missing: the deployment this node proves itself to, as countersign token create prints it',
      );
    if (serving === 'attested' && provider === 'insecure')
      return usage('--serving attested needs a provider that proves something; insecure does not');
    if (serving !== 'attested' && (flags['serving-signer-name'] !== undefined || names.length > 0))
      return usage('--serving-signer-name and --serving-name are for --serving attested');
    const resolved = resolveSettings(undefined, { ...given, server, 'serving-name': names, ...keep });
    return resolved.ok ? resolved.settings : usage(resolved.problems.join('\n'));
  };
}

function isEndpoint(text: string): boolean {
  return /^([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}$/.test(text) && URL.canParse(`https://${text}`);
}

function usage(message: string): Stop {
  return { exit: joinExits.usage, message, hint: 'kubelet-authenticator join --help shows flags and examples' };
}

function configuration(message: string): Stop {
  return { exit: joinExits.configuration, message };
}

function unreadable(file: string, error: unknown): Stop {
  if (error instanceof UnsafeFileError) return configuration(error.message);
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'it is not what it should be';
  return configuration(`${file} cannot be read: ${printable(code)}`);
}
