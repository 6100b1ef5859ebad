/** What kube-apiserver asks about a request with a revoked certificate (SubjectAccessReview), and the answer. */
import { isObject, objectOf } from '../encoding/json-object.ts';
import type { JsonObject } from '../encoding/json-object.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import type { RevokedList } from './revoked-list.ts';

const credentialId = 'authentication.kubernetes.io/credential-id';

export interface AccessReview {
  /** The fingerprints of the client certificates: SHA-256 of the DER, lower-case hex. Normally one. */
  readonly fingerprints: readonly string[];
}

/** A SubjectAccessReview of authorization.k8s.io/v1. `message` never quotes content. */
export function decodeAccessReview(json: unknown): Result<AccessReview, { readonly message: string }> {
  const { kind, apiVersion, spec } = objectOf(json);
  if (kind !== 'SubjectAccessReview' || apiVersion !== 'authorization.k8s.io/v1' || !isObject(spec))
    return failure({ message: 'not a SubjectAccessReview of authorization.k8s.io/v1' });
  const ids = objectOf(spec['extra'])[credentialId] ?? [];
  if (!Array.isArray(ids)) return failure({ message: 'the credential ID is not a list' });
  // The API server writes this extra itself: authenticators that impersonate or map users cannot set it (kubernetes.io/ is reserved).
  const fingerprints = ids.flatMap((id) => {
    const [, fingerprint] = (typeof id === 'string' ? /^X509SHA256=([0-9a-f]{64})$/.exec(id) : null) ?? [];
    return fingerprint === undefined ? [] : [fingerprint];
  });
  return success({ fingerprints });
}

/** `denied` for a revoked certificate; otherwise no opinion, so that the next authorizer decides. Never `allowed`. */
export function answerAccessReview({ fingerprints }: AccessReview, revoked: RevokedList): JsonObject {
  const found = fingerprints.map((fingerprint) => revoked.get(fingerprint)).find((entry) => entry !== undefined);
  return {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    status: found === undefined ? { allowed: false } : { allowed: false, denied: true, reason: revokedText(found) },
  };
}

/** The client sees it in its 403. */
export function revokedText({ reason, at }: { readonly reason: string; readonly at: number }): string {
  return `the client certificate was revoked at ${new Date(at).toISOString().slice(0, 19)}Z (${reason})`;
}
