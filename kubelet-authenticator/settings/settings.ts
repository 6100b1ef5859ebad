/**
 * What this node was told when it joined: one JSON file that `join` writes and root may read, each value of which a flag
 * of the command line takes the place of. No secret stands in it; those are in the files it names.
 *
 * Read on every call of the kubelet, so nothing but `node:` is loaded here.
 */
import { isAbsolute, join } from 'node:path';

export const keyKinds = ['P-256', 'P-384', 'P-521', 'RSA-2048', 'RSA-3072', 'RSA-4096', 'Ed25519'] as const;
export type NodeKeyKind = (typeof keyKinds)[number];

/** Those of providers/, as on the wire. */
export const nodeProviders = ['aws', 'insecure'] as const;
export type NodeProvider = (typeof nodeProviders)[number];

/** Versions of evidence that each provider makes, newest first (docs/attestation.md). */
export const evidenceVersions = {
  aws: ['aws/v2', 'aws/v1'],
  insecure: ['insecure/v1'],
} as const satisfies Readonly<Record<NodeProvider, readonly string[]>>;

export interface Settings {
  /** The certificate will say `system:node:<nodeName>`. */
  readonly nodeName: string;
  /** The cluster's name in countersign.yaml; part of the proof. */
  readonly clusterName: string;
  /** The deployment's own name, `<account>/<region>/<cluster>` unless configured: proofs for another one are none here. */
  readonly audience: string;
  readonly provider: NodeProvider;
  /** Of the API server: https, or http on loopback. */
  readonly server: string;
  /** PEM: who may speak for the API server. */
  readonly certificateAuthorityFile: string;
  /** Only ever for asking for a certificate without having one: a kubeconfig, or JSON `{"token": "abcdef.0123456789abcdef"}`. */
  readonly bootstrapCredentialsFile: string;
  /** Key, certificate and the request under way. On a disk that survives a reboot, or the node must be reset by hand. */
  readonly cacheDirectory: string;
  readonly signerName: string;
  /** Absent where serving certificates are left to the kubelet (`serverTLSBootstrap`). */
  readonly servingSignerName?: string;
  /** PEM: a certificate of ours that none of these issued is worth nothing to the API server, and is asked for anew. */
  readonly clientCaBundleFile?: string;
  readonly keyKind: NodeKeyKind;
  /** The only version of evidence to send. Absent: the newest, and an older one where the signing side takes only that. */
  readonly evidenceVersion?: string;
  /** Names of the serving certificate besides those that the platform tells: IP addresses and DNS names. */
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
  /** May be given several times. */
  readonly 'serving-name'?: readonly string[];
  readonly 'keep-bootstrap-token'?: boolean;
};

export type ResolvedSettings =
  { readonly ok: true; readonly settings: Settings } | { readonly ok: false; readonly problems: readonly string[] };

/** Cluster API's proposal: one pair of signers for each provider; an insecure one has no serving signer. */
export function defaultSignerName(provider: NodeProvider): string {
  return `cluster.x-k8s.io/kube-apiserver-client-kubelet-${provider}`;
}

/** The file that holds the serving certificate and its key: the kubelet's `tlsCertFile` and `tlsPrivateKeyFile` both. */
export function servingFile({ cacheDirectory }: Pick<Settings, 'cacheDirectory'>): string {
  return join(cacheDirectory, 'serving.pem');
}

/** As `join` writes them. */
export function encodeSettings(settings: Settings): string {
  return `${JSON.stringify({ version: settingsVersion, ...settings }, null, 2)}\n`;
}

