import { parseArgs } from 'node:util';
import { attestEndpoint, endpointUrl, parseCaller } from './endpoint-settings.ts';
import type { Caller } from './endpoint-settings.ts';
import { listenAddress } from './listen-address.ts';
import type { ListenAddress } from './listen-address.ts';
import { defaultInFlightPerRequester } from './signers.ts';
import { parseWebhook, webhookHelp, webhookOptions } from './webhook-settings.ts';
import type { WebhookSettings } from './webhook-settings.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';

/** Everything the relay can be told; the text below is its documentation. */
export interface RelaySettings {
  readonly cluster: string;
  /** `…/v1/clusters/<name>`. */
  readonly endpointUrl: string;
  /** Likewise, where attest is not reached there too: each function URL is one function's. */
  readonly attestUrl?: string;
  /** File with CA certificates to trust for the endpoint instead of the system's. */
  readonly endpointCa?: string;
  readonly caller: Caller;
  /** Tells this replica from its siblings in the lease, in Events and to AWS; without it the host's name does. */
  readonly podName?: string;
  readonly login:
    { readonly kind: 'kubeconfig'; readonly path: string; readonly context?: string } | { readonly kind: 'inCluster' };
  readonly signers:
    | { readonly kind: 'flags'; readonly names: readonly string[]; readonly inFlightPerRequester: number }
    /** countersign.yaml says it. */
    | { readonly kind: 'file'; readonly path: string };
  readonly concurrency: number;
  readonly drainSeconds: number;
  readonly lease?: { readonly namespace: string; readonly name: string };
  readonly probes: ListenAddress;
  readonly webhook?: WebhookSettings;
  readonly logLevel: LogLevel;
}

/** Enough for the relay's own calls and, beside them, those of webhook clients: each may have as many under way. */
export function endpointConnections({ concurrency, webhook }: Pick<RelaySettings, 'concurrency' | 'webhook'>): number {
  return webhook === undefined ? concurrency : 2 * concurrency;
}

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

export type ParsedSettings =
  | { readonly kind: 'settings'; readonly settings: RelaySettings }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'wrong'; readonly message: string };

/** Those of the in-tree signers that the API server lets anybody ask. */
export const defaultSignerNames = [
  'kubernetes.io/kube-apiserver-client',
  'kubernetes.io/kube-apiserver-client-kubelet',
  'kubernetes.io/kubelet-serving',
] as const;

export const helpText = `Forwards approved CertificateSigningRequests to a countersign endpoint and writes the certificates back.

Usage: watch-relay --url URL [--cluster NAME] [options]

  --url URL             the endpoint, or its /v1/clusters/<name>          [COUNTERSIGN_URL]
  --attest-url URL      where attest is, if elsewhere (frontDoor: functionUrl)  [COUNTERSIGN_ATTEST_URL]
  --cluster NAME        which cluster this is, unless the URL says so     [COUNTERSIGN_CLUSTER]
  --endpoint-ca FILE    trust these CAs for the endpoint, not the system's
  --token-file FILE     show the endpoint the token in this file, read anew for each call
  --caller-role ARN     sign calls to the endpoint as this IAM role       [COUNTERSIGN_CALLER_ROLE]
  --kubeconfig FILE     log in to the API server with this; without it as the pod's service account
  --context NAME        a context of that kubeconfig
  --config FILE         countersign.yaml: which signers there are, who approves for  [COUNTERSIGN_CONFIG]
                        each, which are attested; instead of the next two
  --signer-name NAME    relay this signer's requests; repeat it for more
                        (default: ${defaultSignerNames.join(',\n                        ')})
  --in-flight-per-requester N
                        requests of one requester at once, 1 to 256 (default: ${defaultInFlightPerRequester})
  --concurrency N       requests at once at most, 1 to 256 (default: 32)
  --drain-seconds N     on SIGTERM, how long to wait for requests under way (default: 20)
  --leader-elect        of several replicas let one work
  --lease-namespace NS  (default: countersign-system)
  --lease-name NAME     (default: countersign-watch-relay)
  --metrics-address A   host:port or :port of /healthz, /readyz and /metrics (default: :8080)
${webhookHelp}
  --log-level LEVEL     ${logLevels.join(', ')} (default: info)           [COUNTERSIGN_LOG_LEVEL]
  --help

Examples:
  watch-relay --url https://sign.example.com --cluster prod --leader-elect
  watch-relay --url http://127.0.0.1:8400/v1/clusters/demo --kubeconfig ~/.kube/config --metrics-address 127.0.0.1:8080
  watch-relay --url https://sign.example.com --cluster prod --token-file /var/run/secrets/countersign/token
  watch-relay --url https://sign.example.com --cluster prod --signer-name k8s.example.com/web
  watch-relay --url https://sign.example.com --cluster prod --config countersign.yaml

Exit codes: 0 stopped by a signal, 1 stopped by a second one, or a defect, 2 usage, 3 kubeconfig, another file or a port.
`;

