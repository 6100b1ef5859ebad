/** Flags and environment of the relay; a flag overrides its variable. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { forwardProxy } from '../../../adapters/http/proxy.ts';
import type { ForwardProxy } from '../../../adapters/http/proxy.ts';
import type { KubernetesLogin } from '../../../adapters/kubernetes/login.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';
import { clusterApiFlags, clusterApiOf } from './cluster-api-settings.ts';
import type { ClusterApiFlags, ClusterApiSettings } from './cluster-api-settings.ts';
import { attestEndpoint, endpointOf, parseCaller } from './endpoint-settings.ts';
import type { Caller } from './endpoint-settings.ts';
import { file, listenAddress, wholeNumber } from './flag-values.ts';
import type { ListenAddress } from './flag-values.ts';
import { defaultInFlightPerRequester } from './signers.ts';
import { isSignerName, trustFlags, trustOf } from './trust-settings.ts';
import type { TrustFlags } from './trust-settings.ts';
import type { KeptTrust } from '../trust/kept-objects.ts';
import { webhookFlags, webhookOf } from './webhook-settings.ts';
import type { WebhookFlags, WebhookSettings } from './webhook-settings.ts';

/** Webhook clients get as many connections as the relay's own calls, so that neither waits for the other. */
export function endpointConnections({ concurrency, webhook }: Pick<RelaySettings, 'concurrency' | 'webhook'>): number {
  return webhook === undefined ? concurrency : 2 * concurrency;
}

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
type LogLevel = (typeof logLevels)[number];

export type ParsedSettings =
  | { readonly kind: 'settings'; readonly settings: RelaySettings }
  /** `--probe`. */
  | { readonly kind: 'probe'; readonly target: Required<ListenAddress> }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'wrong'; readonly message: string };

/** Without `--concurrency`. */
export const defaultConcurrency = 32;

/** The in-tree signers for which every authenticated user may create requests. */
export const defaultSignerNames = [
  'kubernetes.io/kube-apiserver-client',
  'kubernetes.io/kube-apiserver-client-kubelet',
  'kubernetes.io/kubelet-serving',
] as const;

interface Flags extends WebhookFlags, TrustFlags, ClusterApiFlags {
  readonly url?: string;
  readonly attestUrl?: string;
  readonly cluster?: string;
  /** File with CA certificates to trust for the endpoint instead of the system's. */
  readonly endpointCa?: string | undefined;
  readonly tokenFile?: string;
  readonly callerRole?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly config?: string;
  readonly signerName?: readonly string[];
  readonly inFlightPerRequester: number;
  readonly concurrency: number;
  readonly drainSeconds: number;
  readonly leaderElect?: true;
  readonly leaseNamespace?: string;
  readonly leaseName?: string;
  readonly metricsAddress?: ListenAddress;
  readonly logLevel: LogLevel;
  readonly probe?: ListenAddress;
}

export interface RelaySettings extends Pick<Flags, 'endpointCa' | 'concurrency' | 'drainSeconds' | 'logLevel'> {
  readonly cluster: string;
  /** `…/v1/clusters/<name>`. */
  readonly endpointUrl: string;
  /** Set if attest has its own URL: a Lambda function URL leads to one function only. */
  readonly attestUrl: string | undefined;
  readonly caller: Caller;
  /** For the endpoint and STS. */
  readonly proxy: ForwardProxy | undefined;
  /** Names this replica in the lease, in Events and to AWS; the host name if undefined. */
  readonly podName: string | undefined;
  readonly login: KubernetesLogin;
  readonly signers:
    | { readonly kind: 'flags'; readonly names: readonly string[]; readonly inFlightPerRequester: number }
    /** Path of a countersign.yaml. */
    | { readonly kind: 'file'; readonly path: string };
  readonly lease: { readonly namespace: string; readonly name: string } | undefined;
  readonly probes: ListenAddress;
  readonly trust: KeptTrust | undefined;
  readonly webhook: WebhookSettings | undefined;
  readonly clusterApi: ClusterApiSettings;
}

