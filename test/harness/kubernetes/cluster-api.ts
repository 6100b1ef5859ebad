import type { ControlPlane } from './control-plane.ts';
import { createObject, type AnyObject } from './objects.ts';
import { eventually } from '../stack/requests.ts';

/* What `countersign token reconcile` reads of Cluster API. */

const group = 'cluster.x-k8s.io';

/** Definitions that take everything. Resolves when the API server serves them. */
export async function installClusterApi({ admin }: ControlPlane): Promise<void> {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  for (const kind of ['Machine', 'MachinePool']) {
    const singular = kind.toLowerCase();
    const plural = `${singular}s`;
    await createObject(admin, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: {
        name: `${plural}.${group}`,
        annotations: { 'api-approved.kubernetes.io': 'unapproved, test' },
      },
      spec: {
        group,
        names: { plural, singular, kind },
        scope: 'Namespaced',
        versions: [{ name: 'v1beta1', served: true, storage: true, schema }],
      },
    });
    const isServed = async () => (await admin.request(`/apis/${group}/v1beta1/${plural}`)).status === 200;
    await eventually(isServed, `${plural} are served`);
  }
}

/** In namespace default. */
export function machine(name: string, more: { readonly spec?: object; readonly status?: object } = {}): AnyObject {
  return { apiVersion: `${group}/v1beta1`, kind: 'Machine', metadata: { name, namespace: 'default' }, ...more };
}

export function machinePool(name: string): AnyObject {
  return { apiVersion: `${group}/v1beta1`, kind: 'MachinePool', metadata: { name, namespace: 'default' } };
}