/** `text` of the settings file; absent where flags say everything. All that is wrong is told at once. */
export function resolveSettings(text: string | undefined, flags: SettingFlags = {}): ResolvedSettings {
  const file = text === undefined ? {} : readFile(text);
  if (typeof file === 'string') return { ok: false, problems: [file] };
  const problems = Object.keys(file)
    .filter((key) => !knownKeys.has(key))
    .map((key) => `the settings file has an unknown key ${JSON.stringify(key.slice(0, 64))}`);
  if (text !== undefined && file['version'] !== settingsVersion)
    problems.push(`the settings file is not of version ${settingsVersion}`);

  const given = new Map<string, unknown>(Object.entries(file));
  for (const [flag, key] of Object.entries(settingFlags)) {
    const value = flags[flag as SettingFlag];
    if (value !== undefined) given.set(key, value);
  }
  const required = (key: keyof Settings, fallback?: string): string => {
    const value = given.get(key) ?? fallback;
    if (typeof value === 'string' && value !== '') return value;
    problems.push(value === undefined ? `${nameOf(key)} is missing` : `${nameOf(key)} is not a text`);
    return '';
  };
  const optional = (key: keyof Settings): string | undefined =>
    given.get(key) === undefined ? undefined : required(key);
  const path = (key: keyof Settings, value: string | undefined): void => {
    // A relative path would mean another file to whoever starts the kubelet elsewhere.
    if (value !== undefined && value !== '' && !isAbsolute(value)) problems.push(`${nameOf(key)} is not absolute`);
  };

  const provider = oneOf(nodeProviders, required('provider'));
  if (provider === undefined && given.has('provider'))
    problems.push(`${nameOf('provider')} is none of ${nodeProviders.join(', ')}`);
  const keyKind = oneOf(keyKinds, required('keyKind', 'P-256'));
  if (keyKind === undefined) problems.push(`${nameOf('keyKind')} is none of ${keyKinds.join(', ')}`);
  const nodeName = required('nodeName');
  if (nodeName !== '' && !isNodeName(nodeName)) problems.push(`${nameOf('nodeName')} is not a node name`);
  const server = required('server');
  if (server !== '' && !isServer(server))
    problems.push(`${nameOf('server')} is not an https address (http only on loopback)`);
  const servingNames = flags['serving-name'] ?? given.get('servingNames') ?? [];
  if (!isNames(servingNames)) problems.push('servingNames (--serving-name) are not IP addresses and DNS names');

  const keepBootstrapToken = flags['keep-bootstrap-token'] ?? given.get('keepBootstrapToken') ?? false;
  if (typeof keepBootstrapToken !== 'boolean')
    problems.push('keepBootstrapToken (--keep-bootstrap-token) is not true or false');
  const servingSignerName = optional('servingSignerName');
  const clientCaBundleFile = optional('clientCaBundleFile');
  const evidenceVersion = optional('evidenceVersion');
  const versions = evidenceVersions[provider ?? 'aws'];
  if (evidenceVersion !== undefined && oneOf<string>(versions, evidenceVersion) === undefined)
    problems.push(`${nameOf('evidenceVersion')} is none of ${versions.join(', ')}`);
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
    // Said below: the parser's own message quotes the text.
  }
  return 'the settings file is not a JSON object';
}

/** `nodeName (--node-name)`: whoever reads the message may have set either. */
function nameOf(key: keyof Settings): string {
  const flag = Object.entries(settingFlags).find(([, setting]) => setting === key)?.[0];
  return flag === undefined ? key : `${key} (--${flag})`;
}

function oneOf<T extends string>(values: readonly T[], value: string): T | undefined {
  return values.find((known) => known === value);
}

/** A DNS subdomain (RFC 1123), as names of Node objects are. */
function isNodeName(name: string): boolean {
  return name.length <= 253 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(name);
}

function isServer(text: string): boolean {
  // Credentials travel there: without TLS only where there is nobody in between.
  return /^https:\/\/[^/?#@\s]+\/?$|^http:\/\/(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?\/?$/.test(text);
}

function isNames(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    // Addresses by their characters only: node:net, which knows them, would be loaded on every call of the kubelet.
    value.every((name) => typeof name === 'string' && (/^[0-9a-f]*:[0-9a-f:.]+$/i.test(name) || isNodeName(name)))
  );
}
