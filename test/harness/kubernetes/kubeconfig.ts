import { writeFileSync } from 'node:fs';
import { clientExtensions, type KeyAndCertificate, type TestAuthority } from '../x509/test-certificates.ts';

export interface Identity {
  user: string;
  groups?: readonly string[];
}

/** A client certificate that logs in as this user: the API server reads the user from CN and the groups from O. */
export function issueLogin(authority: TestAuthority, { user, groups = [] }: Identity): Promise<KeyAndCertificate> {
  return authority.issue({
    subject: [...groups.map((group) => ({ O: [group] })), { CN: [user] }],
    extensions: clientExtensions(),
  });
}

/** Writes JSON, which is YAML too and needs no serialiser. */
export function writeKubeconfig(
  path: string,
  server: { url: string; caPem: string },
  login: KeyAndCertificate,
): string {
  const base64 = (pem: string) => Buffer.from(pem).toString('base64');
  const cluster = { server: server.url, 'certificate-authority-data': base64(server.caPem) };
  const user = {
    'client-certificate-data': base64(login.certificatePem),
    'client-key-data': base64(login.keyPem),
  };
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user }],
  };
  writeFileSync(path, JSON.stringify(kubeconfig, null, 2), { mode: 0o600 });
  return path;
}
