/** The anchors of a signer, where the relay keeps them for verifiers (docs/ca/trust.md). */
import { objectOf } from '../../core/encoding/json-object.ts';
import type { Consumer } from '../../core/rotation/consumers.ts';
import { relayLabels } from '../cluster/relay-view.ts';
import { bundleOf, listAll, nameOf, readConfigMap, readOr, text } from './reads.ts';
import type { Cluster } from './reads.ts';

export async function signerBundles(cluster: Cluster): Promise<readonly Consumer[]> {
  return [...(await clusterTrustBundles(cluster)), ...(await relayConfigMaps(cluster))];
}

/** ClusterTrustBundles of any version that is served. */
async function clusterTrustBundles(cluster: Cluster): Promise<readonly Consumer[]> {
  for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
    const read = await readOr(listAll(cluster, 'certificates.k8s.io', version, 'clustertrustbundles'));
    if (read.ok && read.value === undefined) continue;
    const common = { name: 'ClusterTrustBundle', concern: 'none', change: 'by its writer' } as const;
    if (!read.ok) return [{ ...common, place: 'ClusterTrustBundles', unread: read.why }];
    return (read.value ?? []).map((item) => {
      const { signerName, trustBundle } = objectOf(item['spec']);
      return {
        ...common,
        place: `ClusterTrustBundle ${nameOf(item)}`,
        bundle: text(trustBundle),
        concern: typeof signerName === 'string' && signerName !== '' ? { signerName } : 'none',
      };
    });
  }
  return [];
}

/** The relay's flags name its ConfigMaps. */
async function relayConfigMaps(cluster: Cluster): Promise<readonly Consumer[]> {
  const read = await readOr(cluster.apps.listDeploymentForAllNamespaces({ labelSelector: relayLabels }));
  const common = { name: 'ConfigMap of the relay', change: 'by the relay, within a minute' } as const;
  if (!read.ok) return [{ ...common, place: 'Deployments of the relay', unread: read.why, concern: 'none' }];
  const words = (read.value?.items ?? []).flatMap(
    ({ spec }) => spec?.template.spec?.containers.flatMap(({ command = [], args = [] }) => [...command, ...args]) ?? [],
  );
  const found: Consumer[] = [];
  for (const word of new Set(words)) {
    const [, signerName, namespace, name] = /^--trust-config-map=([^=]+)=([^/]+)\/(.+)$/.exec(word) ?? [];
    if (signerName === undefined || namespace === undefined || name === undefined) continue;
    const bundle = bundleOf(await readConfigMap(cluster, namespace, name), 'ca.crt');
    found.push({ ...common, place: `ConfigMap ${namespace}/${name}`, ...bundle, concern: { signerName } });
  }
  return found;
}
