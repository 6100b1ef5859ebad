/**
 * Evidence of an EC2 instance: a GetCallerIdentity request, signed over the binding digest with the instance's own
 * credentials, and the instance's ID (docs/attestation/aws.md). Everything comes from the instance metadata service, so no
 * instance profile and no AWS configuration is needed.
 *
 * Every node and every bootstrap token of the cluster can read a request. `aws/v2` therefore contains nothing that another
 * system accepts. `aws/v1`, for approvers that do not support `aws/v2`, also contains the signed instance identity document.
 */
import type { Imds } from '../../adapters/aws/imds.ts';
import type { IdentityProof } from '../../adapters/aws/sigv4-identity.ts';
import { partitionOf } from '../../core/attestation/aws/partition.ts';
import { evidenceVersions } from '../settings/settings.ts';
import type { EvidenceQuestion, NodeProviderPort } from './provider.ts';

/**
 * As long as the approver accepts a proof. If a node gave its request up before, its place in the queue for EC2's quota would be lost,
 * and EC2 would be asked about a request that no node waits for (docs/internals/scale.md). If the approver's clock is ahead, it refuses
 * the request, and the node sends the next one at once.
 */
const staleAfterMilliseconds = 5 * 60_000;

/**
 * The identity role that every instance has. No principal can assume it, and EC2 names its session after the instance.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/iam-roles-for-amazon-ec2.html#ec2-instance-identity-roles
 */
const identityCredentials = 'meta-data/identity-credentials/ec2/security-credentials/ec2-instance';
/** JSON with the AccountId. */
const identityInfo = 'meta-data/identity-credentials/ec2/info';

export function awsProvider(imds: Imds, sign: (proof: IdentityProof) => Promise<string>): NodeProviderPort {
  return {
    versions: evidenceVersions.aws,
    renews: true,

    async describe() {
      const [zone, instanceId, ...names] = await Promise.all([
        readRequired(imds, 'meta-data/placement/availability-zone'),
        readRequired(imds, 'meta-data/instance-id'),
        imds.read('meta-data/local-ipv4'),
        imds.read('meta-data/local-hostname'),
      ]);
      return {
        providerId: `aws:///${zone}/${instanceId}`,
        // `local-hostname` has several names if the VPC's DHCP options have several domains.
        names: names.flatMap((name) => (name === undefined || name === '' ? [] : [name.split(' ')[0] ?? name])),
      };
    },

    async makeEvidence(question) {
      const region = await readRequired(imds, 'meta-data/placement/region');
      const [claims, sts] = await Promise.all([readClaims(question.version, region), signToken(question, region)]);
      const { nonce, now } = question;
      return { data: JSON.stringify({ ...claims, sts, nonce }), staleAt: now + staleAfterMilliseconds };
    },
  };

  /** The fields that identify the instance, by version of the evidence. */
  async function readClaims(version: string, region: string): Promise<object> {
    if (version === 'aws/v1') return { v: 1, rsa2048: await readRequired(imds, 'dynamic/instance-identity/rsa2048') };
    const [account, instance] = await Promise.all([
      readRequired(imds, identityInfo).then(readAccount),
      readRequired(imds, 'meta-data/instance-id'),
    ]);
    return { v: 2, account, region, instance };
  }

  async function signToken({ clusterName, binding, nonce, now }: EvidenceQuestion, region: string): Promise<string> {
    const partition = partitionOf(region);
    if (partition === undefined) throw new Error(`region ${region} belongs to no known partition`);
    return sign({
      credentials: readCredentials(await readRequired(imds, identityCredentials)),
      region,
      host: `sts.${region}.${partition.dnsSuffix}`,
      id: `csr-attest/v1/${clusterName}/${binding(nonce)}`,
      now,
    });
  }
}

async function readRequired(imds: Imds, path: string): Promise<string> {
  const text = await imds.read(path);
  if (text === undefined || text === '') throw new Error(`the metadata service has no ${path}`);
  return text;
}

function readAccount(text: string): string {
  const { Code, AccountId } = readJson(text);
  if (Code === 'Success' && isText(AccountId)) return AccountId;
  throw new Error(`the metadata service names no account at ${identityInfo}`);
}

/** The text contains a secret, so no message quotes it. */
function readCredentials(text: string): IdentityProof['credentials'] {
  const { Code, AccessKeyId, SecretAccessKey, Token } = readJson(text);
  if (Code === 'Success' && isText(AccessKeyId) && isText(SecretAccessKey) && isText(Token))
    return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: Token };
  throw new Error(`the metadata service gives no credentials at ${identityCredentials}`);
}

/** Empty if the text is not JSON. The parser's message is dropped, since it quotes the text. */
function readJson(text: string): Readonly<Record<string, unknown>> {
  try {
    return (JSON.parse(text) ?? {}) as Readonly<Record<string, unknown>>;
  } catch {
    return {};
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
