import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import type { ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import type { Kubelet } from '../../../harness/kubernetes/kubelet.ts';
import type { CsrObject } from '../../../harness/stack/requests.ts';

/* What can be seen of a node from the control plane. */

export interface NodeCondition {
  readonly type: string;
  readonly status: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

interface NodeObject {
  readonly status: { readonly conditions?: readonly NodeCondition[] };
}

/** `lastTransitionTime` moves whenever the status did, however short. */
export async function readyCondition(
  plane: Pick<ControlPlane, 'admin'>,
  nodeName: string,
): Promise<NodeCondition | undefined> {
  const answer = await plane.admin.request(`/api/v1/nodes/${nodeName}`);
  if (answer.status === 404) return undefined;
  const node = answer.json() as NodeObject;
  return node.status.conditions?.find(({ type }) => type === 'Ready');
}

/** A kubelet that ended will not get ready: that is an error, which shows its log. */
export async function isReady(
  plane: Pick<ControlPlane, 'admin'>,
  kubelet: Kubelet,
  nodeName: string,
): Promise<boolean> {
  const ended = kubelet.process.ended();
  if (ended !== undefined) throw new Error(`kubelet ended (${ended}):\n${kubelet.process.logTail(40)}`);
  return (await readyCondition(plane, nodeName))?.status === 'True';
}

/**
 * `/healthz` of the kubelet through the API server, which calls it at its address and wants a serving certificate of
 * our CA for it (`--kubelet-certificate-authority`). Why not, where it does not answer.
 */
export async function proxiedHealth(plane: Pick<ControlPlane, 'admin'>, nodeName: string): Promise<string> {
  return (await plane.admin.request(`/api/v1/nodes/${nodeName}/proxy/healthz`)).text;
}

/** The certificate that a kubelet shows to a client, verified or not. */
export function presentedCertificate(host: string, port: number): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, rejectUnauthorized: false, timeout: 10_000 }, () => {
      const { raw } = socket.getPeerCertificate();
      socket.destroy();
      resolve(new X509Certificate(raw));
    });
    socket.on('timeout', () => socket.destroy(new Error('no handshake in 10 s')));
    socket.on('error', reject);
  });
}

/** Fingerprints of the client certificates this user was known by. */
export function logins(plane: ControlPlane, user: string): Set<string> {
  const ids = plane
    .auditEvents({ user })
    .flatMap((event) => event.user.extra?.['authentication.kubernetes.io/credential-id'] ?? []);
  return new Set(ids.map(fingerprintIn));
}

/** `X509SHA256=0a1b…` as node:crypto writes it. */
function fingerprintIn(credentialId: string): string {
  const hex = credentialId.replace('X509SHA256=', '').toUpperCase();
  return hex.match(/../g)?.join(':') ?? '';
}

/** Requests that this user was refused, and those of requesters that the API server did not know. */
export function failures(plane: ControlPlane, user: string): string[] {
  return plane
    .auditEvents()
    .filter(({ responseStatus }) => responseStatus?.code === 401 || responseStatus?.code === 403)
    .filter((event) => event.user.username === user || event.responseStatus?.code === 401)
    .map(({ verb, requestURI, responseStatus }) => `${responseStatus?.code} ${verb} ${requestURI}`);
}

export function requestsOf(objects: readonly CsrObject[], user: string): CsrObject[] {
  return objects.filter(({ spec }) => spec.username === user);
}
