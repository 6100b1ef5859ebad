/** The flags of the webhook proxy. */
import { InvalidArgumentError, Option } from 'commander';
import { file, listenAddress } from './flag-values.ts';
import type { ListenAddress } from './flag-values.ts';

export interface WebhookSettings {
  readonly address: ListenAddress;
  /** PEM files. When they are replaced, the server uses the new ones. */
  readonly certFile: string;
  readonly keyFile: string;
  /** At least one of `tokenFile` and `client` is set. If both are, a caller must satisfy both. */
  readonly tokenFile?: string;
  readonly client?: {
    readonly caFile: string;
    /** The whole subject, such as `O=example,CN=gcp-controller-manager`. */
    readonly subject: string;
  };
}

export interface WebhookFlags {
  readonly webhookProxy?: ListenAddress;
  readonly webhookCert?: string;
  readonly webhookKey?: string;
  readonly webhookTokenFile?: string;
  readonly webhookClientCa?: string;
  readonly webhookClientSubject?: string;
}

export const webhookFlags: readonly Option[] = [
  new Option(
    '--webhook-proxy <ADDRESS>',
    'host:port or :port: serve webhook clients over TLS and forward the stored request for them (default: off)',
  ).argParser(listenAddress),
  new Option('--webhook-cert <FILE>', "the server's certificate").argParser(file),
  new Option('--webhook-key <FILE>', "the key of the server's certificate").argParser(file),
  new Option('--webhook-token-file <FILE>', 'the token that every caller must present').argParser(file),
  new Option('--webhook-client-ca <FILE>', "the only CA of callers' certificates").argParser(file),
  new Option('--webhook-client-subject <SUBJECT>', "subject of every caller's certificate: O=example,CN=caller"),
];

export function webhookOf(flags: WebhookFlags): WebhookSettings | undefined {
  const { webhookProxy: address, webhookCert: certFile, webhookKey: keyFile, webhookTokenFile: tokenFile } = flags;
  const { webhookClientCa: caFile, webhookClientSubject: subject } = flags;
  if (address === undefined) {
    const given = webhookFlags.find((flag) => flag.attributeName() in flags);
    if (given === undefined) return undefined;
    throw new InvalidArgumentError(`--${given.name()} needs --webhook-proxy`);
  }
  if (certFile === undefined || keyFile === undefined)
    throw new InvalidArgumentError('--webhook-proxy needs --webhook-cert and --webhook-key: it serves TLS only');
  if ((caFile === undefined) !== (subject === undefined) || subject === '')
    throw new InvalidArgumentError('--webhook-client-ca and --webhook-client-subject need each other');
  if (tokenFile === undefined && caFile === undefined)
    throw new InvalidArgumentError(
      '--webhook-proxy needs --webhook-token-file or --webhook-client-ca: it serves authenticated callers only',
    );
  return {
    address,
    certFile,
    keyFile,
    ...(tokenFile === undefined ? {} : { tokenFile }),
    ...(caFile === undefined || subject === undefined ? {} : { client: { caFile, subject } }),
  };
}
