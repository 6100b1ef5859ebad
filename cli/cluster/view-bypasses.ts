/** What gives nodes certificates without evidence in a cluster, as far as its objects and reviews show it. */
import type { RbacV1Subject } from '@kubernetes/client-node';
import type { ClusterClients } from '../../adapters/kubernetes/clients.ts';
import { defaultTokenGroup } from '../../core/kubernetes/bootstrap-token.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import type { ClusterLogin } from './cluster-access.ts';
import { viewControllerManager } from './controller-manager.ts';
import type { ControllerManagerView, SeenController } from './controller-manager.ts';
import type { HardenView } from './harden-view.ts';
import { allPages, isAllowed } from './object-answers.ts';
import { findRelays } from './relay-view.ts';

/** The rights that the in-tree approver checks before it approves (pkg/controller/certificates/approver/sarapprove.go). */
const bypasses = [
  {
    role: 'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
    subresource: 'nodeclient',
    who: {
      user: 'system:bootstrap:aaaaaa',
      groups: ['system:bootstrappers', defaultTokenGroup, 'system:authenticated'],
    },
    means: 'a client with a bootstrap token can become any node',
  },
  {
    role: 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
    subresource: 'selfnodeclient',
    who: { user: 'system:node:aaaaaa', groups: ['system:nodes', 'system:authenticated'] },
    means: 'a client with a node’s certificate can renew it on any machine',
  },
] as const;

/** `probed`: what a probe of the signer saw. `signerNames`: of the relays' rights to approve and sign. */
export async function viewBypasses(
  cluster: ClusterClients,
  probed: SeenController | undefined,
  signerNames: readonly string[],
): Promise<Omit<HardenView, keyof ClusterLogin>> {
  const rights = [];
  for (const { who, subresource } of bypasses) {
    const [group, resource, verb] = ['certificates.k8s.io', 'certificatesigningrequests', 'create'];
    // kube-controller-manager sends version *, which RBAC ignores.
    const answer = await isAllowed(cluster, who, { group, version: '*', resource, subresource, verb });
    rights.push({ user: who.user, may: `${verb} ${resource}/${subresource}`, answer });
  }
  return {
    controllerManager: withProbe(await viewControllerManager(cluster), probed),
    bindings: await bypassBindings(cluster),
    rights,
    relays: await findRelays(cluster, signerNames),
  };
}

/** csrsigning is on if the flags or the probe show it on. */
function withProbe(view: ControllerManagerView, probed: SeenController | undefined): ControllerManagerView {
  if (probed === undefined) return view;
  const { state, seen } = view.csrsigning;
  const combined = state === 'on' || probed.state === 'not seen' ? state : probed.state;
  return { ...view, csrsigning: { state: combined, seen: [...seen, ...probed.seen] } };
}

/** Finds the bindings by the role that they grant, since Kubernetes' documentation uses other names for them. */
async function bypassBindings({ rbac }: ClusterClients) {
  const all = await allPages((page) => rbac.listClusterRoleBinding({ ...page }), 'ClusterRoleBindings');
  return all.flatMap(({ metadata, roleRef, subjects = [] }) => {
    const bypass = bypasses.find(({ role }) => role === roleRef.name);
    if (bypass === undefined || subjects.length === 0) return [];
    const { name = '', uid = '', resourceVersion = '' } = metadata ?? {};
    const { role, means } = bypass;
    return [{ name, uid, resourceVersion, role, subjects: subjects.map(subjectText), means }];
  });
}

function subjectText({ kind, namespace, name }: RbacV1Subject): string {
  return [kind, namespace ?? '', name]
    .filter((word) => word !== '')
    .map(printable)
    .join(' ');
}
