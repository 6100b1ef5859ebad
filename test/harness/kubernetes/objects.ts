import type { ApiClient } from './api-client.ts';

/* Objects of built-in kinds, created without kubectl: a process of kubectl takes longer than the call it makes. */

export interface AnyObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [key: string]: unknown };
  readonly [key: string]: unknown;
}

/** The path under which the API server has the objects of this kind, in the object's namespace if it has one. */
function collectionOf({ apiVersion, kind, metadata: { namespace } }: AnyObject): string {
  const version = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = `${kind.toLowerCase()}s`;
  return namespace === undefined ? `${version}/${plural}` : `${version}/namespaces/${namespace}/${plural}`;
}

/** Like kubectl, refuses fields that the API server does not know. */
export async function createObject(client: ApiClient, object: AnyObject): Promise<void> {
  await client.expectOk(`${collectionOf(object)}?fieldValidation=Strict`, { method: 'POST', body: object });
}

/** Resolves too if there is no such object. */
export async function deleteObject(client: ApiClient, object: AnyObject): Promise<void> {
  const path = `${collectionOf(object)}/${object.metadata.name}`;
  const { status, text } = await client.request(path, { method: 'DELETE' });
  if (status !== 200 && status !== 202 && status !== 404) throw new Error(`${path}: ${status} ${text}`);
}

const rbac = 'rbac.authorization.k8s.io';

export function clusterRole(name: string, rules: readonly object[]): AnyObject {
  return { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name }, rules };
}

export function clusterRoleBinding(name: string, role: string, subject: object): AnyObject {
  const roleRef = { apiGroup: rbac, kind: 'ClusterRole', name: role };
  return { apiVersion: `${rbac}/v1`, kind: 'ClusterRoleBinding', metadata: { name }, roleRef, subjects: [subject] };
}

/** A user or a group, as the subject of a binding. */
export function subject(kind: 'User' | 'Group', name: string): object {
  return { apiGroup: rbac, kind, name };
}
