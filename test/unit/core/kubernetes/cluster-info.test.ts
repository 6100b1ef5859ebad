import { createHash, X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { caCertificates, clusterEntry, parsePins, pinnedOf } from '../../../../core/kubernetes/cluster-info.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';

const hex = 'AB'.repeat(32);

describe('pins', () => {
  test('are taken in either case', () => {
    expect(parsePins([`sha256:${hex}`, `SHA256:${hex}`])).toEqual([
      `sha256:${hex.toLowerCase()}`,
      `sha256:${hex.toLowerCase()}`,
    ]);
  });

  test.each([
    [hex, 'invalid hash, expected "format:hex-value". Known format(s) are: sha256'],
    [`sha256:${hex}:1`, 'invalid hash, expected "format:hex-value"'],
    [`md5:${hex}`, 'unknown hash format "md5"'],
    ['sha256:abcd', 'expected a 32 byte SHA-256 hash, found 2 bytes'],
    [`sha256:${'g'.repeat(64)}`, 'could not decode SHA-256 from hex'],
    ['', 'invalid hash, expected "format:hex-value"'],
  ])('%j is none', (text, words) => {
    expect(parsePins([text])).toEqual({ problem: expect.stringContaining(words) as unknown });
  });
});

describe('the CA', async () => {
  const [ours, theirs] = await Promise.all([createTestAuthority('ours'), createTestAuthority('theirs')]);
  const pinOf = (pem: string) =>
    `sha256:${createHash('sha256')
      .update(new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' }))
      .digest('hex')}`;
  const both = `some words\n${ours.certificatePem}\n${theirs.certificatePem}`;

  test('has the hash that OpenSSL computes', () => {
    expect(caCertificates(both)).toMatchObject([
      { pin: pinOf(ours.certificatePem) },
      { pin: pinOf(theirs.certificatePem) },
    ]);
  });

  test('beside a pinned one is not trusted with it', () => {
    const certificates = caCertificates(both);
    if ('problem' in certificates) throw new Error(certificates.problem);
    const pinned = pinnedOf(certificates, [pinOf(ours.certificatePem)]);
    expect(pinned).toHaveLength(1);
    expect(pinned).toMatchObject([{ subject: 'CN=ours' }]);
    expect(pinnedOf(certificates, [`sha256:${hex.toLowerCase()}`])).toEqual({
      problem: expect.stringMatching(
        /^cluster CA found in cluster-info ConfigMap is invalid: none of the public keys ".*" are pinned$/,
      ) as unknown,
    });
  });

  test.each(['', 'no PEM', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'])(
    '%j holds none',
    (text) => {
      expect(caCertificates(text)).toHaveProperty('problem');
    },
  );
});

describe('the cluster of a kubeconfig', () => {
  const cluster = { server: 'https://10.0.0.1:6443', 'certificate-authority-data': btoa('PEM') };

  test('is the unnamed one of cluster-info', () => {
    expect(clusterEntry({ clusters: [{ name: '', cluster }] })).toEqual({ server: cluster.server, caPem: 'PEM' });
  });

  test('else that of the current context', () => {
    const others = [
      { name: 'a', cluster: { server: 'https://a' } },
      { name: 'b', cluster },
    ];
    const contexts = [{ name: 'x', context: { cluster: 'b' } }];
    expect(clusterEntry({ clusters: others, contexts, 'current-context': 'x' })).toMatchObject({
      server: cluster.server,
    });
    expect(clusterEntry({ clusters: others, contexts })).toHaveProperty('problem');
  });

  test.each([
    [undefined],
    ['text'],
    [{ clusters: [] }],
    [{ clusters: [{ name: '', cluster: { ...cluster, server: 'http://10.0.0.1' } }] }],
    [{ clusters: [{ name: '', cluster: { ...cluster, server: 6443 } }] }],
    [{ clusters: [{ name: '', cluster: { ...cluster, 'insecure-skip-tls-verify': true } }] }],
  ])('%j has none to be believed', (config) => {
    expect(clusterEntry(config)).toHaveProperty('problem');
  });
});