/** Reads flags and environment; flags win. Never throws: what is wrong is said in a sentence that names it. */
export function parseSettings(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ParsedSettings {
  let flags;
  try {
    flags = parseArgs({
      args: [...argv],
      strict: true,
      allowPositionals: false,
      options: {
        url: { type: 'string' },
        'attest-url': { type: 'string' },
        cluster: { type: 'string' },
        'endpoint-ca': { type: 'string' },
        'token-file': { type: 'string' },
        'caller-role': { type: 'string' },
        kubeconfig: { type: 'string' },
        context: { type: 'string' },
        config: { type: 'string' },
        'in-flight-per-requester': { type: 'string' },
        'signer-name': { type: 'string', multiple: true },
        concurrency: { type: 'string' },
        'drain-seconds': { type: 'string' },
        'leader-elect': { type: 'boolean' },
        'lease-namespace': { type: 'string' },
        'lease-name': { type: 'string' },
        'metrics-address': { type: 'string' },
        'log-level': { type: 'string' },
        ...webhookOptions,
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    return wrong(errorMessage(error));
  }
  if (flags.help === true) return { kind: 'help', text: helpText };

  const url = flags.url ?? environment['COUNTERSIGN_URL'];
  if (!url) return wrong('--url or COUNTERSIGN_URL must say where the endpoint is');
  const endpoint = endpointUrl(url, flags.cluster ?? (environment['COUNTERSIGN_CLUSTER'] || undefined));
  if ('problem' in endpoint) return wrong(endpoint.problem);
  const parsedCaller = parseCaller(flags, environment, endpoint.url);
  if ('problem' in parsedCaller) return wrong(parsedCaller.problem);
  const attest = attestEndpoint(flags['attest-url'] ?? environment['COUNTERSIGN_ATTEST_URL'], endpoint);
  if (attest !== undefined && 'problem' in attest) return wrong(attest.problem);

  const inCluster = environment['KUBERNETES_SERVICE_HOST'] !== undefined;
  if (flags.kubeconfig === undefined && !inCluster) return wrong('--kubeconfig is needed outside a cluster');
  if (flags.kubeconfig === undefined && flags.context !== undefined) return wrong('--context needs --kubeconfig');

  const parsedSigners = parseSigners(flags, environment['COUNTERSIGN_CONFIG']);
  if ('problem' in parsedSigners) return wrong(parsedSigners.problem);

  const concurrency = wholeNumber(flags.concurrency ?? '32', 1, 256);
  if (concurrency === undefined) return wrong(`--concurrency ${flags.concurrency}: not a number from 1 to 256`);
  const drainSeconds = wholeNumber(flags['drain-seconds'] ?? '20', 0, 3_600);
  if (drainSeconds === undefined)
    return wrong(`--drain-seconds ${flags['drain-seconds']}: not a number from 0 to 3600`);

  const { 'lease-namespace': namespace, 'lease-name': leaseName } = flags;
  const leaderElect = flags['leader-elect'] === true;
  if (!leaderElect && (namespace ?? leaseName) !== undefined) return wrong('--lease-* needs --leader-elect');

  const address = flags['metrics-address'] ?? ':8080';
  const probes = listenAddress(address);
  if (probes === undefined) return wrong(`--metrics-address ${address}: not host:port or :port`);
  const webhook = parseWebhook(flags);
  if ('problem' in webhook) return wrong(webhook.problem);

  const logLevel = flags['log-level'] ?? (environment['COUNTERSIGN_LOG_LEVEL'] || 'info');
  if (!isLogLevel(logLevel)) return wrong(`log level ${logLevel}: not one of ${logLevels.join(', ')}`);

  return {
    kind: 'settings',
    settings: {
      cluster: endpoint.cluster,
      endpointUrl: endpoint.url,
      ...(attest === undefined ? {} : { attestUrl: attest.url }),
      ...(flags['endpoint-ca'] === undefined ? {} : { endpointCa: flags['endpoint-ca'] }),
      caller: parsedCaller.caller,
      ...(environment['POD_NAME'] ? { podName: environment['POD_NAME'] } : {}),
      login:
        flags.kubeconfig === undefined
          ? { kind: 'inCluster' }
          : {
              kind: 'kubeconfig',
              path: flags.kubeconfig,
              ...(flags.context === undefined ? {} : { context: flags.context }),
            },
      signers: parsedSigners,
      concurrency,
      drainSeconds,
      ...(leaderElect
        ? { lease: { namespace: namespace ?? 'countersign-system', name: leaseName ?? 'countersign-watch-relay' } }
        : {}),
      probes,
      ...webhook,
      logLevel,
    },
  };
}

function parseSigners(
  flags: {
    readonly config?: string | undefined;
    readonly 'signer-name'?: readonly string[] | undefined;
    readonly 'in-flight-per-requester'?: string | undefined;
  },
  configured: string | undefined,
): RelaySettings['signers'] | { readonly problem: string } {
  const { 'signer-name': given, 'in-flight-per-requester': atOnce } = flags;
  const path = flags.config ?? (configured || undefined);
  if (path === '') return { problem: '--config: names no file' };
  if (path !== undefined) {
    // Two places that say who is signed for would be one too many to review.
    if (given !== undefined) return { problem: '--signer-name: the file of --config says which signers there are' };
    if (atOnce !== undefined) return { problem: '--in-flight-per-requester: the file of --config says it' };
    return { kind: 'file', path };
  }
  const names = [...new Set(given ?? defaultSignerNames)];
  const badName = names.find((name) => !/^[a-z0-9.-]+\.[a-z0-9.-]+\/[A-Za-z0-9._-]+$/.test(name));
  if (badName !== undefined) return { problem: `--signer-name ${badName}: not of the form domain.tld/name` };
  const inFlightPerRequester = wholeNumber(atOnce ?? String(defaultInFlightPerRequester), 1, 256);
  if (inFlightPerRequester === undefined)
    return { problem: `--in-flight-per-requester ${atOnce}: not a number from 1 to 256` };
  return { kind: 'flags', names, inFlightPerRequester };
}

function wholeNumber(text: string, least: number, most: number): number | undefined {
  if (!/^\d{1,6}$/.test(text)) return undefined;
  const number = Number(text);
  return number >= least && number <= most ? number : undefined;
}

function isLogLevel(text: string): text is LogLevel {
  return (logLevels as readonly string[]).includes(text);
}

function wrong(message: string): ParsedSettings {
  return { kind: 'wrong', message };
}
