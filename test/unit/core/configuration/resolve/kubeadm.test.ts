/** What countersign.yaml may say about the certificates of kubeadm's control plane. */
import { expect, test } from 'vitest';
import {
  bundleAttestation,
  bundleCluster,
  bundleKubeadm,
  readBundledCluster,
} from '../../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';
import { kubeadmCluster, kubeadmFile, kubeadmKeys } from '../../kubeadm/requests.ts';

function problems(kubeadm: string): readonly string[] {
  const parsed = parseConfiguration(kubeadmFile(`\n    kubeadm: ${kubeadm}`), 'countersign.yaml');
  return parsed.ok
    ? []
    : parsed.problem.map(({ path, message }) => `${path.replace('clusters.prod.', '')}: ${message}`);
}
const cas = 'cas: {kubernetes: kubernetes, frontProxy: front-proxy, etcd: etcd}';
const nodes = 'nodes: {cp-1: [10.0.0.11]}';

test('is off unless it is configured', () => {
  expect(kubeadmCluster('').kubeadm).toBeUndefined();
});

test('names are compared in one form, and certificates live for a year', () => {
  const file = `\n    kubeadm: {${cas}, apiServerNames: [K8S.example.com, '2001:DB8:0::1'], nodes: {cp-1: ['10.0.0.11']}}\n    clusterDomain: k8s.test`;
  expect(kubeadmCluster(file).kubeadm).toEqual({
    cas: { kubernetes: 'kubernetes', frontProxy: 'front-proxy', etcd: 'etcd' },
    apiServerNames: ['k8s.example.com', '2001:db8::1'],
    nodes: [['cp-1', ['10.0.0.11']]],
    clusterDomain: 'k8s.test',
    maxTtlSeconds: 365 * 86_400,
  });
});

test('only the kubeadm function has it, with the CAs that sign, and no profile', () => {
  const cluster = kubeadmCluster(kubeadmKeys.replace(', etcd: etcd}', '}'));
  const { kubeadm, cas, profiles } = readBundledCluster(bundleKubeadm(cluster));
  expect(kubeadm).toStrictEqual(cluster.kubeadm);
  expect([[...cas], profiles.size]).toEqual([[...cluster.cas].filter(([name]) => name !== 'etcd'), 0]);
  for (const text of [bundleCluster(cluster), bundleAttestation(cluster)]) expect(text).not.toContain('cp-1');
});

test.each([
  [`{cas: {}, ${nodes}}`, 'kubeadm.cas: must name at least one CA: kubernetes, frontProxy or etcd'],
  [
    `{cas: {etcd: gone}, ${nodes}}`,
    'kubeadm.cas.etcd: no CA of this cluster has that name (kubernetes, front-proxy, etcd)',
  ],
  [
    `{cas: {kubernetes: kubernetes, frontProxy: kubernetes}, ${nodes}}`,
    'kubeadm.cas.frontProxy: must not be the CA of kubernetes: its clients could act as any user',
  ],
  [
    `{cas: {frontProxy: etcd, etcd: etcd}, ${nodes}}`,
    'kubeadm.cas.etcd: must be a CA of its own: etcd obeys every client certificate of it',
  ],
  [
    `{cas: {kubernetes: kubernetes, etcd: kubernetes}, ${nodes}}`,
    'kubeadm.cas.etcd: must be a CA of its own: etcd obeys every client certificate of it',
  ],
  // The profile of the file signs with it.
  [
    `{cas: {etcd: kubernetes}, ${nodes}}`,
    'kubeadm.cas.etcd: signs for profile kubernetes.io/kube-apiserver-client-kubelet too; it must sign nothing else',
  ],
  [
    `{cas: {frontProxy: kubernetes}, ${nodes}}`,
    'kubeadm.cas.frontProxy: signs for profile kubernetes.io/kube-apiserver-client-kubelet too; it must sign nothing else',
  ],
  [`{${cas}, nodes: {}}`, 'kubeadm.nodes: must name at least one node'],
  [`{${cas}, nodes: {cp-1: []}}`, 'kubeadm.nodes.cp-1: must hold at least the address of the node'],
  [
    `{${cas}, nodes: {cp-1: [10.0.0.256]}}`,
    'kubeadm.nodes.cp-1[0]: must be an address, a DNS name, or a wildcard such as *.example.com',
  ],
  [
    `{${cas}, nodes: {cp-1: ['a b']}}`,
    'kubeadm.nodes.cp-1[0]: must be an address, a DNS name, or a wildcard such as *.example.com',
  ],
  [
    `{${cas}, ${nodes}, apiServerNames: ['a.*.example.com']}`,
    'kubeadm.apiServerNames[0]: must be an address, a DNS name, or a wildcard such as *.example.com',
  ],
  [`{${cas}, ${nodes}, maxTtl: 30m}`, 'kubeadm.maxTtl: must be at least 1h'],
])('%s: %s', (kubeadm, problem) => {
  expect(problems(kubeadm)).toEqual([problem]);
});

test('one CA is enough', () => {
  for (const one of ['kubernetes: kubernetes', 'frontProxy: front-proxy', 'etcd: etcd'])
    expect(problems(`{cas: {${one}}, ${nodes}}`)).toEqual([]);
});

test('a node has the name of a node', () => {
  expect(problems(`{${cas}, nodes: {CP_1: [10.0.0.11]}}`)).toHaveLength(1);
});

test('no profile has the name under which these certificates are recorded', () => {
  const parsed = parseConfiguration(
    'version: 1\nclusters: {prod: {cas: {ca: {subject: {commonName: x}}}, profiles: {countersign.dev/kubeadm: {}}}}',
    'countersign.yaml',
  );
  expect(parsed.ok ? [] : parsed.problem.map(({ message }) => message)).toEqual([
    'is the name of what countersign kubeadm signs; the key kubeadm configures it',
  ]);
});
