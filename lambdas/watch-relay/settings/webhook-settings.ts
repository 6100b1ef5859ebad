/** The webhook proxy's part of flags and help. */
import { listenAddress } from './listen-address.ts';
import type { ListenAddress } from './listen-address.ts';

export interface WebhookSettings {
  readonly address: ListenAddress;
  /** PEM files; replaced ones are taken up. */
  readonly certFile: string;
  readonly keyFile: string;
  /** What is given here is asked of every caller. */
  readonly tokenFile?: string;
  readonly client?: {
    readonly caFile: string;
    /** Whole, as in `O=example,CN=gcp-controller-manager`. */
    readonly subject: string;
  };
}

export const webhookOptions = {
  'webhook-proxy': { type: 'string' },
  'webhook-cert': { type: 'string' },
  'webhook-key': { type: 'string' },
  'webhook-token-file': { type: 'string' },
  'webhook-client-ca': { type: 'string' },
  'webhook-client-subject': { type: 'string' },
} as const;

export const webhookHelp = `\
  --webhook-proxy A     host:port or :port: serve webhook clients over TLS and forward
                        the stored request for them; off by default, and then with
    --webhook-cert FILE, --webhook-key FILE         the server's certificate and key
    --webhook-token-file FILE                       the token every caller must show
    --webhook-client-ca FILE                        or the CA (and no other) and the
    --webhook-client-subject O=example,CN=caller    subject of every caller's certificate`;

type Flags = { readonly [name in keyof typeof webhookOptions]?: string | undefined };

export function parseWebhook(flags: Flags): { readonly webhook?: WebhookSettings } | { readonly problem: string } {
  const given = (Object.keys(webhookOptions) as (keyof Flags)[]).filter((name) => flags[name] !== undefined);
  const empty = given.find((name) => flags[name] === '');
  if (empty !== undefined) return { problem: `--${empty}: is empty` };
  const {
    'webhook-proxy': text,
    'webhook-cert': certFile,
    'webhook-key': keyFile,
    'webhook-token-file': tokenFile,
    'webhook-client-ca': caFile,
    'webhook-client-subject': subject,
  } = flags;
  if (text === undefined) return given.length === 0 ? {} : { problem: `--${given[0]} needs --webhook-proxy` };
  const address = listenAddress(text);
  if (address === undefined) return { problem: `--webhook-proxy ${text}: not host:port or :port` };
  if (certFile === undefined || keyFile === undefined)
    return { problem: '--webhook-proxy needs --webhook-cert and --webhook-key: it speaks TLS only' };
  if ((caFile === undefined) !== (subject === undefined))
    return { problem: '--webhook-client-ca and --webhook-client-subject need each other' };
  if (tokenFile === undefined && caFile === undefined)
    return {
      problem: '--webhook-proxy needs --webhook-token-file or --webhook-client-ca: it serves nobody it does not know',
    };
  return {
    webhook: {
      address,
      certFile,
      keyFile,
      ...(tokenFile === undefined ? {} : { tokenFile }),
      ...(caFile === undefined || subject === undefined ? {} : { client: { caFile, subject } }),
    },
  };
}
