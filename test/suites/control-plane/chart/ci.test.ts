/**
 * The values of deploy/chart/ci, as chart-testing (`ct lint`, `ct install`) takes them: every value differs from its default in one of
 * them. Each is linted, rendered as the golden file, and installed and removed on the real API server. No kubelet runs the pods here.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { documentedValues } from '../../../../deploy/chart-reference.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { requireTools } from '../../../tools/tools.ts';
import { chart, helm, objects } from './helm.ts';
import { ciFiles, ciFolder, golden, goldenFolder } from './manifests.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'helm');

const values = (file: string): unknown => parse(readFileSync(join(ciFolder, file), 'utf8'));
const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((part, key) => (part as Record<string, unknown> | undefined)?.[key], value);

test('every value differs from its default in a file', () => {
  const all = documentedValues(readFileSync(join(chart, 'values.yaml'), 'utf8'));
  const leaves = all.filter(({ path }) => !all.some((other) => other.path.startsWith(`${path}.`)));
  const untried = leaves.filter(({ path, value }) =>
    ciFiles.every((file) => {
      const given = at(values(file), path);
      return given === undefined || JSON.stringify(given) === JSON.stringify(value);
    }),
  );
  // The default of credentials is one of the four.
  expect(untried.map(({ path }) => path)).toEqual([]);
  const credentials = ciFiles.flatMap((file) => (at(values(file), 'auth.aws.credentials') as string | undefined) ?? []);
  expect(credentials.toSorted()).toEqual(['injected', 'instanceRole', 'podIdentity', 'webIdentity']);
});

describe.skipIf(skip)('with the values of ci', () => {
  test('the golden files are those of the values; npm run chart writes them', () => {
    expect(readdirSync(goldenFolder).toSorted()).toEqual(ciFiles);
  });

  test.each(ciFiles)('%s passes helm lint --strict and renders as its golden file', async (file) => {
    expect(await helm(['lint', '--strict', chart, '--values', join(ciFolder, file)])).toContain('0 chart(s) failed');
    expect(await golden(file)).toBe(readFileSync(join(goldenFolder, file), 'utf8'));
  });

  test('the packaged chart has no values for tests', () => {
    expect(readFileSync(join(chart, '.helmignore'), 'utf8')).toMatch(/^ci\/$/m);
  });

  describe('a release', () => {
    let plane: ControlPlane;
    beforeAll(async () => {
      plane = await startControlPlane();
      // Only so that the API server serves the kinds: what Prometheus Operator's own CRDs demand is not checked.
      await plane.kubectl(['apply', '-f', '-'], { input: `${crd('PodMonitor')}---\n${crd('PrometheusRule')}` });
    });
    afterAll(() => plane?.stop());

    test.each(byTier({ default: ciFiles.slice(0, 1), deep: ciFiles }))(
      'of %s is installed whole, and removed without a trace',
      async (file) => {
        const name = file.replace('-values.yaml', '');
        const run = (...args: readonly string[]) => helm(args, { KUBECONFIG: plane.adminKubeconfig });
        const options = ['--namespace', name, '--values', join(ciFolder, file)];
        await run('install', name, chart, '--create-namespace', ...options);
        const rendered = objects(await run('get', 'manifest', name, '--namespace', name));
        expect(rendered.length).toBeGreaterThan(1);
        for (const { apiVersion, kind, metadata } of rendered) {
          const [version = '', group = ''] = apiVersion.split('/').toReversed();
          const resource = group === '' ? kind : `${kind}.${version}.${group}`;
          const place = metadata.namespace === undefined ? [] : ['-n', metadata.namespace];
          const live = JSON.parse(
            await plane.kubectl(['get', resource, metadata.name, ...place, '-o', 'json']),
          ) as object;
          expect(live, `${kind} ${metadata.name}`).toMatchObject({
            metadata: { annotations: { 'meta.helm.sh/release-name': name } },
          });
        }
        await run('uninstall', name, '--namespace', name);
        const kinds = [...new Set(rendered.map(({ kind }) => kind))].filter((kind) => kind !== 'Namespace').join(',');
        const label = `app.kubernetes.io/instance=${name}`;
        expect(await plane.kubectl(['get', kinds, '-A', '-l', label, '-o', 'name'])).toBe('');
      },
    );
  });
});

function crd(kind: string): string {
  const plural = `${kind.toLowerCase()}s`;
  return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: ${plural}.monitoring.coreos.com }
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: { kind: ${kind}, plural: ${plural} }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
`;
}
