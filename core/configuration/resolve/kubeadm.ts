/** Resolves what operators may have signed for kubeadm's control plane. */
import type { Place } from '../fields/place.ts';
import { seconds } from '../fields/values.ts';
import type { CaConfiguration, KubeadmConfiguration } from '../model/cluster.ts';
import type { ClusterInput } from '../schema/cluster.ts';
import type { KubeadmInput } from '../schema/kubeadm.ts';
import { canonicalAddress, isHostName } from '../../policy/patterns.ts';
import type { Profile } from '../../policy/profile.ts';

/** `at`: the cluster. */
export function resolveKubeadm(
  { kubeadm, clusterDomain }: ClusterInput,
  cas: ReadonlyMap<string, CaConfiguration>,
  profiles: ReadonlyMap<string, Profile>,
  at: Place,
): KubeadmConfiguration | undefined {
  if (kubeadm === undefined) return undefined;
  const here = at('kubeadm');
  checkCas(kubeadm.cas, cas, profiles, here('cas'));
  const maxTtlSeconds = seconds(kubeadm.maxTtl);
  if (maxTtlSeconds < 3_600) here('maxTtl').error('must be at least 1h');
  if (Object.keys(kubeadm.nodes).length === 0) here('nodes').error('must name at least one node');
  return {
    cas: kubeadm.cas,
    apiServerNames: names(kubeadm.apiServerNames, here('apiServerNames')),
    nodes: Object.entries(kubeadm.nodes).map(([node, list]) => [node, names(list, here('nodes', node))] as const),
    clusterDomain,
    maxTtlSeconds,
  };
}

/**
 * Each API server trusts the three CAs for another purpose: a client certificate of the etcd CA may read and write all of etcd, one of
 * the front proxy's CA may name any user. So neither may be a CA that signs anything else.
 */
function checkCas(
  chosen: KubeadmInput['cas'],
  cas: ReadonlyMap<string, CaConfiguration>,
  profiles: ReadonlyMap<string, Profile>,
  at: Place,
): void {
  const { kubernetes, frontProxy, etcd } = chosen;
  if (kubernetes === undefined && frontProxy === undefined && etcd === undefined)
    at.error('must name at least one CA: kubernetes, frontProxy or etcd');
  for (const [role, name] of Object.entries(chosen))
    if (!cas.has(name)) at(role).error(`no CA of this cluster has that name (${[...cas.keys()].join(', ')})`);
  if (frontProxy !== undefined && frontProxy === kubernetes)
    at('frontProxy').error('must not be the CA of kubernetes: its clients could act as any user');
  if (etcd !== undefined && (etcd === kubernetes || etcd === frontProxy))
    at('etcd').error('must be a CA of its own: etcd obeys every client certificate of it');
  for (const role of ['frontProxy', 'etcd'] as const)
    for (const { signerName, ca } of profiles.values())
      if (ca === chosen[role] && ca !== kubernetes)
        at(role).error(`signs for profile ${signerName} too; it must sign nothing else`);
}

/** DNS names in lower case, addresses in canonical form, as in requests. */
function names(list: readonly string[], at: Place): readonly string[] {
  return list.map((name, index) => {
    const address = canonicalAddress(name);
    // A name that ends in a number is a mistyped address (RFC 1123 §2.1).
    if (address === undefined && (!isHostName(name.replace(/^\*\./, '')) || /(^|\.)[0-9]+$/.test(name)))
      at(index).error('must be an address, a DNS name, or a wildcard such as *.example.com');
    return address ?? name.toLowerCase();
  });
}
