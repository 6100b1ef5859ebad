/**
 * The login for the first certificate: a bootstrap token, or the user of a discovery file. It is checked before files are
 * written: does the server accept it, and may its user create requests?
 */
import { objectOf, parsedObject } from '../../core/encoding/json-object.ts';
import { tokenText } from '../../core/kubernetes/bootstrap-token.ts';
import type { BootstrapToken } from '../../core/kubernetes/bootstrap-token.ts';
import { success } from '../../core/outcome/result.ts';
import { quoted } from '../../core/outcome/printable-text.ts';
import { bootstrapLogin, LoginError } from '../request/login.ts';
import { refuse } from './discovery-result.ts';
import type { Discovery } from './discovery-result.ts';
import { callServer } from './server-calls.ts';
import type { ClientCertificate, DiscoveryAnswer, Server } from './server-calls.ts';

export type FirstLogin =
  | { readonly kind: 'token'; readonly token: BootstrapToken }
  /** The user of this kubeconfig, such as a copy of the kubelet.conf with which the node has run so far. */
  | { readonly kind: 'file'; readonly file: string };

/** What proves the user to the API server. */
export interface Credential {
  /** For messages. */
  readonly what: string;
  /** The user name at the API server, if it follows from the credential. */
  readonly username: string | undefined;
  readonly proof: { readonly bearer: string } | { readonly clientCertificate: ClientCertificate };
  readonly refusal: {
    readonly why: 'TokenCannotLogIn' | 'LoginRefused';
    readonly message: string;
    readonly hint: string;
  };
}

export const newTokenHint =
  'create a new one: countersign token create, or kubeadm token create on a control-plane node';

export function credentialOfToken(token: BootstrapToken): Credential {
  const what = `token id ${quoted(token.id)}`;
  const message = `token id ${quoted(token.id)} cannot log in: it is invalid for this cluster, it has expired, or its Secret lacks usage-bootstrap-authentication: "true"`;
  return {
    what,
    username: `system:bootstrap:${token.id}`,
    proof: { bearer: tokenText(token) },
    refusal: { why: 'TokenCannotLogIn', message, hint: newTokenHint },
  };
}

/** Reads the discovery file again, now for its user. A file without one is refused. */
export async function credentialOf(login: FirstLogin): Promise<Discovery<Credential>> {
  if (login.kind === 'token') return success(credentialOfToken(login.token));
  const { file } = login;
  try {
    const { username, headers, certificatePem, keyPem } = await bootstrapLogin(file);
    const proof =
      certificatePem !== undefined && keyPem !== undefined
        ? { clientCertificate: { certificatePem, keyPem } }
        : { bearer: (headers['authorization'] ?? '').replace(/^Bearer /, '') };
    const what = `the user of ${file}${username === undefined ? '' : ` (${username})`}`;
    const message = `${what} cannot log in: its certificate or token has expired, or is of a CA that the API server does not trust`;
    return success({ what, username, proof, refusal: { why: 'LoginRefused', message, hint: orToken } });
  } catch (error) {
    if (error instanceof LoginError) return refuse('LoginRefused', error.message, orToken);
    throw error;
  }
}

const orToken = 'or give a bootstrap token: --token-file';

/** Returns warnings. It sends the credential, so the server must be verified. */
export async function logIn(
  server: Server & { readonly trusted: string },
  credential: Credential,
): Promise<Discovery<readonly string[]>> {
  const { what, proof, refusal } = credential;
  const self = await callServer(server, { method: 'POST', ...selfSubjectReview, ...proof });
  if (!self.ok) return self;
  if (!isLoggedIn(self.value, credential)) return refuse(refusal.why, refusal.message, refusal.hint);
  const access = await callServer(server, { method: 'POST', ...mayCreateRequests, ...proof });
  if (!access.ok) return access;
  const { allowed } = objectOf(parsedObject(access.value.text ?? '')?.['status']);
  const isDenied = access.value.status === 201 && allowed === false;
  return success(isDenied ? [`${what} ${requestsForbidden}`] : []);
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

const requestsForbidden =
  'may not create CertificateSigningRequests: bind ClusterRole system:node-bootstrapper to one of its groups (of a token: auth-extra-groups)';

/**
 * The answer must contain the user name. A 403 alone proves nothing: the API server sends it to a user that it
 * authenticated and to an anonymous one, and names the user in both cases.
 */
function isLoggedIn({ status, text }: DiscoveryAnswer, { username }: Credential): boolean {
  // API servers before 1.28 do not have this resource. They answer 404 only to an authenticated user.
  if (status === 404) return true;
  if (username === undefined) return status === 201;
  return (status === 201 || status === 403) && text?.includes(username) === true;
}
