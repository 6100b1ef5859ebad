/** The values `clusterApi`: the rights that they make, and values that do not go together. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { requireTools } from '../../../tools/tools.ts';
import { example, objects, template } from './helm.ts';
import type { Rendered } from './helm.ts';

const { skip } = await requireTools('helm');
const file = example('cluster-api.yaml');
const { configuration } = parse(readFileSync(file, 'utf8')) as { configuration: string };
const without = configuration.replace(/ +machines: clusterApi\n.*\n/, '');

/** `kind in namespace: verb resource (name)` of each right on other objects than requests and the relay's own. */
function rightsOf(rendered: readonly Rendered[]): string[] {
  const ours = /^(nodes|machines|machinepools|clusters|awsclusters)(\/status)?$/;
  return rendered.flatMap(({ kind, metadata, rules = [] }) =>
    rules.flatMap(({ resources, resourceNames = [], verbs }) =>
      resources
        .filter((resource) => ours.test(resource))
        .map((resource) => [kind, metadata.namespace, resource, ...resourceNames, verbs.join('+')].join(' ')),
    ),
  );
}

const renderedWith = async (values: object) => objects(await template(file, { values }));
const nodes = 'ClusterRole  nodes get+list+watch';

describe.skipIf(skip)('the rights on Machines and Nodes', () => {
  test('without machines: clusterApi there are none', async () => {
    const rendered = await renderedWith({ configuration: without, clusterApi: { enabled: false } });
    expect(rightsOf(rendered)).toEqual([]);
    expect(JSON.stringify(rendered)).not.toMatch(/machines|infra-cluster/);
  });

  test('in this cluster: of the namespace, and of the one Cluster object', async () => {
    const inFleet = configuration
      .replace('namespace: default', 'namespace: fleet')
      .replace('cluster: prod,', 'cluster: eu,');
    expect(rightsOf(await renderedWith({ configuration: inFleet })).toSorted()).toEqual([
      nodes,
      'Role fleet clusters eu list+watch',
      'Role fleet machinepools list+watch',
      'Role fleet machines list+watch',
    ]);
    // As in the relay, the keys of a cluster override those of defaults, and the name of the cluster is the default.
    const inDefaults = `${without}\n  defaults: { attestation: { machines: clusterApi } }\n`.replace(
      /^ {2}defaults/m,
      'defaults',
    );
    expect(rightsOf(await renderedWith({ configuration: inDefaults }))).toContain(
      'Role default clusters prod list+watch',
    );
  });

  test('the InfraCluster: one object, by the name of the Cluster object or its own', async () => {
    const rights = async (infraCluster: object) =>
      rightsOf(await renderedWith({ clusterApi: { infraCluster } })).filter((right) => right.includes('awsclusters'));
    expect(await rights({ resource: 'awsclusters' })).toEqual([
      'Role default awsclusters prod get+patch',
      'Role default awsclusters/status prod patch',
    ]);
    expect(await rights({ resource: 'awsclusters', name: 'infra' })).toContain(
      'Role default awsclusters infra get+patch',
    );
  });

  test('with another management cluster only those on Nodes are here; without rbac.create none', async () => {
    const elsewhere = { clusterApi: { kubeconfigSecret: 'management' } };
    expect(rightsOf(await renderedWith(elsewhere))).toEqual([nodes]);
    expect(rightsOf(await renderedWith({ rbac: { create: false } }))).toEqual([]);
  });

  test.each<[string, object, string]>([
    ['the key without the rights', { clusterApi: { enabled: false } }, 'set it to true'],
    ['the rights without the key', { configuration: without }, 'would have no use'],
    ['the rights without a file', { configuration: '' }, 'would have no use'],
    [
      'values without effect',
      { configuration: without, clusterApi: { enabled: false, kubeconfigSecret: 'x' } },
      'clusterApi: is not enabled',
    ],
    ['a name without its resource', { clusterApi: { infraCluster: { name: 'x' } } }, 'has no effect without resource'],
    [
      'a name that is a pattern',
      { configuration: configuration.replace('cluster: prod,', "cluster: '*',") },
      '* is not the name of a Cluster object',
    ],
    [
      'all namespaces',
      { configuration: configuration.replace('namespace: default', "namespace: ''") },
      'is not a namespace',
    ],
  ])('refused: %s', async (_, values, sentence) => {
    const refused = await renderedWith(values).then(
      () => 'rendered',
      (error: unknown) => (error as { stderr?: string }).stderr ?? String(error),
    );
    expect(refused).toContain(sentence);
  });
});
