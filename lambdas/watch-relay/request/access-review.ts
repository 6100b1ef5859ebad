/**
 * The SubjectAccessReviews about the requester that an approval needs, as in the in-tree approver
 * (pkg/controller/certificates/approver/sarapprove.go). Deleting a binding stops approvals.
 */
import type { ProfileAttestation } from '../../../core/policy/profile.ts';
import { isObject } from '../../../core/encoding/json-object.ts';
import type { CertificateRequest } from '../../../core/x509/model.ts';
import { kubeletClientInTree, kubeletServingInTree } from '../../../core/policy/in-tree-rules.ts';
import type { InTreeRule } from '../../../core/policy/in-tree-rules.ts';
import type { RequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import { decodeFor } from '../../../core/read-and-check-request.ts';
import type { AccessQuestion, JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { SignerPolicy } from '../settings/options.ts';

export interface Permission {
  /** The subresource of certificatesigningrequests that the requester must be allowed to create. */
  readonly subresource: string;
  /** The in-tree approver's message for the Approved condition, if it has one. */
  readonly message?: string;
}

export type AccessReview =
  /** The requester needs one of these permissions. They are reviewed in this order. */
  | { readonly kind: 'permissions'; readonly permissions: readonly Permission[]; readonly attested: boolean }
  /** No review: the attestation or the profile's list of requesters is enough. */
  | { readonly kind: 'none'; readonly attested: boolean }
  /** The signer does not sign such a request, so no permission exists for it; it can only be denied. */
  | { readonly kind: 'unrecognised'; readonly attested: boolean };

type KubeletPermission = 'selfnodeclient' | 'nodeclient' | 'selfnodeserver';

const inTreeMessages: Readonly<Record<KubeletPermission, string>> = {
  selfnodeclient: 'Auto approving self kubelet client certificate after SubjectAccessReview.',
  nodeclient: 'Auto approving kubelet client certificate after SubjectAccessReview.',
  // The in-tree approver ignores these; Kubernetes' TLS bootstrapping documentation names the permission.
  selfnodeserver: 'Auto approving self kubelet server certificate after SubjectAccessReview.',
};

export function requiredReviews(policy: SignerPolicy, object: RequestObject): AccessReview {
  const { kind, attestation } = policy;
  const decoded = decodeFor(policy, object.request);
  const attested = decoded.ok && isAttested(attestation, decoded.value);
  // Other signers: the profile names the requesters. Synth requires that it names at least one.
  if (kind !== 'kube-apiserver-client-kubelet' && kind !== 'kubelet-serving') return { kind: 'none', attested };
  const recognised = decoded.ok ? recognise(kind, object, decoded.value) : [];
  if (recognised.length === 0) return { kind: 'unrecognised', attested };
  if (!attested)
    return {
      kind: 'permissions',
      permissions: recognised.map((subresource) => ({ subresource, message: inTreeMessages[subresource] })),
      attested,
    };
  if (attestation?.subjectAccessReview !== true) return { kind: 'none', attested };
  // These permissions have their own names, since a cluster that demands attestation removes the in-tree bindings.
  const permissions = recognised.map((name) => ({ subresource: `countersign-${name}` }));
  return { kind: 'permissions', permissions, attested };
}

/** In audit mode, and without evidence where it is optional, the request counts as not attested, so the review decides. */
function isAttested(attestation: ProfileAttestation | undefined, { evidence }: CertificateRequest): boolean {
  return attestation?.mode === 'enforce' && (attestation.required || evidence.length > 0);
}

/** The in-tree recognisers, most specific first. */
function recognise(
  kind: 'kube-apiserver-client-kubelet' | 'kubelet-serving',
  object: RequestObject,
  request: CertificateRequest,
): readonly KubeletPermission[] {
  const holds = (rules: readonly InTreeRule[]): boolean =>
    rules.every((rule) => rule.violations({ object, request }).length === 0);
  const self = object.username === request.subject.commonName;
  if (kind === 'kubelet-serving') return self && holds(kubeletServingInTree) ? ['selfnodeserver'] : [];
  if (!holds(kubeletClientInTree)) return [];
  return self ? ['selfnodeclient', 'nodeclient'] : ['nodeclient'];
}

/** Undefined if `uid` or `extra` of the requester is malformed, which the API server prevents. */
export function accessQuestion(
  json: JsonObject,
  { username, groups }: RequestObject,
  subresource: string,
): AccessQuestion | undefined {
  const { uid, extra = {} } = json['spec'] as JsonObject;
  if (uid !== undefined && typeof uid !== 'string') return undefined;
  if (!isExtra(extra)) return undefined;
  return {
    user: username,
    ...(uid === undefined || uid === '' ? {} : { uid }),
    groups,
    extra,
    verb: 'create',
    group: 'certificates.k8s.io',
    resource: 'certificatesigningrequests',
    subresource,
  };
}

function isExtra(value: unknown): value is Readonly<Record<string, readonly string[]>> {
  const isTexts = (list: unknown): boolean => Array.isArray(list) && list.every((item) => typeof item === 'string');
  return isObject(value) && Object.values(value).every(isTexts);
}
