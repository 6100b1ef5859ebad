/**
 * The settings of a node: one JSON file that `join` writes and root can read. A flag overrides each value. The file contains
 * no secrets, only the paths of files that do.
 *
 * Loaded by every call of the kubelet, so it imports little.
 */
import { parsedObject } from '../../core/encoding/json-object.ts';
import type { NameKind } from '../../core/policy/name-templates.ts';
import { isAbsolute, join } from 'node:path';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';

export const keyKinds = ['P-256', 'P-384', 'P-521', 'RSA-2048', 'RSA-3072', 'RSA-4096', 'Ed25519'] as const;
export type NodeKeyKind = (typeof keyKinds)[number];

/** The wire names of providers/. */
const nodeProviders = ['aws', 'aws-nitrotpm', 'tpm', 'x509', 'gce', 'insecure'] as const;
export type NodeProvider = (typeof nodeProviders)[number];

/** Versions of evidence that each provider makes, newest first (docs/attestation.md). */
export const evidenceVersions = {
  aws: ['aws/v2', 'aws/v1'],
  'aws-nitrotpm': ['aws-nitrotpm/v1'],
  tpm: ['tpm/v1'],
  x509: ['x509/v1'],
  gce: ['gce/v1'],
  insecure: ['insecure/v1'],
} as const satisfies Readonly<Record<NodeProvider, readonly string[]>>;

/** Of a TPM. The operator's list names machines by this key. */
export const endorsementKeyKinds = ['rsa-2048', 'p-256', 'p-384'] as const;
export type EndorsementKeyKind = (typeof endorsementKeyKinds)[number];
/** Those that EC2 names. */
const nitroTpmKeyKinds = ['rsa-2048', 'p-384'] as const satisfies readonly EndorsementKeyKind[];
export type NitroTpmKeyKind = (typeof nitroTpmKeyKinds)[number];

export function nitroTpmKeyKind({ endorsementKey }: Pick<Settings, 'endorsementKey'>): NitroTpmKeyKind {
  return nitroTpmKeyKinds.find((kind) => kind === endorsementKey) ?? 'rsa-2048';
}

/** The kinds of names in a certificate. Not imported: that file is not needed by every call of the kubelet. */
const attestationNames = ['uri', 'cn', 'dns'] as const satisfies readonly NameKind[];

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
  /** Only of a TPM. Absent: the first of which the TPM has a certificate, else `p-256`; with `aws-nitrotpm` `rsa-2048`. */
  readonly endorsementKey?: EndorsementKeyKind;
  /** Only with provider `x509`, and required there. PEM: the certificate of this machine, then the CAs between it and the root. */
  readonly attestationCertificateFile?: string;
  /** Only with provider `x509`, and required there. PEM: the key of that certificate. */
  readonly attestationKeyFile?: string;
  /** Only with provider `x509`. The kind of name by which the approver's rule knows this machine. Absent: the first that it has. */
  readonly attestationName?: NameKind;
  /** IP addresses and DNS names of the serving certificate, in addition to those that the platform assigned. */
  readonly servingNames: readonly string[];
  /** `true`: the bootstrap token stays on disk after the first certificate. Default: it is removed (login.ts). */
  readonly keepBootstrapToken?: boolean;
}

export const defaultSettingsFile = '/etc/kubernetes/kubelet-authenticator/settings.json';
export const defaultCacheDirectory = '/var/lib/kubelet/pki/authenticator';
const settingsVersion = 1;

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
  'endorsement-key': 'endorsementKey',
  'attestation-certificate': 'attestationCertificateFile',
  'attestation-key': 'attestationKeyFile',
  'attestation-name': 'attestationName',
} as const satisfies Readonly<Record<string, keyof Settings>>;
/** Also the flags whose value is not a string. */
const allFlags = {
  ...settingFlags,
  'serving-name': 'servingNames',
  'keep-bootstrap-token': 'keepBootstrapToken',
} as const;

export type SettingFlags = { readonly [flag in keyof typeof settingFlags]?: string } & {
  readonly 'serving-name'?: readonly string[];
  readonly 'keep-bootstrap-token'?: boolean;
};

/** Cluster API's proposal: one pair of signers for each provider. `insecure` has no serving signer. */
export function defaultSignerName(provider: NodeProvider): string {
  return `cluster.x-k8s.io/kube-apiserver-client-kubelet-${provider}`;
}

/** The file that holds the serving certificate and its key: the kubelet's `tlsCertFile` and `tlsPrivateKeyFile` both. */
export function servingFile({ cacheDirectory }: Pick<Settings, 'cacheDirectory'>): string {
  return join(cacheDirectory, 'serving.pem');
}

export function encodeSettings(settings: Settings): string {
  return `${JSON.stringify({ version: settingsVersion, ...settings }, null, 2)}\n`;
}

