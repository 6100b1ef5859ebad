/**
 * The part of countersign.yaml that each function needs. It is bundled as text when the stacks are synthesised, so that a
 * change of policy is a deployment and is audited. Each function gets only the part that it enforces.
 */
import type { ClusterAttestation } from './model/attestation.ts';
import type { ClusterConfiguration } from './model/cluster.ts';
import type { JwtAccess } from './model/deployment.ts';
import { rulesFingerprint } from './rules-fingerprint.ts';

/**
 * For the sign function. The same rules always give the same text, so an unchanged policy changes no bundle. `rulesSha256` stands for
 * all rules of the cluster, also for those that other functions enforce.
 */
export function bundleCluster(cluster: ClusterConfiguration): string {
  const { name, cas, profiles, approval } = cluster;
  const lists = { cas: [...cas], profiles: [...profiles], approval: [...approval] };
  return JSON.stringify({ name, ...lists, rulesSha256: rulesFingerprint(cluster) }, entriesOfMaps);
}

/** `rulesFingerprint` of the cluster, from a text of `bundleCluster`. */
export function readBundledFingerprint(text: string): string {
  return (JSON.parse(text) as { readonly rulesSha256: string }).rulesSha256;
}

/** For the ca function. */
export function bundleAuthorities({ name, cas, profiles, approval }: ClusterConfiguration): string {
  return JSON.stringify({ name, cas: [...cas], profiles: [...profiles], approval: [...approval] }, entriesOfMaps);
}

/** For the kubeadm function: the CAs that sign for kubeadm's control plane, and the names that their certificates may hold. */
export function bundleKubeadm({ name, cas, kubeadm }: ClusterConfiguration): string {
  const signing = new Set<string | undefined>(Object.values(kubeadm?.cas ?? {}));
  const lists = { cas: [...cas].filter(([ca]) => signing.has(ca)), profiles: [], approval: [] };
  return JSON.stringify({ name, ...lists, kubeadm }, entriesOfMaps);
}

/** For the attest function: no CAs, and the rules about which machines may join, which the sign function does not need. */
export function bundleAttestation({ name, profiles, attestation }: ClusterConfiguration): string {
  return JSON.stringify({ name, cas: [], profiles: [...profiles], approval: [], attestation }, entriesOfMaps);
}

function entriesOfMaps(_: string, value: unknown): unknown {
  return value instanceof Map ? [...(value as ReadonlyMap<unknown, unknown>)] : value;
}

/** The JSON form: maps are lists of their entries. */
type Bundled<T> = T extends string | number | boolean | undefined
  ? T
  : T extends ReadonlyMap<infer K, infer V>
    ? readonly (readonly [K, Bundled<V>])[]
    : { [P in keyof T]: Bundled<T[P]> };

/** Reads a text that one of these functions of the same release wrote. Its content is not checked again. */
export function readBundledCluster(text: string): ClusterConfiguration {
  const { name, cas, profiles, approval, attestation, kubeadm } = JSON.parse(text) as Bundled<ClusterConfiguration>;
  return {
    name,
    cas: new Map(cas),
    profiles: new Map(profiles),
    approval: new Map(approval),
    ...(attestation === undefined ? {} : { attestation: readAttestation(attestation) }),
    ...(kubeadm === undefined ? {} : { kubeadm }),
  };
}

function readAttestation({ aws, ...rest }: Bundled<ClusterAttestation>): ClusterAttestation {
  if (aws === undefined) return rest;
  const { accounts, tags, certificates } = aws;
  return {
    ...rest,
    aws: { ...aws, accounts: new Map(accounts), tags: new Map(tags), certificates: new Map(certificates) },
  };
}

/** For the authorizer: which cluster it serves, and which tokens it accepts. */
export interface BundledAccess {
  readonly cluster: string;
  readonly jwt: JwtAccess;
}

export function bundleAccess({ cluster, jwt }: BundledAccess): string {
  return JSON.stringify({ cluster, jwt });
}

export function readBundledAccess(text: string): BundledAccess {
  return JSON.parse(text) as BundledAccess;
}

/** For the sign and attest functions: the permitted callers. `role`, `subjects` or both are present. */
export interface CallersAllowed {
  readonly cluster: string;
  /** Name of the caller role, in the functions' own account. */
  readonly role?: string;
  /** `sub` of service-account tokens that the authorizer has accepted. */
  readonly subjects?: readonly string[];
}

export function bundleCallers({ cluster, role, subjects }: CallersAllowed): string {
  return JSON.stringify({ cluster, role, subjects });
}

export function readBundledCallers(text: string): CallersAllowed {
  return JSON.parse(text) as CallersAllowed;
}
