/**
 * Whether a relay can take over when kube-controller-manager no longer approves. A user who may create Deployments in any
 * namespace can set the labels, so the labels only select candidates. A relay can take over if its Deployment is available and
 * its ServiceAccount has the rights to approve and sign, which only a cluster administrator can grant.
 */
import type { V1Deployment } from '@kubernetes/client-node';
import type { ClusterClients } from '../../adapters/kubernetes/clients.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { allPages, isAllowed } from './object-answers.ts';

export interface Relay {
  readonly name: string;
  readonly namespace: string;
  /** User name of its pods at the API server. */
  readonly user: string;
  readonly ready: number;
  /** The condition Available of the current generation. */
  readonly available: boolean;
  /** `answer` undefined: this login may not create SubjectAccessReviews. */
  readonly rights: readonly { readonly may: string; readonly answer: boolean | undefined }[];
  /** Whether it has all rights to approve and sign; undefined: none is missing, but at least one is unknown. */
  readonly approves: boolean | undefined;
}

export const relayLabels = 'app.kubernetes.io/part-of=countersign,app.kubernetes.io/component=watch-relay';

export async function findRelays(cluster: ClusterClients, signerNames: readonly string[]): Promise<readonly Relay[]> {
  const found = await allPages(
    (page) => cluster.apps.listDeploymentForAllNamespaces({ labelSelector: relayLabels, ...page }),
    'Deployments',
  );
  const relays: Relay[] = [];
  for (const deployment of found) relays.push(await viewRelay(cluster, deployment, signerNames));
  return relays;
}

async function viewRelay(
  cluster: ClusterClients,
  { metadata, spec, status }: V1Deployment,
  signerNames: readonly string[],
): Promise<Relay> {
  const { name = '', namespace = '', generation } = metadata ?? {};
  const user = `system:serviceaccount:${namespace}:${spec?.template.spec?.serviceAccountName || 'default'}`;
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
  const rights = [];
  for (const { may, questions } of neededRights(signerNames))
    rights.push({ may, answer: await isAllowed(cluster, { user, groups }, ...questions) });
  return {
    name,
    namespace,
    user,
    ready: status?.readyReplicas ?? 0,
    available:
      status?.observedGeneration === generation &&
      status?.conditions?.some((condition) => condition.type === 'Available' && condition.status === 'True') === true,
    rights,
    approves: rights.some(({ answer }) => answer === false)
      ? false
      : rights.every(({ answer }) => answer === true) || undefined,
  };
}

/** The rights that deploy/chart grants a relay for signers with `approval: approve`. */
function neededRights(signerNames: readonly string[]) {
  const group = 'certificates.k8s.io';
  const resource = 'certificatesigningrequests';
  const requests = (verb: string, subresource?: string) => ({
    may: `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`,
    questions: [{ group, resource, verb, ...(subresource === undefined ? {} : { subresource }) }],
  });
  // The API server checks the signer, then the wildcard of its domain (plugin/pkg/admission/certificates).
  const signers = (verb: string, name: string) => ({
    may: `${verb} signers ${name}`,
    questions: [name, `${name.split('/')[0]}/*`].map((each) => ({ group, resource: 'signers', verb, name: each })),
  });
  return [
    requests('list'),
    requests('watch'),
    requests('update', 'approval'),
    requests('update', 'status'),
    ...signerNames.flatMap((name) => [signers('approve', name), signers('sign', name)]),
  ];
}

export function canTakeOver({ ready, available, approves }: Relay): boolean {
  return ready > 0 && available && approves === true;
}

/** Whether the relay can approve and sign, and if not, why. */
export function relayText({ ready, available, rights }: Relay): string {
  const missing = rights.filter(({ answer }) => answer === false).map(({ may }) => may);
  const unseen = rights.filter(({ answer }) => answer === undefined);
  const words = [
    ...(ready > 0 ? [] : ['it is not Ready']),
    ...(available || ready === 0 ? [] : ['it is not Available']),
    ...(missing.length === 0 ? [] : [`it may NOT ${missing.join(', ')}`]),
    ...(unseen.length === 0 ? [] : ['its rights were not seen (no right to SubjectAccessReviews)']),
  ];
  return words.length === 0 ? 'may approve and sign' : words.join('; ');
}

export function relayName({ namespace, name, user }: Relay): string {
  return `${printable(namespace)}/${printable(name)} (${printable(user)})`;
}
