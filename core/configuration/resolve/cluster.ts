/**
 * Resolves a cluster: merges defaults, fills in every value and checks that values fit together. Problems are collected, each
 * at the place of the wrong value.
 */
import type { Place } from '../fields/place.ts';
import { seconds } from '../fields/values.ts';
import { checkApproval, resolveAttestation, resolveProfileAttestation, resolveRequester } from './attestation.ts';
import { clusterShape } from '../schema/cluster.ts';
import type { ClusterInput, ProfileInput, WrittenCluster } from '../schema/cluster.ts';
import type { CaConfiguration, ClusterConfiguration } from '../model/cluster.ts';
import { checkIssuers, checkSuccessors, resolveCa } from './ca.ts';
import { resolveCustomRules } from './custom-profile.ts';
import { resolveKubeadm } from './kubeadm.ts';
import { checkLogins } from './login.ts';
import type { Profile } from '../../policy/profile.ts';
import type { Reserved } from '../../policy/reserved-names.ts';
import { resolveReserved } from './reserved.ts';
import { checkServingApproval, resolveAllowedSans } from './serving.ts';
import { isInTree, isNodeSigner, signerOf, unknownSignerMessage } from '../../policy/signer-names.ts';
import type { SignerKind } from '../../policy/signer-names.ts';
import { resolveSubject } from './subject.ts';
import { isObject } from '../../encoding/json-object.ts';

/**
 * Maps are merged key by key; lists and single values of the cluster replace those of `defaults`. Both inputs passed the schema,
 * so the merged cluster passes it too. The schema adds its default for each key that both lack.
 */
export function withDefaults(defaults: WrittenCluster, own: WrittenCluster): ClusterInput {
  return clusterShape.parse(merge(defaults, own));
}

function merge(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over;
  const merged = Object.entries(over).map(
    ([key, value]) => [key, Object.hasOwn(base, key) ? merge(base[key], value) : value] as const,
  );
  return { ...base, ...Object.fromEntries(merged) };
}

/** The resolved cluster; valid only if no error was reported. `at`: the cluster. */
export function resolveCluster(name: string, input: ClusterInput, at: Place): ClusterConfiguration {
  const cas = new Map(
    Object.entries(input.cas).map(([ca, value]) => [ca, resolveCa(ca, value, at('cas', ca))] as const),
  );
  if (cas.size === 0) at('cas').error('a cluster needs at least one CA');
  checkIssuers(cas, at('cas'));
  checkSuccessors(cas, at('cas'));

  const reserved = resolveReserved(input, at);
  const profiles = new Map<string, Profile>();
  for (const [signerName, value] of Object.entries(input.profiles)) {
    const profile = resolveProfile(signerName, value, cas, reserved, at('profiles', signerName));
    if (profile !== undefined) profiles.set(signerName, profile);
  }
  if (Object.keys(input.profiles).length === 0) at('profiles').error('a cluster needs at least one profile');

  for (const signerName of Object.keys(input.approval ?? {}))
    if (input.profiles[signerName] === undefined)
      at('approval', signerName).error('no profile of this cluster has that name');
  const approval = new Map(
    [...profiles.keys()].map((signer) => [signer, input.approval?.[signer] ?? 'manual'] as const),
  );
  checkLogins({ profiles, cas, approval }, at);
  checkApproval(profiles, approval, at);
  checkServingApproval(profiles, approval, input.approveServingWithoutProof, at);
  const attestation = resolveAttestation(name, input, profiles, at);
  const kubeadm = resolveKubeadm(input, cas, profiles, at);
  return {
    name,
    cas,
    profiles,
    approval,
    ...(attestation === undefined ? {} : { attestation }),
    ...(kubeadm === undefined ? {} : { kubeadm }),
  };
}

function resolveProfile(
  signerName: string,
  input: ProfileInput,
  cas: ReadonlyMap<string, CaConfiguration>,
  reserved: Reserved,
  at: Place,
): Profile | undefined {
  const signer = signerOf(signerName);
  if (signer === undefined) {
    at.error(unknownSignerMessage(signerName));
    return undefined;
  }
  const { kind } = signer;
  const [onlyCa] = cas.size === 1 ? [...cas.keys()] : [];
  const ca = input.ca ?? onlyCa ?? '';
  if (cas.size > 0 && !cas.has(ca))
    at('ca').error(
      ca === ''
        ? 'is required where there is more than one CA'
        : `no CA of this cluster has that name (${[...cas.keys()].join(', ')})`,
    );

  const maxTtlSeconds = seconds(input.maxTtl);
  if (maxTtlSeconds < 60) at('maxTtl').error('must be at least 60s');
  const issuer = cas.get(ca);
  if (issuer !== undefined && issuer.kind !== 'imported' && maxTtlSeconds > issuer.validitySeconds)
    at('maxTtl').warning('is longer than the lifetime of the CA; certificates end with their CA');

  const { allowReserved, subject } = resolveSubject(kind, input.subject, reserved, at('subject'));
  if (kind !== 'custom') checkFixedKeys(signerName, signer, input, at);
  const allowReservedSans = resolveAllowedSans(kind, input.sans.allowReserved, reserved, at('sans', 'allowReserved'));
  const attestation = resolveProfileAttestation(signer, input.attestation, at('attestation'));
  if (input.requestBlocks !== undefined && kind !== 'kube-apiserver-client-kubelet')
    at('requestBlocks').error('is for the signers of node client certificates');
  else if (input.requestBlocks !== undefined && attestation !== undefined)
    at('requestBlocks').error(
      'is for profiles without attestation: here attestation.providers says whose blocks count',
    );
  const custom = kind === 'custom' ? resolveCustomRules(input, at) : undefined;
  return {
    signerName,
    kind,
    ca,
    maxTtlSeconds,
    keys: input.keys,
    allowReserved,
    reserved,
    subject,
    requester: resolveRequester(signer, attestation, input, at('requester')),
    ...(allowReservedSans.length === 0 ? {} : { allowReservedSans }),
    ...(attestation === undefined ? {} : { attestation }),
    ...(input.requestBlocks === undefined ? {} : { requestBlocks: input.requestBlocks }),
    ...(input.freshKeys ? { freshKeys: true } : {}),
    ...(custom === undefined ? {} : { custom }),
  };
}

/** Kubernetes fixes these keys for its own signers. A value in the file would have no effect and mislead a reviewer. */
function checkFixedKeys(signerName: string, signer: SignerKind, input: ProfileInput, at: Place): void {
  const message = `is fixed ${isInTree({ signerName }) ? 'by Kubernetes ' : ''}for ${signerName} and cannot be set`;
  if (input.usages !== undefined) at('usages').error(message);
  for (const key of ['dns', 'email', 'ip', 'uri', 'required'] as const)
    if (input.sans[key] !== undefined) at('sans', key).error(message);
  const names = isNodeSigner(signer) ? (['commonNames', 'organizations', 'allowReserved'] as const) : [];
  for (const key of ['commonNameRequired', ...names] as const)
    if (input.subject[key] !== undefined) at('subject', key).error(message);
}
