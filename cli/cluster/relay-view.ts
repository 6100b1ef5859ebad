/**
 * Can a relay take over when kube-controller-manager approves no more? Labels are found by whoever may make a Deployment in any
 * namespace, so they only say where to look. What counts is what the API server says: the Deployment is available, and its own
 * ServiceAccount, in its own namespace, has the rights to approve and sign. Only a cluster administrator gives those.
 */
import { printable } from '../../core/outcome/printable-text.ts';
import { expected, listOf, mayThey, objectOf, textOf } from './object-answers.ts';
import type { Cluster } from './object-answers.ts';

export interface Relay {
  readonly name: string;
  readonly namespace: string;
  /** As the API server calls its pods. */
  readonly user: string;
  readonly ready: number;
  /** Its condition Available, of the Deployment as it is now. */
  readonly available: boolean;
  /** `answer` undefined: could not be asked. */
  readonly rights: readonly { readonly may: string; readonly answer: boolean | undefined }[];
  /** All rights to approve and sign; undefined: one could not be asked, and none is missing. */
  readonly approves: boolean | undefined;
}

export async function findRelays(cluster: Cluster, signerNames: readonly string[]): Promise<readonly Relay[]> {
  const { api, signal } = cluster;
  const labelSelector = 'app.kubernetes.io/part-of=countersign,app.kubernetes.io/name=countersign-watch-relay';
  const found = expected(await api.list('/apis/apps/v1/deployments', { labelSelector }, signal), 'Deployments');
  const relays: Relay[] = [];
  for (const deployment of found) {
    const { name, namespace, generation } = objectOf(deployment['metadata']);
    const template = objectOf(objectOf(objectOf(deployment['spec'])['template'])['spec']);
    const account = textOf(template['serviceAccountName']) || 'default';
    const user = `system:serviceaccount:${textOf(namespace)}:${account}`;
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${textOf(namespace)}`, 'system:authenticated'];
    const rights = [];
    for (const { may, questions } of neededRights(signerNames))
      rights.push({
        may,
        answer: await any(questions.map((question) => () => mayThey(cluster, { user, groups }, question))),
      });
    const { readyReplicas, observedGeneration, conditions } = objectOf(deployment['status']);
    relays.push({
      name: textOf(name),
      namespace: textOf(namespace),
      user,
      ready: Number(readyReplicas ?? 0),
      available:
        observedGeneration === generation &&
        listOf(conditions).some(({ type, status }) => type === 'Available' && status === 'True'),
      rights,
      approves: rights.some(({ answer }) => answer === false)
        ? false
        : rights.every(({ answer }) => answer === true) || undefined,
    });
  }
  return relays;
}

/** What deploy/chart gives a relay for signers with `approval: approve`. */
function neededRights(signerNames: readonly string[]) {
  const group = 'certificates.k8s.io';
  const resource = 'certificatesigningrequests';
  const requests = (verb: string, subresource?: string) => ({
    may: `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`,
    questions: [{ group, resource, verb, ...(subresource === undefined ? {} : { subresource }) }],
  });
  // The API server asks for the signer, then for all of its domain (plugin/pkg/admission/certificates).
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

/** The first yes; undefined where none says yes and one could not be asked. */
async function any(questions: readonly (() => Promise<boolean | undefined>)[]): Promise<boolean | undefined> {
  let answer: boolean | undefined = false;
  for (const ask of questions) {
    const given = await ask();
    if (given === true) return true;
    if (given === undefined) answer = undefined;
  }
  return answer;
}

export function canTakeOver({ ready, available, approves }: Relay): boolean {
  return ready > 0 && available && approves === true;
}

/** Of a relay that cannot, why: `not Ready`, `may not approve signers …`, `its rights were not seen`. */
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
