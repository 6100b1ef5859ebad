/**
 * From what was written to what holds: defaults merged in, every value filled in, and everything that must fit
 * together checked. Problems are collected, each with the path of the value that is wrong.
 */
import {
  checkApproval,
  resolveAttestation,
  resolveProfileAttestation,
  resolveRequester,
} from './attestation-resolution.ts';
import type { CaInput, ClusterInput, KeySpec, ProfileInput } from './configuration-schema.ts';
import type { CaConfiguration, ClusterConfiguration } from './configuration.ts';
import { resolveCustomRules } from './custom-profile.ts';
import { nodesGroup, nodeUserPrefix } from './in-tree-rules.ts';
import type { SignatureAlgorithm } from './ports.ts';
import type { Profile } from './profiles.ts';
import { quoted } from './quoted.ts';
import { isInTree, isNodeSigner, signerOf, whyNoSigner } from './signer-names.ts';
import type { Signer } from './signer-names.ts';

/** Keys from the cluster downwards. */
export type Path = readonly (string | number)[];
/** `warning`: allowed, but a reviewer should look twice. */
export type Report = (severity: 'error' | 'warning', path: Path, message: string) => void;

/** Maps are merged key by key; lists and single values of the cluster replace those of the defaults. */
export function withDefaults(defaults: ClusterInput, own: ClusterInput): ClusterInput {
  // Both passed the same schema, so wherever both have a value it is of the same type.
  return merge(defaults, own) as ClusterInput;
}

