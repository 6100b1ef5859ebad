/** The cluster of a demo, from the text of a countersign.yaml. */
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { parseConfiguration } from '../../core/configuration/parse.ts';

/** `yaml` has cluster `demo`. */
export function demoCluster(yaml: string): ClusterConfiguration {
  const parsed = parseConfiguration(yaml, 'demo');
  const cluster = parsed.ok ? parsed.value.configuration.clusters.get('demo') : undefined;
  if (cluster === undefined) throw new Error(`the demo's own configuration is wrong: ${JSON.stringify(parsed)}`);
  return cluster;
}
