import { createHash, X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { caCertificates, parsePins, pinnedOf, readClusterEntry } from '../../../../core/kubernetes/cluster-info.ts';
import { failure, success } from '../../../../core/outcome/result.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';

const hex = 'AB'.repeat(32);

describe('pins', () => {
  test('are taken in either case', () => {
    expect(parsePins([`sha256:${hex}`, `SHA256:${hex}`])).toEqual(
      success([`sha256:${hex.toLowerCase()}`, `sha256:${hex.toLowerCase()}`]),
    );
  });

  test.each([
    [hex, 'invalid hash, expected "format:hex-value". Known format(s) are: sha256'],
    [`sha256:${hex}:1`, 'invalid hash, expected "format:hex-value"'],
    [`md5:${hex}`, 'unknown hash format "md5"'],
    ['sha256:abcd', 'expected a 32 byte SHA-256 hash, found 2 bytes'],
    [`sha256:${'g'.repeat(64)}`, 'could not decode SHA-256 from hex'],
    ['', 'invalid hash, expected "format:hex-value"'],
  ])('%j is invalid', (text, words) => {
    expect(parsePins([text])).toEqual(failure(expect.stringContaining(words)));
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
    expect(caCertificates(both)).toMatchObject({
      value: [{ pin: pinOf(ours.certificatePem) }, { pin: pinOf(theirs.certificatePem) }],
    });
  });

  test('beside a pinned one is not trusted with it', () => {
    const certificates = caCertificates(both);
    if (!certificates.ok) throw new Error(certificates.problem);
    const pinned = pinnedOf(certificates.value, [pinOf(ours.certificatePem)]);
    expect(pinned).toMatchObject({ value: [{ subject: 'CN=ours' }] });
    expect(pinnedOf(certificates.value, [`sha256:${hex.toLowerCase()}`])).toEqual(
      failure(
        expect.stringMatching(
          /^cluster CA found in cluster-info ConfigMap is invalid: none of the public keys ".*" are pinned$/,
        ),
      ),
    );
  });

  test.each(['', 'no PEM', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'])(
    '%j holds none',
    (text) => {
      expect(caCertificates(text)).toHaveProperty('problem');
    },
  );
});

describe('the cluster of a kubeconfig', () => {
  const entryOf = (config: unknown) => readClusterEntry(JSON.stringify(config));
  const cluster = { server: 'https://10.0.0.1:6443', 'certificate-authority-data': btoa('PEM') };

  test('is the unnamed one of cluster-info', () => {
    expect(entryOf({ clusters: [{ name: '', cluster }] })).toEqual(success({ server: cluster.server, caPem: 'PEM' }));
  });

  test('else that of the current context', () => {
    const others = [
      { name: 'a', cluster: { server: 'https://a' } },
      { name: 'b', cluster },
    ];
    const contexts = [{ name: 'x', context: { cluster: 'b' } }];
    expect(entryOf({ clusters: others, contexts, 'current-context': 'x' })).toMatchObject({
      value: { server: cluster.server },
    });
    expect(entryOf({ clusters: others, contexts })).toHaveProperty('problem');
  });

  test.each([
    [null],
    ['text'],
    [{ clusters: [] }],
    [{ clusters: [{ name: '', cluster: { ...cluster, server: 'http://10.0.0.1' } }] }],
    [{ clusters: [{ name: '', cluster: { ...cluster, server: 6443 } }] }],
    [{ clusters: [{ name: '', cluster: { ...cluster, 'insecure-skip-tls-verify': true } }] }],
  ])('%j has none to be believed', (config) => {
    expect(entryOf(config)).toHaveProperty('problem');
  });
});
