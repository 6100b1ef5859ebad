/**
 * Decides an issued request again by other rules, from its record. The ledger does not keep all that a decision needs: then the answer
 * is `undecided` with the reason, never a guess.
 */
import type { ClusterConfiguration } from '../configuration/model/cluster.ts';
import type { RequestObject } from '../kubernetes/certificate-signing-request.ts';
import type { Violation } from '../outcome/outcome.ts';
import { readDer } from '../encoding/der-reader.ts';
import { checkProfile } from '../policy/check-profile.ts';
import type { Profile } from '../policy/profile.ts';
import type { CertificateRequest } from '../x509/model.ts';
import { decodePublicKey } from '../x509/public-key.ts';
import { lifetimeSeconds } from '../x509/validity.ts';
import { certificateContents } from './certificate-entry.ts';
import type { InventoryRecord } from './certificate-entry.ts';

export type DecidedAgain =
  /** What it would get. `lifetimeSeconds` does not consider the end of the CA. */
  | {
      readonly kind: 'issue';
      readonly ca: string;
      readonly lifetimeSeconds: number;
      readonly approval: string;
    }
  | { readonly kind: 'refuse'; readonly violations: readonly Violation[] }
  /** No profile has this signer name. */
  | { readonly kind: 'ignore' }
  | { readonly kind: 'undecided'; readonly why: string };

/** The decision by each configuration. */
export interface Compared {
  readonly before: DecidedAgain;
  readonly after: DecidedAgain;
}

/** Throws TypeError if the certificate in the record cannot be read. */
export function compareDecisions(
  record: InventoryRecord,
  before: ClusterConfiguration,
  after: ClusterConfiguration,
): Compared {
  const decisions = { before: decide(record, before), after: decide(record, after) };
  if (decisions.after.kind !== 'issue') return decisions;
  const why = undecidedBetween(record, before, after);
  return why === undefined ? decisions : { ...decisions, after: { kind: 'undecided', why } };
}

export function sameDecision({ before, after }: Compared): boolean {
  return JSON.stringify(before) === JSON.stringify(after);
}

function decide(record: InventoryRecord, cluster: ClusterConfiguration): DecidedAgain {
  const facts = record.request;
  if (facts === undefined) return undecided('an early version wrote the record, without signer, requester and usages');
  const { signerName, usages, requester, groups, expirationSeconds } = facts;
  const profile = cluster.profiles.get(signerName);
  if (profile === undefined) return { kind: 'ignore' };
  if (usages === undefined) return undecided('its usages were too long for the ledger');
  if (limitsRequesters(profile) && (requester === undefined || groups === undefined))
    return undecided('its requester or groups were too long for the ledger');
  const request = requestOf(record);
  if (request === undefined) return undecided('its public key cannot be read');
  const object: RequestObject = {
    apiVersion: 'certificates.k8s.io/v1',
    name: record.uid,
    uid: record.uid,
    signerName,
    request: new Uint8Array(),
    usages,
    ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
    username: requester ?? '',
    groups: groups ?? [],
    requesterNodes: [],
    conditions: [],
    hasCertificate: false,
  };
  const violations = checkProfile(profile, object, request);
  if (violations.length > 0) return { kind: 'refuse', violations };
  return {
    kind: 'issue',
    ca: profile.ca,
    lifetimeSeconds: lifetimeSeconds(profile.maxTtlSeconds, expirationSeconds),
    approval: cluster.approval.get(signerName) ?? 'manual',
  };
}

function limitsRequesters({ requester: { users, groups, nodeItself } }: Profile): boolean {
  return users.length > 0 || groups.length > 0 || nodeItself === true;
}

/** The request as far as its certificate tells. Its self-signature was checked when it was issued, with a hash that every profile permits. */
function requestOf(record: InventoryRecord): CertificateRequest | undefined {
  const { facts, subject, sans } = certificateContents(record);
  const key = readDer(facts.spki);
  const decoded = key.ok ? decodePublicKey(key.value) : undefined;
  if (decoded?.ok !== true) return undefined;
  return {
    der: new Uint8Array(),
    subject,
    sans,
    publicKey: decoded.value.publicKey,
    signatureHash: 'SHA-256',
    requestedExtensions: [],
    evidence: [],
  };
}

/** Settings whose effect on this request depends on what the ledger does not keep: evidence, and the other uses of its key. */
function undecidedBetween(
  { request }: InventoryRecord,
  before: ClusterConfiguration,
  after: ClusterConfiguration,
): string | undefined {
  const [old, next] = [before, after].map(({ profiles }) => profiles.get(request?.signerName ?? ''));
  if (next?.attestation !== undefined && next.attestation.mode === 'enforce') {
    const settings = [before, after].map((cluster) => text(cluster.attestation));
    if (text(old?.attestation) !== text(next.attestation) || settings[0] !== settings[1])
      return 'the settings of attestation differ, and the ledger keeps no evidence';
  }
  if (next?.freshKeys === true && old?.freshKeys !== true)
    return 'freshKeys is new, and whether its key was certified before is not compared';
  return undefined;
}

function text(settings: unknown): string {
  return JSON.stringify(settings, (_, value: unknown) => (value instanceof Map ? [...value] : value)) ?? '';
}

function undecided(why: string): DecidedAgain {
  return { kind: 'undecided', why };
}
