import { expect, onTestFinished, test } from 'vitest';
import { bundleCluster, readBundledCluster } from '../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { extensionType } from '../../../../core/x509/model.ts';
import { certificateFacts } from '../../../../core/x509/read-certificate.ts';
import { certificatesIn, csrFixture, startStack } from '../../lambdas/sign/stack.ts';

const url = 'http://crl.example.com/ca.crl';
const parsed = (ca: string) =>
  parseConfiguration(
    `version: 1\nclusters: {demo: {cas: {ca: {subject: {commonName: demo}${ca}}}, profiles: {kubernetes.io/kube-apiserver-client-kubelet: {}}}}\n`,
    'countersign.yaml',
  );

/** Extensions by OID of a certificate that the sign handler issues, with the configuration that a deployment bundles. */
async function issued(ca: string) {
  const read = parsed(ca);
  if (!read.ok) throw new Error(read.problem.map(({ message }) => message).join('; '));
  const cluster = readBundledCluster(bundleCluster(read.value.configuration.clusters.get('demo')!));
  const stack = await startStack({ cluster: () => cluster });
  onTestFinished(stack.close);
  const [certificate] = certificatesIn(await stack.post(csrFixture()));
  return certificateFacts(certificate!.raw).extensions;
}

test('the sign handler writes the URL of the configuration, and without one no extension', async () => {
  const [plain, named] = [await issued(''), await issued(`, crlDistributionPoint: '${url}'`)];
  expect([...named.keys()]).toEqual([...plain.keys(), extensionType.crlDistributionPoints]);
  const { critical, value } = named.get(extensionType.crlDistributionPoints)!;
  expect(critical).toBe(false);
  expect(Buffer.from(value).toString('latin1')).toContain(url);
});

test.each(['ldap://x/y', 'http://a b', 'http://ü', 'crl.example.com'])('%s is no URL of a CRL', (wrong) => {
  const read = parsed(`, crlDistributionPoint: '${wrong}'`);
  expect(read.ok ? [] : read.problem.map(({ message }) => message).join()).toContain('must be a URL');
});
