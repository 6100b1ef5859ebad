import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  bootstrapToken,
  signers,
  startAuthenticatorSite,
  type AuthenticatorSite,
  type Program,
} from '../../harness/authenticator-site.ts';

const day = 86_400_000;
const hour = 3_600_000;

interface Printed {
  readonly expires: number;
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly certificate: X509Certificate;
}

export function printed({ code, stdout, stderr }: Program): Printed {
  if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`);
  const { status } = JSON.parse(stdout) as {
    status: { expirationTimestamp: string; clientCertificateData: string; clientKeyData: string };
  };
  return {
    expires: Date.parse(status.expirationTimestamp),
    certificatePem: status.clientCertificateData,
    keyPem: status.clientKeyData,
    certificate: new X509Certificate(status.clientCertificateData),
  };
}

describe('a node and its client certificate', () => {
  let site: AuthenticatorSite;
  beforeAll(async () => {
    site = await startAuthenticatorSite();
  });
  afterAll(() => site?.close());

  test('joins', async () => {
    const node = await site.node('n1');
    const first = await node.run();
    console.log(first.stderr, first.milliseconds);
    const one = printed(first);
    expect(one.certificate.subject).toBe('O=system:nodes\nCN=system:node:n1');
  });
});
