/** Reads the decision from a CertificateSigningRequest. */
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { objectOf, parsedObject } from '../../core/encoding/json-object.ts';

import type { Challenge } from '../providers/provider.ts';

export type Decision =
  /** PEM, as in status.certificate. */
  | { readonly kind: 'certificate'; readonly pem: string }
  | { readonly kind: 'no'; readonly type: 'Denied' | 'Failed'; readonly reason: string; readonly message: string }
  | { readonly kind: 'undecided'; readonly approved: boolean };

export function decisionOn(object: JsonObject): Decision {
  const status = objectOf(object['status']);
  const conditions = (Array.isArray(status['conditions']) ? status['conditions'] : []).map(objectOf);
  const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 1_000) : '');
  for (const type of ['Denied', 'Failed'] as const) {
    const condition = conditions.find((one) => one['type'] === type);
    if (condition !== undefined)
      return { kind: 'no', type, reason: text(condition['reason']), message: text(condition['message']) };
  }
  const { certificate } = status;
  if (typeof certificate === 'string' && certificate !== '')
    return { kind: 'certificate', pem: Buffer.from(certificate, 'base64').toString('utf8') };
  return { kind: 'undecided', approved: conditions.some(({ type }) => type === 'Approved') };
}

export function resourceVersionIn(object: JsonObject): string {
  const { resourceVersion } = objectOf(object['metadata']);
  return typeof resourceVersion === 'string' ? resourceVersion : '';
}

/** The approver writes these annotations with its refusal (docs/attestation.md). */
export function supportedVersions(object: JsonObject): readonly string[] {
  const value = annotation(object, 'countersign.dev/supported-attestation-versions') ?? '';
  return value.split(/[\s,]+/).filter((version) => version !== '');
}

/** undefined unless of version 1 and complete. Users of the cluster can change it; then the machine cannot open the credential. */
export function challengeIn(object: JsonObject): Challenge | undefined {
  const text = annotation(object, 'countersign.dev/attestation-challenge') ?? '';
  const { v, challenge, credential } = (text.length <= mostChallengeCharacters && parsedObject(text)) || {};
  if (v !== 1 || !isMatch(challenge, /^[\w-]+$/) || !isMatch(credential, /^[A-Za-z0-9+/]+={0,2}$/)) return undefined;
  return { challenge, credential };
}

/** The credential for an RSA key of 4096 bits has 800. */
const mostChallengeCharacters = 4_096;

function annotation(object: JsonObject, name: string): string | undefined {
  const value = objectOf(objectOf(object['metadata'])['annotations'])[name];
  return typeof value === 'string' ? value : undefined;
}

function isMatch(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value);
}
