/** What `countersign token create` prints about the proof of the machine, for each provider. */
import { describe, expect, test } from 'vitest';
import { evidenceFlags } from '../../../../cli/cluster/join-evidence.ts';
import type { EvidenceFlags } from '../../../../cli/cluster/join-evidence.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { providerNames } from '../../../../core/policy/signer-names.ts';
import type { ProviderName } from '../../../../core/policy/signer-names.ts';
import { resolveSettings } from '../../../../kubelet-authenticator/settings/settings.ts';
import { caCertificatePem } from '../../../corpus/attestation/pem.ts';

const own = (provider: string) => `cluster.x-k8s.io/kube-apiserver-client-kubelet-${provider}`;
const stock = 'kubernetes.io/kube-apiserver-client-kubelet';
const files = { attestationCertificate: '/etc/pki/host.pem', attestationKey: '/etc/pki/host.key' };

function clusterWith(profiles: Readonly<Record<string, object>>) {
  const cluster = {
    cas: { ca: { subject: { commonName: 'CA' } } },
    profiles,
    approval: Object.fromEntries(Object.keys(profiles).map((signer) => [signer, 'approve'])),
    attestation: {
      audience: 'demo',
      aws: {
        accounts: { '111122223333': {} },
        regions: ['eu-central-1'],
        tags: { a: 'b' },
        nodeName: ['privateDnsName'],
      },
      tpm: {},
      x509: {
        roots: { own: [caCertificatePem] },
        rules: [{ root: 'own', cn: '{node}.example.com', nodeName: ['{node}'] }],
      },
    },
  };
  const parsed = parseConfiguration(JSON.stringify({ version: 1, clusters: { demo: cluster } }), 'countersign.yaml');
  const demo = parsed.ok ? parsed.value.configuration.clusters.get('demo') : undefined;
  if (demo === undefined) throw new Error(JSON.stringify(parsed));
  return demo;
}

/** Whether kubelet-authenticator takes these flags. */
function isTaken(flags: readonly string[]): boolean {
  const given = Object.fromEntries(flags.map((flag) => flag.slice(2).split(' ') as [string, string]));
  const others = { 'node-name': 'n', 'cluster-name': 'c', audience: 'a', server: 'https://h' };
  const paths = { 'certificate-authority': '/ca', 'bootstrap-credentials': '/token' };
  return resolveSettings(undefined, { ...others, ...paths, ...given }).ok;
}

describe('without countersign.yaml', () => {
  test('is that of aws, unless another one is named', () => {
    expect(evidenceFlags({}, undefined)).toEqual(['--provider aws']);
    expect(evidenceFlags({ provider: 'tpm' }, undefined)).toEqual(['--provider tpm']);
  });

  const given: Partial<Record<ProviderName, EvidenceFlags>> = { x509: files };
  test.each(providerNames.filter((provider) => provider !== 'gce-vtpm'))('of %s: join takes it', (provider) => {
    expect(isTaken(evidenceFlags({ provider, ...given[provider] }, undefined))).toBe(true);
  });

  test('of gce-vtpm: its nodes run no join', () => {
    expect(() => evidenceFlags({ provider: 'gce-vtpm' }, undefined)).toThrow('its nodes run gke-exec-auth-plugin');
  });

  test('of x509: names the two files, by paths that are safe in a shell', () => {
    expect(evidenceFlags({ provider: 'x509', ...files }, undefined)).toEqual([
      '--provider x509',
      '--attestation-certificate /etc/pki/host.pem',
      '--attestation-key /etc/pki/host.key',
    ]);
    const { attestationCertificate } = files;
    for (const wrong of [{}, { attestationCertificate }, { ...files, attestationKey: 'host.key' }])
      expect(() => evidenceFlags({ provider: 'x509', ...wrong }, undefined)).toThrow('absolute paths on the machine');
    for (const attestationKey of ['/a b', '/a;reboot', '/$(reboot)', '/a\nreboot', '/'])
      expect(() => evidenceFlags({ provider: 'x509', ...files, attestationKey }, undefined)).toThrow('without blanks');
    expect(() => evidenceFlags({ provider: 'tpm', ...files }, undefined)).toThrow('are for provider x509');
  });
});

describe('with countersign.yaml', () => {
  test('is that of the one provider that the cluster takes', () => {
    expect(evidenceFlags({}, clusterWith({ [own('tpm')]: {} }))).toEqual(['--provider tpm']);
    expect(evidenceFlags(files, clusterWith({ [own('x509')]: {} }))).toContain('--provider x509');
  });

  test('of several: one must be named; of others: none', () => {
    const cluster = clusterWith({ [own('tpm')]: {}, [own('aws')]: {} });
    expect(() => evidenceFlags({}, cluster)).toThrow('cluster demo takes evidence of tpm, aws');
    expect(evidenceFlags({ provider: 'aws' }, cluster)).toEqual(['--provider aws']);
    expect(() => evidenceFlags({ provider: 'x509', ...files }, cluster)).toThrow('takes no evidence of x509');
  });

  test('names the signer, if it is not the one that join asks', () => {
    const cluster = clusterWith({ [stock]: { attestation: { providers: ['tpm'] } } });
    expect(evidenceFlags({}, cluster)).toEqual(['--provider tpm', `--signer-name ${stock}`]);
    const both = clusterWith({ [stock]: { attestation: { providers: ['tpm'] } }, [own('tpm')]: {} });
    expect(evidenceFlags({}, both)).toEqual(['--provider tpm']);
    // A serving profile gives no client certificate.
    const serving = { attestation: { providers: ['tpm', 'aws'] } };
    expect(evidenceFlags({}, clusterWith({ [own('tpm')]: {}, 'kubernetes.io/kubelet-serving': serving }))).toEqual([
      '--provider tpm',
    ]);
  });
});
