/**
 * Whose leave an approval needs: a SubjectAccessReview about the requester, as the in-tree approver asks
 * (pkg/controller/certificates/approver/sarapprove.go). Deleting a binding there stops approvals here.
 */
import type { ProfileAttestation } from '../../../core/policy/profile.ts';
import { decodeRequest } from '../../../core/x509/certificate-request.ts';
import type { CertificateRequest } from '../../../core/x509/model.ts';
import { kubeletClientInTree, kubeletServingInTree } from '../../../core/policy/in-tree-rules.ts';
import type { InTreeRule } from '../../../core/policy/in-tree-rules.ts';
import type { RequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import type { AccessQuestion, JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { SignerPolicy } from '../settings/options.ts';

export interface Permission {
  /** Of certificatesigningrequests; the verb is create. */
  readonly subresource: string;
  /** What the approval says: the in-tree approver's own words where it has any. */
  readonly message?: string;
}

export type AccessReview =
  /** Any of them, asked in this order. */
  | { readonly kind: 'permissions'; readonly permissions: readonly Permission[]; readonly attested: boolean }
  /** The proof, or the profile's list of requesters, is enough. */
  | { readonly kind: 'none'; readonly attested: boolean }
  /** It is nothing that such a signer signs, so there is nothing to ask about; only a denial can follow. */
  | { readonly kind: 'unrecognised'; readonly attested: boolean };

type Asks = 'selfnodeclient' | 'nodeclient' | 'selfnodeserver';

const inTreeMessages: Readonly<Record<Asks, string>> = {
  selfnodeclient: 'Auto approving self kubelet client certificate after SubjectAccessReview.',
  nodeclient: 'Auto approving kubelet client certificate after SubjectAccessReview.',
  // In-tree nobody approves these; Kubernetes' TLS bootstrapping documentation gives the permission its name.
  selfnodeserver: 'Auto approving self kubelet server certificate after SubjectAccessReview.',
};

export function requiredReviews({ kind, attestation }: SignerPolicy, object: RequestObject): AccessReview {
  const decoded = decodeRequest(object.request);
  const attested = decoded.ok && isProof(attestation, decoded.value);
  // All other signers are approved for whom their profile names; synth insists that it names somebody.
  if (kind !== 'kube-apiserver-client-kubelet' && kind !== 'kubelet-serving') return { kind: 'none', attested };
  const asks = decoded.ok ? recognise(kind, object, decoded.value) : [];
  if (asks.length === 0) return { kind: 'unrecognised', attested };
  if (!attested)
    return {
      kind: 'permissions',
      permissions: asks.map((subresource) => ({ subresource, message: inTreeMessages[subresource] })),
      attested,
    };
  if (attestation?.subjectAccessReview !== true) return { kind: 'none', attested };
  // Names of their own: the in-tree bindings are what a cluster takes away that wants proof instead.
  const permissions = asks.map((name) => ({ subresource: `countersign-${name}` }));
  return { kind: 'permissions', permissions, attested };
}

/** Audit refuses nothing, and a proof that may be left out is none: there the review decides, as if nothing were attested. */
function isProof(attestation: ProfileAttestation | undefined, { evidence }: CertificateRequest): boolean {
  return attestation?.mode === 'enforce' && (attestation.required || evidence.length > 0);
}

/** The in-tree recognisers, most specific first. */
function recognise(
  kind: 'kube-apiserver-client-kubelet' | 'kubelet-serving',
  object: RequestObject,
  request: CertificateRequest,
): readonly Asks[] {
  const holds = (rules: readonly InTreeRule[]): boolean =>
    rules.every((rule) => rule.violations({ object, request }).length === 0);
  const self = object.username === request.subject.commonName;
  if (kind === 'kubelet-serving') return self && holds(kubeletServingInTree) ? ['selfnodeserver'] : [];
  if (!holds(kubeletClientInTree)) return [];
  return self ? ['selfnodeclient', 'nodeclient'] : ['nodeclient'];
}

/** Nothing when the requester cannot be read from the object: the API server wrote it, so something else did. */
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
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every(
      (list: unknown) => Array.isArray(list) && list.every((item: unknown) => typeof item === 'string'),
    )
  );
}
