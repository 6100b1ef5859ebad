/**
 * The settings of a node: one JSON file that `join` writes and root can read. A flag overrides each value. The file contains
 * no secrets, only the paths of files that do.
 *
 * Loaded by every call of the kubelet: imports only `node:` modules.
 */
import { isAbsolute, join } from 'node:path';

export const keyKinds = ['P-256', 'P-384', 'P-521', 'RSA-2048', 'RSA-3072', 'RSA-4096', 'Ed25519'] as const;
export type NodeKeyKind = (typeof keyKinds)[number];

/** The wire names of providers/. */
export const nodeProviders = ['aws', 'insecure'] as const;
export type NodeProvider = (typeof nodeProviders)[number];

/** Versions of evidence that each provider makes, newest first (docs/attestation.md). */
export const evidenceVersions = {
  aws: ['aws/v2', 'aws/v1'],
  insecure: ['insecure/v1'],
} as const satisfies Readonly<Record<NodeProvider, readonly string[]>>;

export interface Settings {
  /** The certificate's common name will be `system:node:<nodeName>`. */
  readonly nodeName: string;
  /** The cluster's name in countersign.yaml; part of the evidence. */
  readonly clusterName: string;
  /** The deployment, `<account>/<region>/<cluster>` unless configured. It refuses evidence for another audience. */
  readonly audience: string;
  readonly provider: NodeProvider;
  /** The API server's URL: https, or http on loopback. */
  readonly server: string;
  /** PEM: the CAs of the API server. */
  readonly certificateAuthorityFile: string;
  /** Used only without a valid certificate: a kubeconfig, or JSON `{"token": "abcdef.0123456789abcdef"}`. */
  readonly bootstrapCredentialsFile: string;
  /** Keys, certificates and pending requests. Must survive a reboot: the machine is registered with the key. */
  readonly cacheDirectory: string;
  readonly signerName: string;
  /** Absent if the kubelet requests its serving certificate itself (`serverTLSBootstrap`). */
  readonly servingSignerName?: string;
  /** PEM: the CAs of client certificates that the API server trusts. A certificate of another CA is replaced. */
  readonly clientCaBundleFile?: string;
  readonly keyKind: NodeKeyKind;
  /** The only version of evidence to send. Absent: the newest that the approver supports. */
  readonly evidenceVersion?: string;
  /** IP addresses and DNS names of the serving certificate, in addition to those that the platform assigned. */
  readonly servingNames: readonly string[];
  /** `true`: the bootstrap token stays on disk after the first certificate. Default: it is removed (login.ts). */
  readonly keepBootstrapToken?: boolean;
}

export const defaultSettingsFile = '/etc/kubernetes/kubelet-authenticator/settings.json';
export const defaultCacheDirectory = '/var/lib/kubelet/pki/authenticator';
export const settingsVersion = 1;

/** Flag → its setting. */
export const settingFlags = {
  'node-name': 'nodeName',
  'cluster-name': 'clusterName',
  audience: 'audience',
  provider: 'provider',
  server: 'server',
  'certificate-authority': 'certificateAuthorityFile',
  'bootstrap-credentials': 'bootstrapCredentialsFile',
  'cache-dir': 'cacheDirectory',
  'signer-name': 'signerName',
  'serving-signer-name': 'servingSignerName',
  'client-ca-bundle': 'clientCaBundleFile',
  'key-kind': 'keyKind',
  'evidence-version': 'evidenceVersion',
} as const satisfies Readonly<Record<string, keyof Settings>>;
export type SettingFlag = keyof typeof settingFlags;

export type SettingFlags = { readonly [flag in SettingFlag]?: string } & {
  /** Repeatable. */
  readonly 'serving-name'?: readonly string[];
  readonly 'keep-bootstrap-token'?: boolean;
};

export type ResolvedSettings =
  { readonly ok: true; readonly settings: Settings } | { readonly ok: false; readonly problems: readonly string[] };

/** Cluster API's proposal: one pair of signers for each provider. `insecure` has no serving signer. */
export function defaultSignerName(provider: NodeProvider): string {
  return `cluster.x-k8s.io/kube-apiserver-client-kubelet-${provider}`;
}

/** The file that holds the serving certificate and its key: the kubelet's `tlsCertFile` and `tlsPrivateKeyFile` both. */
export function servingFile({ cacheDirectory }: Pick<Settings, 'cacheDirectory'>): string {
  return join(cacheDirectory, 'serving.pem');
}

/** The text of the settings file. */
export function encodeSettings(settings: Settings): string {
  return `${JSON.stringify({ version: settingsVersion, ...settings }, null, 2)}\n`;
}

