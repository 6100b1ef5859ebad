/** aws-nitrotpm in countersign.yaml: switched on by a profile, with the instances of attestation.aws. */
import { describe, expect, test } from 'vitest';
import { bundleAttestation, readBundledCluster } from '../../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';
import { needsChallengeKey } from '../../../../../core/attestation/providers.ts';

const signer = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws-nitrotpm';
const aws = { accounts: { '111122223333': {} }, regions: ['eu-central-1'], tags: { a: 'b' }, nodeName: ['instanceId'] };

interface Given {
  readonly attestation?: object;
  readonly profiles?: object;
  readonly approval?: object;
}

function parse({ attestation = { aws }, profiles = { [signer]: {} }, approval = { [signer]: 'approve' } }: Given) {
  const cluster = {
    cas: { ca: { subject: { commonName: 'CA' } } },
    profiles,
    approval,
    attestation: { audience: 'demo', ...attestation },
  };
  return parseConfiguration(JSON.stringify({ version: 1, clusters: { demo: cluster } }), 'countersign.yaml');
}

const short = ({ path, message }: { readonly path: string; readonly message: string }) =>
  `${path.slice('clusters.demo.'.length)} ${message}`;

function problems(given: Given): readonly string[] {
  const result = parse(given);
  return result.ok ? [] : result.problem.map(short);
}

function warnings(given: Given): readonly string[] {
  const result = parse(given);
  return result.ok ? result.value.warnings.map(short) : ['invalid'];
}

function resolved(given: Given) {
  const result = parse(given);
  if (!result.ok) throw new Error('refused');
  return result.value.configuration.clusters.get('demo')!;
}

describe('aws-nitrotpm', () => {
  test('is on where a profile takes its evidence, and then a challenge key is needed', () => {
    const cluster = resolved({});
    expect(cluster.attestation).toMatchObject({ awsNitroTpm: true });
    expect(needsChallengeKey(cluster.attestation!)).toBe(true);
    expect(warnings({})).toEqual([]);
    expect(readBundledCluster(bundleAttestation(cluster)).attestation).toEqual(cluster.attestation);
    const without = resolved({ profiles: { 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws': {} }, approval: {} });
    expect(without.attestation).not.toHaveProperty('awsNitroTpm');
    expect(needsChallengeKey(without.attestation!)).toBe(false);
  });

  test('has no keys of its own: its instances are those of attestation.aws', () => {
    expect(problems({ attestation: {} })).toEqual([
      'attestation.aws is required: a profile takes evidence of aws-nitrotpm',
    ]);
    expect(problems({ attestation: { aws, 'aws-nitrotpm': {} } })).toHaveLength(1);
    const both = { [signer]: {}, 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws': {} };
    expect(problems({ attestation: {}, profiles: both })).toEqual([
      'attestation.aws is required: a profile takes evidence of aws-nitrotpm and aws',
    ]);
  });

  test('beside aws protects only machines that are on record with their TPM', () => {
    const stock = 'kubernetes.io/kubelet-serving';
    const serving = { [stock]: { attestation: { providers: ['aws', 'aws-nitrotpm'] } } };
    const approval = { [signer]: 'approve', [stock]: 'approve' };
    expect(warnings({ profiles: { [signer]: {}, ...serving }, approval })).toEqual([
      'attestation.aws a machine that is not on record yet may join with evidence of aws, without its TPM: take aws out of the profiles when every node sends aws-nitrotpm',
    ]);
  });

  test('takes a PCR policy, also with tpm, and not with aws', () => {
    const pcrs = { values: { '7': ['0'.repeat(64)] } };
    expect(problems({ profiles: { [signer]: { attestation: { pcrs } } } })).toEqual([]);
    const serving = (providers: readonly string[]) => ({
      [signer]: {},
      'kubernetes.io/kubelet-serving': { attestation: { providers, pcrs } },
    });
    expect(problems({ profiles: serving(['aws-nitrotpm', 'tpm']), attestation: { aws, tpm: {} } })).toEqual([]);
    expect(problems({ profiles: serving(['aws-nitrotpm', 'aws']) })).toEqual([
      'profiles["kubernetes.io/kubelet-serving"].attestation.pcrs is for providers with a TPM only: the evidence of another one would be taken without',
    ]);
  });

  test('needs the relay to pass challenges on', () => {
    expect(warnings({ approval: {} })).toEqual([
      expect.stringContaining(
        `approval["${signer}"] is manual: only the relay, where it approves, passes the challenge`,
      ),
    ]);
  });
});
