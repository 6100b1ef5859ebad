import type { RegionCertificates } from '../../core/attestation/aws/endpoints.ts';
import { readBundledCallers, readBundledCluster } from '../../core/configuration/bundled-configuration.ts';
import type { CallersAllowed } from '../../core/configuration/bundled-configuration.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

/**
 * JSON text of this cluster's rules (`bundleAttestation`) and of the certificates of its regions, put in by the bundler.
 * Neither is read from the environment: a principal that may change it must not be able to change which machines may join.
 */
declare const __COUNTERSIGN_CLUSTER__: string | undefined;
declare const __COUNTERSIGN_REGION_CERTIFICATES__: string | undefined;
/** JSON text of who may call (`bundleCallers`), likewise. */
declare const __COUNTERSIGN_CALLERS__: string | undefined;

/** Throws where the code runs without having been bundled for a cluster. */
export function clusterConfiguration(): ClusterConfiguration {
  if (typeof __COUNTERSIGN_CLUSTER__ === 'undefined') throw new Error('this bundle was made for no cluster');
  return readBundledCluster(__COUNTERSIGN_CLUSTER__);
}

/** Checked against their pins when the bundle was made. */
export function regionCertificates(): RegionCertificates {
  if (typeof __COUNTERSIGN_REGION_CERTIFICATES__ === 'undefined')
    throw new Error('this bundle was made without region certificates');
  const byRegion = JSON.parse(__COUNTERSIGN_REGION_CERTIFICATES__) as Readonly<Record<string, readonly string[]>>;
  return new Map(
    Object.entries(byRegion).map(([region, list]) => [region, list.map((der) => Buffer.from(der, 'base64'))]),
  );
}

/** Throws where the code was bundled without saying who may call it. */
export function callersAllowed(): CallersAllowed {
  if (typeof __COUNTERSIGN_CALLERS__ === 'undefined') throw new Error('this bundle does not say who may call');
  return readBundledCallers(__COUNTERSIGN_CALLERS__);
}