/** `text` of the settings file; undefined if it does not exist. Reports all problems at once. */
export function resolveSettings(text: string | undefined, flags: SettingFlags = {}): ResolvedSettings {
  const file = text === undefined ? {} : readFile(text);
  if (typeof file === 'string') return { ok: false, problems: [file] };
  const problems = Object.keys(file)
    .filter((key) => !knownKeys.has(key))
    .map((key) => `the settings file has an unknown key ${JSON.stringify(key.slice(0, 64))}`);
  if (text !== undefined && file['version'] !== settingsVersion)
    problems.push(`the settings file must have "version": ${settingsVersion}`);

  const given = new Map<string, unknown>(Object.entries(file));
  for (const [flag, key] of Object.entries(settingFlags)) {
    const value = flags[flag as SettingFlag];
    if (value !== undefined) given.set(key, value);
  }
  const required = (key: keyof Settings, fallback?: string): string => {
    const value = given.get(key) ?? fallback;
    if (typeof value === 'string' && value !== '') return value;
    problems.push(value === undefined ? `${nameOf(key)} is missing` : `${nameOf(key)} must be a non-empty string`);
    return '';
  };
  const optional = (key: keyof Settings): string | undefined =>
    given.get(key) === undefined ? undefined : required(key);
  const path = (key: keyof Settings, value: string | undefined): void => {
    // A relative path would depend on the kubelet's working directory.
    if (value !== undefined && value !== '' && !isAbsolute(value))
      problems.push(`${nameOf(key)} must be an absolute path`);
  };

  const provider = oneOf(nodeProviders, required('provider'));
  if (provider === undefined && given.has('provider'))
    problems.push(`${nameOf('provider')} must be one of ${nodeProviders.join(', ')}`);
  const keyKind = oneOf(keyKinds, required('keyKind', 'P-256'));
  if (keyKind === undefined) problems.push(`${nameOf('keyKind')} must be one of ${keyKinds.join(', ')}`);
  const nodeName = required('nodeName');
  if (nodeName !== '' && !isNodeName(nodeName)) problems.push(`${nameOf('nodeName')} is not a valid node name`);
  const server = required('server');
  if (server !== '' && !isServer(server))
    problems.push(`${nameOf('server')} must be an https URL (http only on loopback)`);
  const servingNames = flags['serving-name'] ?? given.get('servingNames') ?? [];
  if (!isNames(servingNames)) problems.push('servingNames (--serving-name) must be IP addresses and DNS names');

  const keepBootstrapToken = flags['keep-bootstrap-token'] ?? given.get('keepBootstrapToken') ?? false;
  if (typeof keepBootstrapToken !== 'boolean')
    problems.push('keepBootstrapToken (--keep-bootstrap-token) must be true or false');
  const servingSignerName = optional('servingSignerName');
  const clientCaBundleFile = optional('clientCaBundleFile');
  const evidenceVersion = optional('evidenceVersion');
  const versions = evidenceVersions[provider ?? 'aws'];
  if (evidenceVersion !== undefined && oneOf<string>(versions, evidenceVersion) === undefined)
    problems.push(`${nameOf('evidenceVersion')} must be one of ${versions.join(', ')}`);
  const settings = {
    nodeName,
    clusterName: required('clusterName'),
    audience: required('audience'),
    provider: provider ?? 'aws',
    server,
    certificateAuthorityFile: required('certificateAuthorityFile'),
    bootstrapCredentialsFile: required('bootstrapCredentialsFile'),
    cacheDirectory: required('cacheDirectory', defaultCacheDirectory),
    signerName: required('signerName', defaultSignerName(provider ?? 'aws')),
    ...(servingSignerName === undefined ? {} : { servingSignerName }),
    ...(clientCaBundleFile === undefined ? {} : { clientCaBundleFile }),
    keyKind: keyKind ?? 'P-256',
    ...(evidenceVersion === undefined ? {} : { evidenceVersion }),
    servingNames: isNames(servingNames) ? servingNames : [],
    ...(keepBootstrapToken === true ? { keepBootstrapToken } : {}),
  } satisfies Settings;
  path('certificateAuthorityFile', settings.certificateAuthorityFile);
  path('bootstrapCredentialsFile', settings.bootstrapCredentialsFile);
  path('cacheDirectory', settings.cacheDirectory);
  path('clientCaBundleFile', clientCaBundleFile);
  return problems.length > 0 ? { ok: false, problems } : { ok: true, settings };
}

const knownKeys: ReadonlySet<string> = new Set([
  'version',
  'servingNames',
  'keepBootstrapToken',
  ...Object.values(settingFlags),
]);

function readFile(text: string): Readonly<Record<string, unknown>> | string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Reported below. The parser's message is dropped, since it quotes the text.
  }
  return 'the settings file is not a JSON object';
}

/** `nodeName (--node-name)`: the value may come from the file or from the flag. */
function nameOf(key: keyof Settings): string {
  const flag = Object.entries(settingFlags).find(([, setting]) => setting === key)?.[0];
  return flag === undefined ? key : `${key} (--${flag})`;
}

function oneOf<T extends string>(values: readonly T[], value: string): T | undefined {
  return values.find((known) => known === value);
}

/** Names of Node objects are DNS subdomains (RFC 1123). */
function isNodeName(name: string): boolean {
  return name.length <= 253 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(name);
}

function isServer(text: string): boolean {
  // Credentials are sent there, so without TLS only on loopback.
  return /^https:\/\/[^/?#@\s]+\/?$|^http:\/\/(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?\/?$/.test(text);
}

function isNames(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    // Addresses are recognized by their characters: node:net would be loaded by every call of the kubelet.
    value.every((name) => typeof name === 'string' && (/^[0-9a-f]*:[0-9a-f:.]+$/i.test(name) || isNodeName(name)))
  );
}
