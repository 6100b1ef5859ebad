/** Who calls the stand-in, and what a requester may do by the answers to SubjectAccessReviews. */
import type { IncomingMessage } from 'node:http';
import { objectOf } from '../../core/encoding/json-object.ts';
import { success } from '../../core/outcome/result.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { problem } from './csr-rules.ts';
import type { Stored } from './csr-rules.ts';
import type { Requester } from './csr-store.ts';

/** The fields of a SubjectAccessReview that answers can depend on here. */
export interface Review {
  readonly user: string;
  readonly groups: readonly string[];
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
}

export function requesterOf(request: IncomingMessage): Requester {
  const username = request.headers['impersonate-user'];
  if (typeof username !== 'string')
    return { username: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] };
  const groups = request.headersDistinct['impersonate-group'] ?? groupsOf(username);
  return { username, groups: [...groups, 'system:authenticated'] };
}

/** The groups that the authenticators give bootstrap tokens and node certificates. */
function groupsOf(username: string): readonly string[] {
  if (username.startsWith('system:bootstrap:')) return ['system:bootstrappers', kubeadmTokens];
  return username.startsWith('system:node:') ? ['system:nodes'] : [];
}

const kubeadmTokens = 'system:bootstrappers:kubeadm:default-node-token';

export function reviewed(object: JsonObject, allows: (review: Review) => boolean): Stored {
  const spec = objectOf(object['spec']);
  const { user, groups = [], resourceAttributes } = spec;
  if (!Array.isArray(groups) || (groups.length === 0 && !user))
    return problem(422, 'Invalid', 'spec.user: Required value: at least one of user or group must be specified');
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  const { verb, group, resource, subresource } = objectOf(resourceAttributes);
  const review: Review = {
    user: text(user),
    groups: groups.map(text),
    verb: text(verb),
    group: text(group),
    resource: text(resource),
    subresource: text(subresource),
  };
  const allowed = review.groups.includes('system:masters') || allows(review);
  return success({ ...object, status: { allowed } });
}

/** The bindings that `kubeadm init` makes: requesters whose node requests are approved automatically. */
export function allowedByKubeadm({ groups, verb, group, resource, subresource }: Review): boolean {
  if (verb !== 'create' || group !== 'certificates.k8s.io' || resource !== 'certificatesigningrequests') return false;
  if (subresource === 'nodeclient') return groups.includes(kubeadmTokens);
  return subresource === 'selfnodeclient' && groups.includes('system:nodes');
}