function merge(base: unknown, over: unknown): unknown {
  if (!isMap(base) || !isMap(over)) return over;
  const keys = new Set([...Object.keys(base), ...Object.keys(over)]);
  return Object.fromEntries(
    [...keys].map((key) => [
      key,
      over[key] === undefined ? base[key] : base[key] === undefined ? over[key] : merge(base[key], over[key]),
    ]),
  );
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const noCa = 'a cluster needs at least one CA';

/** The cluster as it holds; of use only when no error was reported. */
export function resolveCluster(name: string, input: ClusterInput, report: Report): ClusterConfiguration {
  const cas = new Map(Object.entries(input.cas ?? {}).map(([ca, value]) => [ca, resolveCa(ca, value, report)]));
  if (cas.size === 0) report('error', ['cas'], noCa);

  const profiles = new Map<string, Profile>();
  for (const [signerName, value] of Object.entries(input.profiles ?? {})) {
    const profile = resolveProfile(signerName, value, cas, report);
    if (profile !== undefined) profiles.set(signerName, profile);
  }
  if (Object.keys(input.profiles ?? {}).length === 0)
    report('error', ['profiles'], 'a cluster needs at least one profile');
  checkLogins(profiles, report);

  for (const signerName of Object.keys(input.approval ?? {}))
    if (input.profiles?.[signerName] === undefined)
      report('error', ['approval', signerName], 'no profile of this cluster has that name');
  const approval = new Map(
    [...profiles.keys()].map((signer) => [signer, input.approval?.[signer] ?? 'manual'] as const),
  );
  checkApproval(profiles, approval, report);
  const attestation = resolveAttestation(name, input, profiles, report);
  return { name, cas, profiles, approval, ...(attestation === undefined ? {} : { attestation }) };
}

const rsaAlgorithms = [
  'RSASSA_PKCS1_V1_5_SHA_256',
  'RSASSA_PKCS1_V1_5_SHA_384',
  'RSASSA_PKCS1_V1_5_SHA_512',
  'RSASSA_PSS_SHA_256',
  'RSASSA_PSS_SHA_384',
  'RSASSA_PSS_SHA_512',
] as const;

/** The first is the default. A curve goes with one digest: the only pairs KMS offers. */
const algorithmsOf: Readonly<Record<KeySpec, readonly [SignatureAlgorithm, ...SignatureAlgorithm[]]>> = {
  'P-256': ['ECDSA_SHA_256'],
  'P-384': ['ECDSA_SHA_384'],
  'P-521': ['ECDSA_SHA_512'],
  'RSA-2048': rsaAlgorithms,
  'RSA-3072': rsaAlgorithms,
  'RSA-4096': rsaAlgorithms,
};

export function resolveCa(name: string, input: CaInput, report: Report): CaConfiguration {
  const keySpec = input.keySpec ?? 'P-256';
  const algorithms = algorithmsOf[keySpec];
  const signatureAlgorithm = input.signatureAlgorithm ?? algorithms[0];
  if (!algorithms.includes(signatureAlgorithm))
    report('error', ['cas', name, 'signatureAlgorithm'], `a ${keySpec} key signs with ${algorithms.join(', ')}`);
  const { commonName, organization, organizationalUnit, country } = input.subject ?? {};
  // The issuer name is for good: no default would be right for two clusters.
  if (commonName === undefined) report('error', ['cas', name, 'subject', 'commonName'], 'is required');
  return {
    name,
    kind: input.kind ?? 'selfSigned',
    keySpec,
    signatureAlgorithm,
    subject: {
      commonName: commonName ?? name,
      ...(organization === undefined ? {} : { organization }),
      ...(organizationalUnit === undefined ? {} : { organizationalUnit }),
      ...(country === undefined ? {} : { country }),
    },
    validitySeconds: seconds(input.validity ?? '3650d'),
    pathLen: input.pathLen ?? 0,
  };
}

function resolveProfile(
  signerName: string,
  input: ProfileInput,
  cas: ReadonlyMap<string, CaConfiguration>,
  report: Report,
): Profile | undefined {
  const at = ['profiles', signerName];
  const signer = signerOf(signerName);
  if (signer === undefined) {
    report('error', at, whyNoSigner(signerName));
    return undefined;
  }
  const { kind } = signer;
  const [onlyCa] = cas.size === 1 ? [...cas.keys()] : [];
  const ca = input.ca ?? onlyCa;
  if (cas.size === 0) report('error', ['cas'], noCa);
  else if (ca === undefined) report('error', [...at, 'ca'], 'is required where there is more than one CA');
  else if (!cas.has(ca))
    report('error', [...at, 'ca'], `no CA of this cluster has that name (${[...cas.keys()].join(', ')})`);

  const maxTtlSeconds = seconds(input.maxTtl ?? '8760h');
  if (maxTtlSeconds < 60) report('error', [...at, 'maxTtl'], 'must be at least 60s');
  const validitySeconds = cas.get(ca ?? '')?.validitySeconds ?? maxTtlSeconds;
  if (maxTtlSeconds > validitySeconds)
    report('warning', [...at, 'maxTtl'], 'is longer than the CA itself is valid; certificates end with their CA');

  const systemNames = input.subject?.systemNames ?? [];
  systemNames.forEach((name, index) => checkSystemName(name, [...at, 'subject', 'systemNames', index], report));
  if (kind !== 'custom') checkFixed(signerName, signer, input, at, report);
  const attestation = resolveProfileAttestation(signer, input.attestation, at, report);
  const custom = kind === 'custom' ? resolveCustomRules(input, at, report) : undefined;
  return {
    signerName,
    kind,
    ca: ca ?? '',
    maxTtlSeconds,
    keys: input.keys ?? ['RSA', 'P-256', 'P-384', 'P-521', 'Ed25519'],
    systemNames,
    requester: resolveRequester(signer, attestation, input, at, report),
    ...(attestation === undefined ? {} : { attestation }),
    ...(input.freshKeys === true ? { freshKeys: true } : {}),
    ...(custom === undefined ? {} : { custom }),
  };
}

/** What Kubernetes fixes for its own signers cannot be configured, so writing it down would mislead a reviewer. */
function checkFixed(signerName: string, signer: Signer, input: ProfileInput, at: Path, report: Report): void {
  const kubelet = isNodeSigner(signer);
  const message = `is fixed ${isInTree({ signerName }) ? 'by Kubernetes ' : ''}for ${signerName} and cannot be set`;
  for (const key of ['usages', 'sans'] as const) if (input[key] !== undefined) report('error', [...at, key], message);
  for (const key of [
    'commonNames',
    'organizations',
    'commonNameRequired',
    ...(kubelet ? (['systemNames'] as const) : []),
  ] as const)
    if (input.subject?.[key] !== undefined) report('error', [...at, 'subject', key], message);
}

/** Names that *are* a user or group to the API server: exact, and never a node's. architecture.md, Who may be named. */
function checkSystemName(name: string, at: Path, report: Report): void {
  if (!name.startsWith('system:')) report('error', at, 'must begin with system:');
  else if (name === nodesGroup || name.startsWith(nodeUserPrefix))
    report('error', at, 'names of nodes are given by the kubelet signers only');
  else if (name.includes('*')) report('error', at, 'must be an exact name; patterns never permit system: names');
  else if (name === 'system:masters')
    report('warning', at, 'whoever gets a certificate with system:masters is above all authorization');
}

/**
 * A signer of an operator's own on a CA that the API server trusts for clients makes users, whatever its author had in
 * mind; `system:` users and groups are for the signer whose purpose that is.
 */
function checkLogins(profiles: ReadonlyMap<string, Profile>, report: Report): void {
  const clientCas = new Set(
    [...profiles.values()].filter(({ kind }) => kind.startsWith('kube-apiserver-client')).map(({ ca }) => ca),
  );
  for (const { signerName, ca, kind, custom, systemNames } of profiles.values()) {
    const logsIn = kind === 'legacy-unknown' || custom?.usages.allowed.some(isClientUsage) === true;
    if (!clientCas.has(ca) || !logsIn) continue;
    const at = ['profiles', signerName];
    if (systemNames.length > 0)
      report(
        'error',
        [...at, 'subject', 'systemNames'],
        `${quoted(ca)} also signs client certificates for the API server, where these names would be logins: that is for kubernetes.io/kube-apiserver-client; or give this signer another CA`,
      );
    else if (kind === 'custom')
      report(
        'warning',
        [...at, 'ca'],
        `${quoted(ca)} also signs client certificates for the API server: whoever this profile names can log in there`,
      );
  }
}

function isClientUsage(usage: string): boolean {
  return usage === 'client auth' || usage === 'any';
}

/** The schema let only such texts through. */
function seconds(duration: string): number {
  const unit = { s: 1, m: 60, h: 3600, d: 86_400 }[duration.slice(-1)] ?? Number.NaN;
  return Number(duration.slice(0, -1)) * unit;
}