const variables = {
  '--url': 'COUNTERSIGN_URL',
  '--attest-url': 'COUNTERSIGN_ATTEST_URL',
  '--cluster': 'COUNTERSIGN_CLUSTER',
  '--caller-role': 'COUNTERSIGN_CALLER_ROLE',
  '--config': 'COUNTERSIGN_CONFIG',
  '--log-level': 'COUNTERSIGN_LOG_LEVEL',
} as const;

const examples = `
Environment: ${Object.entries(variables)
  .map(([flag, variable]) => `${variable} (${flag})`)
  .join(', ')}.
The endpoint and STS are called through the proxy of HTTPS_PROXY, except hosts of NO_PROXY; the API server is not.

Examples:
  watch-relay --url https://sign.example.com --cluster prod --leader-elect
  watch-relay --url http://127.0.0.1:8400/v1/clusters/demo --kubeconfig ~/.kube/config --metrics-address 127.0.0.1:8080
  watch-relay --url https://sign.example.com --cluster prod --token-file /var/run/secrets/countersign/token
  watch-relay --url https://sign.example.com --cluster prod --signer-name k8s.example.com/web
  watch-relay --url https://sign.example.com --cluster prod --config countersign.yaml
  watch-relay --probe 127.0.0.1:8080

Exit codes: 0 stopped by a signal (--probe: ready), 1 stopped by a second signal or a defect (--probe: not ready), 2 usage, 3 unusable file or port.`;

function createProgram(): Command {
  const program = new Command('watch-relay')
    .usage('--url <URL> [--cluster <NAME>] [options]')
    .description(
      'Forwards approved CertificateSigningRequests to a countersign endpoint and writes the certificates back.',
    )
    .option('--url <URL>', 'the endpoint, or its /v1/clusters/<name>')
    .option('--attest-url <URL>', 'URL of attest, if it differs from --url (frontDoor: functionUrl)')
    .option('--cluster <NAME>', 'name of this cluster, unless the URL contains it')
    .option('--endpoint-ca <FILE>', "CAs to trust for the endpoint instead of the system's", file)
    .option('--token-file <FILE>', 'send the endpoint the token in this file, which is read for each call', file)
    .addOption(new Option('--caller-role <ARN>', 'sign calls to the endpoint as this IAM role').conflicts('tokenFile'))
    .option('--kubeconfig <FILE>', "log in to the API server with this instead of the pod's service account", file)
    .option('--context <NAME>', 'a context of that kubeconfig')
    .addOption(
      new Option('--config <FILE>', 'countersign.yaml: the signers, who approves for each, which are attested')
        .argParser(file)
        .conflicts(['signerName', 'inFlightPerRequester']),
    )
    .option(
      '--signer-name <NAME>',
      `a signer; may be repeated (default: ${defaultSignerNames.join(', ')})`,
      signerNames,
    )
    .option(
      '--in-flight-per-requester <N>',
      'requests of one requester in flight at most, 1 to 256',
      wholeNumber(1, 256),
      defaultInFlightPerRequester,
    )
    .option('--concurrency <N>', 'requests in flight at most, 1 to 256', wholeNumber(1, 256), defaultConcurrency)
    .option('--drain-seconds <N>', 'how long to wait for requests in flight after SIGTERM', wholeNumber(0, 3_600), 20)
    .option('--leader-elect', 'elect a leader, so that only one replica works')
    .option('--lease-namespace <NAMESPACE>', 'default: countersign-system')
    .option('--lease-name <NAME>', 'default: countersign-watch-relay')
    .option(
      '--metrics-address <ADDRESS>',
      'host:port of /healthz, /readyz and /metrics (default: :8080)',
      listenAddress,
    );
  for (const flag of [...clusterApiFlags, ...trustFlags, ...webhookFlags]) program.addOption(flag);
  return program
    .option('--probe <ADDRESS>', 'only ask the relays at host:port whether they are healthy and ready', listenAddress)
    .addOption(new Option('--log-level <LEVEL>').choices(logLevels).default('info'))
    .addHelpText('after', examples);
}

