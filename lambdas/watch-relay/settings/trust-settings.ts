/** The flags that name the objects with CA certificates. Without them the relay keeps none, and needs no rights for it. */
import { InvalidArgumentError, Option } from 'commander';
import type { ConfigMapPlace, KeptTrust } from '../trust/kept-objects.ts';

export interface TrustFlags {
  readonly trustConfigMap?: readonly ConfigMapPlace[];
  readonly clusterTrustBundles?: string;
}

export const trustFlags: readonly Option[] = [
  new Option(
    '--trust-config-map <SIGNER=NAMESPACE/NAME>',
    'keep the CA certificates of this signer in this ConfigMap, key ca.crt; may be repeated',
  ).argParser(configMapPlace),
  new Option(
    '--cluster-trust-bundles <SUFFIX>',
    'keep a ClusterTrustBundle <signer>:<suffix> for each signer, where the API server serves them',
  ).argParser((suffix: string) => {
    if (!isSubdomain(suffix))
      throw new InvalidArgumentError('It is not of lower-case letters, digits, dashes and dots.');
    return suffix;
  }),
];

export function trustOf({ trustConfigMap = [], clusterTrustBundles }: TrustFlags): KeptTrust | undefined {
  if (trustConfigMap.length === 0 && clusterTrustBundles === undefined) return undefined;
  return { configMaps: trustConfigMap, clusterTrustBundleSuffix: clusterTrustBundles };
}

/** The form that roles of the API server can name: no `*`, which would be all signers of a domain. */
export function isSignerName(text: string): boolean {
  return /^[a-z0-9.-]+\.[a-z0-9.-]+\/[A-Za-z0-9._-]+$/.test(text);
}

function configMapPlace(text: string, before: readonly ConfigMapPlace[] = []): readonly ConfigMapPlace[] {
  const [, signerName = '', namespace = '', name = ''] = /^([^=]*)=([^/]*)\/(.*)$/.exec(text) ?? [];
  if (!isSignerName(signerName) || !/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(namespace) || !isSubdomain(name))
    throw new InvalidArgumentError('It is not of the form domain.tld/signer=namespace/name.');
  if (before.some((place) => place.namespace === namespace && place.name === name))
    throw new InvalidArgumentError(`ConfigMap ${namespace}/${name} is named twice.`);
  return [...before, { signerName, namespace, name }];
}

/** RFC 1123, as the API server checks names. */
function isSubdomain(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(text);
}