/** `text` of the settings file; undefined if it does not exist. Reports all problems at once. */
export function resolveSettings(
  text: string | undefined,
  flags: SettingFlags = {},
): Result<Settings, readonly string[]> {
  const file = text === undefined ? { version: settingsVersion } : parsedObject(text);
  if (file === undefined) return failure(['the settings file is not a JSON object']);
  const problems = Object.keys(file)
    .filter((key) => key !== 'version' && !Object.values<string>(allFlags).includes(key))
    .map((key) => `the settings file has an unknown key ${JSON.stringify(key.slice(0, 64))}`);
  if (file['version'] !== settingsVersion) problems.push(`the settings file must have "version": ${settingsVersion}`);

  const given = new Map<string, unknown>(Object.entries(file));
  for (const [flag, key] of Object.entries(allFlags)) {
    const value = flags[flag as keyof SettingFlags];
    if (value !== undefined) given.set(key, value);
  }
  const wrong = (key: keyof Settings, problem: string): void => void problems.push(`${nameOf(key)} ${problem}`);
  const required = (key: keyof Settings, check?: Check, fallback?: string): string => {
    const value = given.get(key) ?? fallback;
    if (value === undefined) wrong(key, 'is missing');
    else if (typeof value !== 'string' || value === '') wrong(key, 'must be a non-empty string');
    else if (check?.isValid(value) === false) wrong(key, check.problem);
    else return value;
    return '';
  };
  const optional = (key: OptionalText, check?: Check): Partial<Pick<Settings, OptionalText>> =>
    given.get(key) === undefined ? {} : { [key]: required(key, check) };
  const oneOf = <T extends string>(key: keyof Settings, known: readonly [T, ...T[]], fallback?: string): T => {
    const value = required(key, among(known), fallback);
    return known.find((each) => each === value) ?? known[0];
  };

  const provider = oneOf('provider', nodeProviders);
  const keyKind = oneOf('keyKind', keyKinds, 'P-256');
  const nodeName = required('nodeName', { isValid: isNodeName, problem: 'is not a valid node name' });
  const server = required('server', { isValid: isServer, problem: 'must be an https URL (http only on loopback)' });
  const servingNames = given.get('servingNames') ?? [];
  if (!isNames(servingNames)) wrong('servingNames', 'must be IP addresses and DNS names');
  const ekKinds = provider === 'aws-nitrotpm' ? nitroTpmKeyKinds : endorsementKeyKinds;
  if (provider !== 'tpm' && provider !== 'aws-nitrotpm' && given.has('endorsementKey'))
    wrong('endorsementKey', 'is a setting of providers tpm and aws-nitrotpm');
  if (provider !== 'x509') {
    for (const key of x509Settings) if (given.has(key)) wrong(key, 'is a setting of provider x509');
  }
  const keepBootstrapToken = given.get('keepBootstrapToken') ?? false;
  if (typeof keepBootstrapToken !== 'boolean') wrong('keepBootstrapToken', 'must be true or false');
  const settings: Settings = {
    nodeName,
    clusterName: required('clusterName'),
    audience: required('audience'),
    provider,
    server,
    certificateAuthorityFile: required('certificateAuthorityFile', absolute),
    bootstrapCredentialsFile: required('bootstrapCredentialsFile', absolute),
    cacheDirectory: required('cacheDirectory', absolute, defaultCacheDirectory),
    signerName: required('signerName', undefined, defaultSignerName(provider)),
    ...optional('servingSignerName'),
    ...optional('clientCaBundleFile', absolute),
    keyKind,
    ...optional('evidenceVersion', among(evidenceVersions[provider])),
    ...optional('endorsementKey', among(ekKinds)),
    ...(provider === 'x509'
      ? {
          attestationCertificateFile: required('attestationCertificateFile', absolute),
          attestationKeyFile: required('attestationKeyFile', absolute),
          ...optional('attestationName', among(attestationNames)),
        }
      : {}),
    servingNames: isNames(servingNames) ? servingNames : [],
    ...(keepBootstrapToken === true ? { keepBootstrapToken } : {}),
  };
  return problems.length > 0 ? failure(problems) : success(settings);
}

const x509Settings = ['attestationCertificateFile', 'attestationKeyFile', 'attestationName'] as const;

type OptionalText =
  'servingSignerName' | 'clientCaBundleFile' | 'evidenceVersion' | 'endorsementKey' | 'attestationName';

interface Check {
  readonly isValid: (value: string) => boolean;
  readonly problem: string;
}

/** A relative path would depend on the kubelet's working directory. */
const absolute: Check = { isValid: isAbsolute, problem: 'must be an absolute path' };

function among(known: readonly string[]): Check {
  return { isValid: (value) => known.includes(value), problem: `must be one of ${known.join(', ')}` };
}

/** `nodeName (--node-name)`: the value may come from the file or from the flag. */
function nameOf(key: keyof Settings): string {
  const flag = Object.entries(allFlags).find(([, setting]) => setting === key)?.[0];
  return `${key} (--${flag})`;
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
