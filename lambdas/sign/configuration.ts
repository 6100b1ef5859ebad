import { readBundledCallers, readBundledCluster } from '../../core/configuration/bundled-configuration.ts';
import type { CallersAllowed } from '../../core/configuration/bundled-configuration.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

/**
 * JSON text of this cluster's rules (`bundleCluster`), put in by the bundler. Policy is not read from the environment:
 * a principal that may change it must not be able to change what is signed.
 */
declare const __COUNTERSIGN_CLUSTER__: string | undefined;
/** JSON text of who may call (`bundleCallers`), likewise. */
declare const __COUNTERSIGN_CALLERS__: string | undefined;

/** Throws where the code runs without having been bundled for a cluster. */
export function clusterConfiguration(): ClusterConfiguration {
  if (typeof __COUNTERSIGN_CLUSTER__ === 'undefined') throw new Error('this bundle was made for no cluster');
  return readBundledCluster(__COUNTERSIGN_CLUSTER__);
}

/** Throws where the code was bundled without saying who may call it. */
export function callersAllowed(): CallersAllowed {
  if (typeof __COUNTERSIGN_CALLERS__ === 'undefined') throw new Error('this bundle does not say who may call');
  return readBundledCallers(__COUNTERSIGN_CALLERS__);
}