/** Never throws; `message` names the wrong flag. */
export function parseSettings(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ParsedSettings {
  let printed = '';
  const program = createProgram()
    .exitOverride()
    .configureOutput({ writeOut: (text) => (printed += text), writeErr: () => undefined });
  // An empty variable counts as unset. The last value of a flag is used.
  const fromEnvironment = Object.entries(variables).flatMap(([flag, variable]) =>
    environment[variable] ? [`${flag}=${environment[variable]}`] : [],
  );
  try {
    const flags = program.parse([...fromEnvironment, ...argv], { from: 'user' }).opts<Flags>();
    const { probe } = flags;
    if (probe !== undefined) return { kind: 'probe', target: { host: '127.0.0.1', ...probe } };
    return { kind: 'settings', settings: settingsOf(flags, environment) };
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed') return { kind: 'help', text: printed };
    return { kind: 'wrong', message: error.message.replace(/^error: /, '') };
  }
}

function settingsOf(flags: Flags, environment: Readonly<Record<string, string | undefined>>): RelaySettings {
  const { concurrency, drainSeconds, endpointCa, logLevel } = flags;
  if (flags.url === undefined) throw new InvalidArgumentError('--url or COUNTERSIGN_URL must give the endpoint');
  const endpoint = endpointOf(flags.url, flags.cluster);
  return {
    cluster: endpoint.cluster,
    endpointUrl: endpoint.url,
    attestUrl: attestEndpoint(flags.attestUrl, endpoint),
    endpointCa,
    caller: parseCaller(flags, environment, endpoint.url),
    proxy: proxyOf(environment),
    podName: environment['POD_NAME'] || undefined,
    login: loginOf(flags, environment['KUBERNETES_SERVICE_HOST'] !== undefined),
    signers:
      flags.config === undefined
        ? {
            kind: 'flags',
            names: [...new Set(flags.signerName ?? defaultSignerNames)],
            inFlightPerRequester: flags.inFlightPerRequester,
          }
        : { kind: 'file', path: flags.config },
    concurrency,
    drainSeconds,
    lease: leaseOf(flags),
    probes: flags.metricsAddress ?? { port: 8080 },
    trust: trustOf(flags),
    webhook: webhookOf(flags),
    clusterApi: clusterApiOf(flags),
    logLevel,
  };
}

function proxyOf(environment: Readonly<Record<string, string | undefined>>): RelaySettings['proxy'] {
  try {
    return forwardProxy(environment);
  } catch (error) {
    throw new InvalidArgumentError(errorMessage(error));
  }
}

function loginOf({ kubeconfig: path, context }: Flags, inCluster: boolean): RelaySettings['login'] {
  if (path !== undefined) return { kind: 'kubeconfig', path, ...(context === undefined ? {} : { context }) };
  if (!inCluster) throw new InvalidArgumentError('--kubeconfig is needed outside a cluster');
  if (context !== undefined) throw new InvalidArgumentError('--context needs --kubeconfig');
  return { kind: 'inCluster' };
}

function leaseOf({ leaderElect, leaseNamespace, leaseName }: Flags): RelaySettings['lease'] {
  if (leaderElect === true)
    return { namespace: leaseNamespace ?? 'countersign-system', name: leaseName ?? 'countersign-watch-relay' };
  if ((leaseNamespace ?? leaseName) !== undefined) throw new InvalidArgumentError('--lease-* needs --leader-elect');
  return undefined;
}

function signerNames(name: string, before: readonly string[] = []): readonly string[] {
  if (!isSignerName(name)) throw new InvalidArgumentError('It is not of the form domain.tld/name.');
  return [...before, name];
}
