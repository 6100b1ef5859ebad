/**
 * EC2: the instance identity document as the region signed it, and a GetCallerIdentity request signed over the binding
 * digest with the credentials of the instance itself (docs/attestation/aws.md). All of it comes from the instance's
 * metadata service; there is no instance profile to set up and no AWS configuration to read.
 */
import type { Imds } from '../../adapters/imds.ts';
import type { IdentityProof } from '../../adapters/sigv4-identity.ts';
import { partitionOf } from '../../core/attestation/aws-partition.ts';
import type { NodeProviderPort } from './provider.ts';

/** The signing side takes a proof for five minutes, and its clock may be ahead of ours. */
const staleAfterMilliseconds = 4 * 60_000;

/**
 * The role that every instance has and nobody can assume: its session is named by EC2, after the instance.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/iam-roles-for-amazon-ec2.html#ec2-instance-identity-roles
 */
const identityCredentials = 'meta-data/identity-credentials/ec2/security-credentials/ec2-instance';

export function awsProvider(imds: Imds, sign: (proof: IdentityProof) => Promise<string>): NodeProviderPort {
  return {
    versions: ['aws/v1'],
    renews: true,

    async describe() {
      const [zone, instanceId, ...names] = await Promise.all([
        present(imds, 'meta-data/placement/availability-zone'),
        present(imds, 'meta-data/instance-id'),
        imds.read('meta-data/local-ipv4'),
        imds.read('meta-data/local-hostname'),
      ]);
      return {
        providerId: `aws:///${zone}/${instanceId}`,
        // `local-hostname` lists several where the VPC's DHCP options do.
        names: names.flatMap((name) => (name === undefined || name === '' ? [] : [name.split(' ')[0] ?? name])),
      };
    },

    async makeEvidence({ clusterName, binding, nonce, now }) {
      const [region, rsa2048, credentials] = await Promise.all([
        present(imds, 'meta-data/placement/region'),
        present(imds, 'dynamic/instance-identity/rsa2048'),
        present(imds, identityCredentials).then(readCredentials),
      ]);
      const partition = partitionOf(region);
      if (partition === undefined) throw new Error(`region ${region} is of no known partition`);
      const sts = await sign({
        credentials,
        region,
        host: `sts.${region}.${partition.dnsSuffix}`,
        id: `csr-attest/v1/${clusterName}/${binding(nonce)}`,
        now,
      });
      return { data: JSON.stringify({ v: 1, rsa2048, sts, nonce }), staleAt: now + staleAfterMilliseconds };
    },
  };
}

async function present(imds: Imds, path: string): Promise<string> {
  const text = await imds.read(path);
  if (text === undefined || text === '') throw new Error(`the metadata service has no ${path}`);
  return text;
}

/** What it says is a secret: no message repeats any of it. */
function readCredentials(text: string): IdentityProof['credentials'] {
  try {
    const { Code, AccessKeyId, SecretAccessKey, Token } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (Code === 'Success' && isText(AccessKeyId) && isText(SecretAccessKey) && isText(Token))
      return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: Token };
  } catch {
    // Said below.
  }
  throw new Error(`the metadata service gives no credentials at ${identityCredentials}`);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
