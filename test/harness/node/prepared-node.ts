import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeSettings } from '../../../kubelet-authenticator/settings/settings.ts';
import { writeCredential } from '../../../kubelet-authenticator/files/cache.ts';
import { clientExtensions, createTestAuthority } from '../x509/test-certificates.ts';

/** A node as it is nearly all of the time: it has joined, and its certificate is good and not yet due. */
export interface PreparedNode {
  readonly settingsFile: string;
  readonly certificatePem: string;
  readonly keyPem: string;
  /** For the program: the kubelet's question, without the environment of the test's user. */
  readonly environment: Readonly<Record<string, string>>;
}

/** In a folder that exists. What else the settings name does not exist: the program is to make no call. */
export async function prepareNode(folder: string): Promise<PreparedNode> {
  const authority = await createTestAuthority('client ca');
  const nodeName = 'prepared';
  const { certificatePem, keyPem } = await authority.issue({
    subject: [{ O: ['system:nodes'] }, { CN: [`system:node:${nodeName}`] }],
    extensions: clientExtensions(),
  });
  const cacheDirectory = join(folder, 'cache');
  const clientCaBundleFile = join(folder, 'client-ca.pem');
  const settingsFile = join(folder, 'settings.json');
  mkdirSync(cacheDirectory, { mode: 0o700 });
  writeCredential({ directory: cacheDirectory, name: 'client' }, { certificatePem, keyPem, issuedAt: Date.now() });
  writeFileSync(clientCaBundleFile, authority.certificatePem);
  writeFileSync(
    settingsFile,
    encodeSettings({
      nodeName,
      clusterName: 'demo',
      audience: '111122223333/eu-central-1/demo',
      provider: 'aws',
      server: 'https://127.0.0.1:1',
      certificateAuthorityFile: join(folder, 'absent-ca.crt'),
      bootstrapCredentialsFile: join(folder, 'absent-credentials.json'),
      cacheDirectory,
      signerName: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws',
      clientCaBundleFile,
      keyKind: 'P-256',
      servingNames: [],
    }),
  );
  const environment = {
    AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://127.0.0.1:1',
    KUBERNETES_EXEC_INFO: JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      spec: { interactive: false },
    }),
  };
  return { settingsFile, certificatePem, keyPem, environment };
}
