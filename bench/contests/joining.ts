/** Pending requests of one bootstrap token, as nodes that join make them. */
import { randomBytes } from 'node:crypto';
import type { ApiClient } from '../../test/harness/kubernetes/api-client.ts';
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import { ensure } from '../contenders/processes.ts';
import type { Contender } from '../contenders/contender.ts';
import { attestedSigner } from '../contenders/fake-aws.ts';
import type { FakeAws } from '../contenders/fake-aws.ts';
import { requestsPath } from '../requests/observer.ts';
import { createGiven, kubeletRequests, requestObject, signerName } from '../requests/requests.ts';
import type { NodeRequest } from '../requests/requests.ts';
import { removeAll } from '../requests/request-snapshot.ts';
import type { Snapshot } from '../requests/request-snapshot.ts';
import type { PendingCall } from './turns.ts';

/**
 * Requests of machines that join for the first time. If the contender demands evidence, each request carries it. Evidence
 * is made just before the turn, because it expires after five minutes.
 */
export async function joiningRequests(
  contender: Contender,
  count: number,
  aws: FakeAws | undefined,
): Promise<readonly NodeRequest[]> {
  const { evidenceCluster } = contender;
  const batch = randomBytes(4).toString('hex');
  const names = Array.from({ length: count }, (_, index) => `join-${batch}-${String(index).padStart(5, '0')}`);
  if (evidenceCluster === undefined) return kubeletRequests(names);
  if (aws === undefined) throw new Error('the fake AWS has not been started');
  return aws.evidence({ names, cluster: evidenceCluster, signerName: attestedSigner });
}

/** Creates the requests on a control plane on which no contender works, and removes them from it for a burst elsewhere. */
export async function snapshotOf(
  requests: readonly NodeRequest[],
  contender: Contender,
  preparation: { readonly controlPlane: ControlPlane; readonly token: ApiClient },
): Promise<Snapshot> {
  await createGiven(preparation.token, requests, signerFor(contender));
  return removeAll(preparation.controlPlane);
}

/** The calls that create the requests one by one. */
export function creationsOf(
  requests: readonly NodeRequest[],
  contender: Contender,
  token: ApiClient,
): readonly PendingCall[] {
  return requests.map(({ name, request }) => ({
    name,
    send: () => {
      const body = requestObject(name, Buffer.from(request), signerFor(contender));
      return token.expectOk(requestsPath, { method: 'POST', body });
    },
  }));
}

/** kube-controller-manager approves for its own signer only, and signs there without attestation. */
function signerFor({ evidenceCluster }: Contender): string {
  return evidenceCluster === undefined ? signerName : attestedSigner;
}

/** A client with the rights that kubeadm gives its tokens: it may create requests, and they may be approved. */
export async function bootstrapToken(controlPlane: ControlPlane): Promise<ApiClient> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const group = 'system:bootstrappers';
  for (const name of ['system:node-bootstrapper', 'system:certificates.k8s.io:certificatesigningrequests:nodeclient'])
    await ensure(controlPlane, 'ClusterRoleBinding', `bench:${name}`, {
      roleRef: { apiGroup, kind: 'ClusterRole', name },
      subjects: [{ apiGroup, kind: 'Group', name: group }],
    });
  return controlPlane.client({ user: 'system:bootstrap:bench0', groups: [group] });
}
