import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Node, Program } from './authenticator-site.ts';

export interface Printed {
  readonly expires: number;
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly certificate: X509Certificate;
}

/** What client-go reads; a program that failed is an error that shows why. */
export function printed({ code, signal, stdout, stderr }: Program): Printed {
  if (code !== 0) throw new Error(`ended with ${code ?? signal}: ${stderr}`);
  const { kind, status } = JSON.parse(stdout) as {
    kind: string;
    status: { expirationTimestamp: string; clientCertificateData: string; clientKeyData: string };
  };
  if (kind !== 'ExecCredential') throw new Error(`printed a ${kind}`);
  return {
    expires: Date.parse(status.expirationTimestamp),
    certificatePem: status.clientCertificateData,
    keyPem: status.clientKeyData,
    certificate: new X509Certificate(status.clientCertificateData),
  };
}

export function cacheFiles({ cache }: Node): Record<string, string> {
  return Object.fromEntries(readdirSync(cache).map((name) => [name, readFileSync(join(cache, name), 'utf8')]));
}

/** Every secret there is: keys in the cache, what evidence is made of, tokens. */
export function secretsOf(node: Node, ...more: readonly string[]): string[] {
  const keys = Object.values(cacheFiles(node)).flatMap(
    (text) => text.replaceAll('\\n', '\n').match(/(?<=-----BEGIN PRIVATE KEY-----\n)[^-]+/g) ?? [],
  );
  return [...keys.map((key) => key.trim().slice(0, 40)), 'k8s-aws-v1.', 'ATTESTATION', 'IQoJb3JpZ2luX2VjE', ...more];
}
