/**
 * What the bundler inserted, as JSON text. None of it is read from the environment: a principal that may change the
 * environment must not be able to change what is signed, which machines may join, or who may call.
 */
import {
  readBundledCallers,
  readBundledCluster,
  readBundledFingerprint,
} from '../../core/configuration/bundled-configuration.ts';
import type { CallersAllowed } from '../../core/configuration/bundled-configuration.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

/** Text of `bundleCluster` or `bundleAttestation`. */
declare const __COUNTERSIGN_CLUSTER__: string | undefined;
/** Text of `bundleCallers`. */
declare const __COUNTERSIGN_CALLERS__: string | undefined;

/** Throws if the code was not bundled for a cluster. */
export function clusterConfiguration(): ClusterConfiguration {
  return readBundledCluster(bundledCluster());
}

/** `rulesFingerprint` of the cluster, for the sign function. */
export function bundledFingerprint(): string {
  return readBundledFingerprint(bundledCluster());
}

function bundledCluster(): string {
  if (typeof __COUNTERSIGN_CLUSTER__ === 'undefined') throw new Error('this bundle was made for no cluster');
  return __COUNTERSIGN_CLUSTER__;
}

/** Throws if the code was bundled without callers. */
export function callersAllowed(): CallersAllowed {
  if (typeof __COUNTERSIGN_CALLERS__ === 'undefined') throw new Error('this bundle does not say who may call');
  return readBundledCallers(__COUNTERSIGN_CALLERS__);
}
