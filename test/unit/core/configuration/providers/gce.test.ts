/** attestation.gce. */
import { describe, expect, test } from 'vitest';
import { bundleAttestation, readBundledCluster } from '../../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';

const client = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-gce';
const serving = 'cluster.x-k8s.io/kubelet-serving-gce';
const provider =
  '//iam.googleapis.com/projects/42/locations/global/workloadIdentityPools/aws-pool/providers/countersign';
const least = { projects: { '2': 'p0' }, federation: { provider }, labels: { role: 'node' } };

function parse(gce: object | undefined, more: object = { audience: 'google/prod' }) {
  const attestation = { ...more, ...(gce === undefined ? {} : { gce }) };
  const cluster = {
    cas: { ca: { subject: { commonName: 'CA' } } },
    profiles: { [client]: {}, [serving]: {} },
    ...(Object.keys(attestation).length === 0 ? {} : { attestation }),
  };
  return parseConfiguration(JSON.stringify({ version: 1, clusters: { demo: cluster } }), 'countersign.yaml');
}

function problems(...given: Parameters<typeof parse>): readonly string[] {
  const result = parse(...given);
  const said = ({ path, message }: { readonly path: string; readonly message: string }) =>
    `${path.slice('clusters.demo.attestation.'.length)} ${message}`;
  return result.ok ? [] : result.problem.map(said);
}

function clusterOf(gce: object) {
  const result = parse(gce);
  const cluster = result.ok ? result.value.configuration.clusters.get('demo') : undefined;
  if (cluster === undefined) throw new Error(problems(gce).join('; '));
  return cluster;
}

describe('which VMs may join', () => {
  test('a VM is called by its name unless the operator says otherwise', () => {
    expect(clusterOf(least).attestation?.gce).toEqual({
      ...least,
      serviceAccounts: [],
      machines: 'any',
      nodeName: [{ kind: 'template', template: '{name}' }],
    });
    const nodeName = ['{name}.{zone}.c.{project}.internal', 'pattern:pool-*'];
    expect(clusterOf({ ...least, nodeName }).attestation?.gce?.nodeName).toEqual([
      { kind: 'template', template: nodeName[0] },
      { kind: 'pattern', pattern: 'pool-*' },
    ]);
  });

  test('the signers demand the section', () => {
    expect(problems(undefined)).toEqual(['gce is required: a profile takes evidence of gce']);
  });

  test('the evidence is bound to an audience', () => {
    expect(problems(least, {})).toEqual(['audience is required where aws.account and aws.region do not tell it']);
  });

  test('a project, and a login to Google', () => {
    expect(problems({})).toEqual([
      'gce.projects is required and must name a project',
      'gce a project alone admits every VM in it: name labels, serviceAccounts or machines: listed too',
      'gce.federation is required: Google says which VMs run',
    ]);
    expect(problems({ ...least, federation: {} })).toEqual(['gce.federation.provider is required']);
    expect(problems({ ...least, federation: { provider: `${provider}/` } })[0]).toContain('must be //iam');
  });

  test('a project alone admits every VM in it', () => {
    const { labels: _, ...alone } = least;
    expect(problems(alone)).toHaveLength(1);
    for (const more of [{ labels: { a: '*' } }, { serviceAccounts: ['a@b.c'] }, { machines: 'listed' }])
      expect(problems({ ...alone, ...more })).toEqual([]);
  });

  test.each([
    [['{host}'], 'gce.nodeName[0] uses the part {host}, which does not exist here'],
    [['{name'], 'gce.nodeName[0] is not the name of a node'],
    [['{name}_x'], 'gce.nodeName[0] is not the name of a node'],
    [['pattern:A*'], 'gce.nodeName[0] is not the name of a node or a pattern of one'],
    [[], 'gce.nodeName must name a template or a pattern'],
  ])('nodeName %j is an error', (nodeName, problem) => {
    expect(problems({ ...least, nodeName })[0]).toContain(problem);
  });

  test('the attest function reads what was written', () => {
    const cluster = clusterOf(least);
    expect(readBundledCluster(bundleAttestation(cluster)).attestation).toEqual(cluster.attestation);
  });
});
