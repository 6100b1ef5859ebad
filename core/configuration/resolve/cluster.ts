/**
 * Resolves a cluster: merges defaults, fills in every value and checks that values fit together. Problems are collected, each
 * with the path of the wrong value.
 */
import type { Path, Report } from '../model/report.ts';
import { checkApproval, resolveAttestation, resolveProfileAttestation, resolveRequester } from './attestation.ts';
import type { CaInput, ClusterInput, KeySpec, ProfileInput } from '../schema/cluster.ts';
import type { CaConfiguration, ClusterConfiguration } from '../model/cluster.ts';
import { resolveCustomRules } from './custom-profile.ts';
import { checkLogins } from './login.ts';
import type { SignatureAlgorithm } from '../../ports/signer.ts';
import type { Profile } from '../../policy/profile.ts';
import type { Reserved } from '../../policy/reserved-names.ts';
import { resolveReserved } from './reserved.ts';
import { checkServingApproval, resolveAllowedSans } from './serving.ts';
import { isInTree, isNodeSigner, signerOf, unknownSignerMessage } from '../../policy/signer-names.ts';
import type { SignerKind } from '../../policy/signer-names.ts';
import { resolveSubject } from './subject.ts';
import { isObject } from '../../encoding/json-object.ts';

/** 30 days (kube-controller-manager: one year), because certificates cannot be revoked. */
export const defaultTtlSeconds = 30 * 86_400;

/** Maps are merged key by key; lists and single values of the cluster replace those of the defaults. */
export function withDefaults(defaults: ClusterInput, own: ClusterInput): ClusterInput {
  // Both passed the same schema, so values of the same key have the same type.
  return merge(defaults, own) as ClusterInput;
}

function merge(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over;
  const keys = new Set([...Object.keys(base), ...Object.keys(over)]);
  return Object.fromEntries(
    [...keys].map((key) => [
      key,
      over[key] === undefined ? base[key] : base[key] === undefined ? over[key] : merge(base[key], over[key]),
    ]),
  );
}

const noCa = 'a cluster needs at least one CA';

/** The resolved cluster; valid only if no error was reported. */
export function resolveCluster(name: string, input: ClusterInput, report: Report): ClusterConfiguration {
  const cas = new Map(Object.entries(input.cas ?? {}).map(([ca, value]) => [ca, resolveCa(ca, value, report)]));
  if (cas.size === 0) report('error', ['cas'], noCa);

  const reserved = resolveReserved(input, report);
  const profiles = new Map<string, Profile>();
  for (const [signerName, value] of Object.entries(input.profiles ?? {})) {
    const profile = resolveProfile(signerName, value, cas, reserved, report);
    if (profile !== undefined) profiles.set(signerName, profile);
  }
  if (Object.keys(input.profiles ?? {}).length === 0)
    report('error', ['profiles'], 'a cluster needs at least one profile');

  for (const signerName of Object.keys(input.approval ?? {}))
    if (input.profiles?.[signerName] === undefined)
      report('error', ['approval', signerName], 'no profile of this cluster has that name');
  const approval = new Map(
    [...profiles.keys()].map((signer) => [signer, input.approval?.[signer] ?? 'manual'] as const),
  );
  checkLogins(profiles, approval, report);
  checkApproval(profiles, approval, report);
  checkServingApproval(profiles, approval, input.approveServingWithoutProof, report);
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
  // The issuer name cannot be changed later, and a default would be the same for two clusters.
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
  reserved: Reserved,
  report: Report,
): Profile | undefined {
  const at = ['profiles', signerName];
  const signer = signerOf(signerName);
  if (signer === undefined) {
    report('error', at, unknownSignerMessage(signerName));
    return undefined;
  }
  const { kind } = signer;
  const [onlyCa] = cas.size === 1 ? [...cas.keys()] : [];
  const ca = input.ca ?? onlyCa;
  if (cas.size === 0) report('error', ['cas'], noCa);
  else if (ca === undefined) report('error', [...at, 'ca'], 'is required where there is more than one CA');
  else if (!cas.has(ca))
    report('error', [...at, 'ca'], `no CA of this cluster has that name (${[...cas.keys()].join(', ')})`);

  const maxTtlSeconds = input.maxTtl === undefined ? defaultTtlSeconds : seconds(input.maxTtl);
  if (maxTtlSeconds < 60) report('error', [...at, 'maxTtl'], 'must be at least 60s');
  const validitySeconds = cas.get(ca ?? '')?.validitySeconds ?? maxTtlSeconds;
  if (maxTtlSeconds > validitySeconds)
    report('warning', [...at, 'maxTtl'], 'is longer than the CA itself is valid; certificates end with their CA');

  const { allowReserved, subject } = resolveSubject(kind, input.subject, reserved, [...at, 'subject'], report);
  if (kind !== 'custom') checkFixed(signerName, signer, input, at, report);
  const allowReservedSans = resolveAllowedSans(kind, input.sans, reserved, [...at, 'sans'], report);
  const attestation = resolveProfileAttestation(signer, input.attestation, at, report);
  const custom = kind === 'custom' ? resolveCustomRules(input, at, report) : undefined;
  return {
    signerName,
    kind,
    ca: ca ?? '',
    maxTtlSeconds,
    keys: input.keys ?? ['RSA', 'P-256', 'P-384', 'P-521', 'Ed25519'],
    allowReserved,
    reserved,
    subject,
    requester: resolveRequester(signer, attestation, input, at, report),
    ...(allowReservedSans.length === 0 ? {} : { allowReservedSans }),
    ...(attestation === undefined ? {} : { attestation }),
    ...(input.freshKeys === true ? { freshKeys: true } : {}),
    ...(custom === undefined ? {} : { custom }),
  };
}

/** What Kubernetes fixes for its own signers cannot be configured, so writing it down would mislead a reviewer. */
function checkFixed(signerName: string, signer: SignerKind, input: ProfileInput, at: Path, report: Report): void {
  const kubelet = isNodeSigner(signer);
  const message = `is fixed ${isInTree({ signerName }) ? 'by Kubernetes ' : ''}for ${signerName} and cannot be set`;
  if (input.usages !== undefined) report('error', [...at, 'usages'], message);
  for (const key of ['dns', 'email', 'ip', 'uri', 'required'] as const)
    if (input.sans?.[key] !== undefined) report('error', [...at, 'sans', key], message);
  for (const key of [
    'commonNameRequired',
    ...(kubelet ? (['commonNames', 'organizations', 'allowReserved'] as const) : []),
  ] as const)
    if (input.subject?.[key] !== undefined) report('error', [...at, 'subject', key], message);
}

/** The schema let only such texts through. */
function seconds(duration: string): number {
  const unit = { s: 1, m: 60, h: 3600, d: 86_400 }[duration.slice(-1)] ?? Number.NaN;
  return Number(duration.slice(0, -1)) * unit;
}
