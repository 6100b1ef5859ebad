/** Reads the decision from a CertificateSigningRequest. */
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { objectOf } from '../../core/encoding/json-object.ts';

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

/** The approver writes this annotation with its refusal (docs/attestation.md). */
export function supportedVersions(object: JsonObject): readonly string[] {
  const value = objectOf(objectOf(object['metadata'])['annotations'])['countersign.dev/supported-attestation-versions'];
  return typeof value === 'string' ? value.split(/[\s,]+/).filter((version) => version !== '') : [];
}
