/** Logs in with a bootstrap token to check it: does the server accept it, and may its user create requests? */
import { objectOf, parsedObject } from '../../core/encoding/json-object.ts';
import { tokenText } from '../../core/kubernetes/bootstrap-token.ts';
import type { BootstrapToken } from '../../core/kubernetes/bootstrap-token.ts';
import { success } from '../../core/outcome/result.ts';
import { quoted } from '../../core/outcome/printable-text.ts';
import { refuse } from './discovery-result.ts';
import type { Discovery } from './discovery-result.ts';
import { callServer } from './server-calls.ts';
import type { DiscoveryAnswer, Server } from './server-calls.ts';

export const newTokenHint =
  'create a new one: countersign token create, or kubeadm token create on a control-plane node';

/** Returns warnings. It sends the token, so the server must be verified. */
export async function logIn(
  server: Server & { readonly trusted: string },
  token: BootstrapToken,
): Promise<Discovery<readonly string[]>> {
  const bearer = tokenText(token);
  const self = await callServer(server, { method: 'POST', ...selfSubjectReview, bearer });
  if (!self.ok) return self;
  if (!isLoggedIn(self.value, token))
    return refuse(
      'TokenCannotLogIn',
      `token id ${quoted(token.id)} cannot log in: it is invalid for this cluster, it has expired, or its Secret lacks usage-bootstrap-authentication: "true"`,
      newTokenHint,
    );
  const access = await callServer(server, { method: 'POST', ...mayCreateRequests, bearer });
  if (!access.ok) return access;
  const { allowed } = objectOf(parsedObject(access.value.text ?? '')?.['status']);
  const isDenied = access.value.status === 201 && allowed === false;
  return success(isDenied ? [requestsForbidden(token)] : []);
}

const selfSubjectReview = {
  path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
  body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
} as const;

const mayCreateRequests = {
  path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  body: {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: {
      resourceAttributes: { verb: 'create', group: 'certificates.k8s.io', resource: 'certificatesigningrequests' },
    },
  },
} as const;

function requestsForbidden({ id }: BootstrapToken): string {
  return `token id ${quoted(id)} may not create CertificateSigningRequests: bind ClusterRole system:node-bootstrapper to a group of its auth-extra-groups`;
}

/**
 * The answer must contain the token's user name. A 403 alone proves nothing: the API server sends it to a user that it
 * authenticated and to an anonymous one, and names the user in both cases.
 */
function isLoggedIn({ status, text }: DiscoveryAnswer, { id }: BootstrapToken): boolean {
  // API servers before 1.28 do not have this resource. They answer 404 only to an authenticated user.
  return status === 404 || ((status === 201 || status === 403) && text?.includes(`system:bootstrap:${id}`) === true);
}
