/** What countersign.yaml may say about kubelet serving certificates: approval without a proof, and exact reserved names. */
import { describe, expect, test } from 'vitest';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';
import type { Problem } from '../../../../../core/configuration/problem-list.ts';
import type { ClusterConfiguration } from '../../../../../core/configuration/model/cluster.ts';

const serving = 'kubernetes.io/kubelet-serving';
const clients = '      kubernetes.io/kube-apiserver-client-kubelet: { attestation: { providers: [aws] } }';
const aws = `    attestation:
      audience: demo
      aws: { accounts: { '111122223333': {} }, regions: [eu-central-1], tags: { a: b }, nodeName: [instanceId] }`;

function parsed(
  profile: string,
  more: readonly string[] = [],
): { readonly problems: readonly Problem[]; readonly warnings: readonly Problem[]; cluster?: ClusterConfiguration } {
  const text = [
    'version: 1',
    'clusters:',
    '  demo:',
    '    cas: { ca: { subject: { commonName: CA } } }',
    '    profiles:',
    `      ${serving}: ${profile}`,
    ...more,
  ].join('\n');
  const result = parseConfiguration(text, 'countersign.yaml');
  if (!result.ok) return { problems: result.problem, warnings: [] };
  const cluster = result.value.configuration.clusters.get('demo');
  return { problems: [], warnings: result.value.warnings, ...(cluster === undefined ? {} : { cluster }) };
}

const texts = (problems: readonly Problem[]): readonly string[] =>
  problems.map(({ path, message }) => `${path} ${message}`);
const approve = `    approval: { ${serving}: approve }`;
const accept = '    approveServingWithoutProof: true';
const place = `clusters.demo.approval["${serving}"]`;

describe('finding 4: approval by the relay', () => {
  const unproven: readonly [string, string, readonly string[]][] = [
    ['without attestation', '{}', []],
    ['with attestation that only audits', '{ attestation: { providers: [aws], mode: audit } }', [clients, aws]],
    ['with evidence that may be left out', '{ attestation: { providers: [aws], required: false } }', [clients, aws]],
  ];

  test.each(unproven)('%s is an error', (_, profile, more) => {
    const [problem, ...others] = texts(parsed(profile, [...more, approve]).problems);
    expect(problem).toMatch(/^clusters\.demo\.approval\[.*would give each node certificates for the names/);
    expect(others).toEqual([]);
  });

  test.each(unproven)('%s is a warning that says what it means, where the operator accepts it', (_, profile, more) => {
    const { problems, warnings, cluster } = parsed(profile, [...more, approve, accept]);
    expect(problems).toEqual([]);
    expect(texts(warnings)).toEqual([
      `${place} without an enforced proof of the machine, each node gets certificates for the names and addresses of all others and can read what the API server sends them`,
    ]);
    expect(cluster?.approval.get(serving)).toBe('approve');
  });

  test('accepted in so many words, and false is not', () => {
    expect(parsed('{}', [approve, '    approveServingWithoutProof: false']).problems).toHaveLength(1);
  });

  test('with an enforced proof needs no acceptance; one that is left over is told', () => {
    const proven = '{ attestation: { providers: [aws] } }';
    expect(parsed(proven, [clients, aws, approve])).toMatchObject({ problems: [], warnings: [] });
    expect(texts(parsed(proven, [clients, aws, approve, accept]).warnings)).toEqual([
      'clusters.demo.approveServingWithoutProof changes nothing here: no serving signer is approved without proof',
    ]);
  });

  test('by a person needs no proof', () => {
    expect(parsed('{}')).toMatchObject({ problems: [], warnings: [] });
  });
});

describe('finding 4: reserved names that a serving signer gives all the same', () => {
  test('are exact, resolved as the rules compare them, each with a warning', () => {
    const profile = "{ sans: { allowReserved: [Etcd, '*.Nodes.example.com', '10.96.0.1', 'FD00:10:96:0::1'] } }";
    const { cluster, warnings } = parsed(profile, ["    reservedAddresses: [10.96.0.0/12, 'fd00:10:96::/112']"]);
    expect(cluster?.profiles.get(serving)?.allowReservedSans).toEqual([
      'etcd',
      '*.nodes.example.com',
      '10.96.0.1',
      'fd00:10:96::1',
    ]);
    expect(new Set(warnings.map(({ message }) => message))).toEqual(
      new Set(['a kubelet that gets this name can stand in for what answers under it']),
    );
    expect(warnings).toHaveLength(4);
  });

  test('are not permitted by default', () => {
    expect(parsed('{}').cluster?.profiles.get(serving)?.allowReservedSans).toBeUndefined();
  });
});
