/**
 * EC2: a GetCallerIdentity request signed over the binding digest with the credentials of the instance itself, and the
 * instance that it is said to be of (docs/attestation/aws.md). All of it comes from the instance's metadata service; there
 * is no instance profile to set up and no AWS configuration to read.
 *
 * Every node and bootstrap token of the cluster can read a request. `aws/v2` therefore holds nothing that another system
 * accepts; `aws/v1`, for signing sides that do not know `aws/v2`, also holds the signed instance identity document.
 */
import type { Imds } from '../../adapters/aws/imds.ts';
import type { IdentityProof } from '../../adapters/aws/sigv4-identity.ts';
import { partitionOf } from '../../core/attestation/aws/partition.ts';
import { evidenceVersions } from '../settings/settings.ts';
import type { EvidenceQuestion, NodeProviderPort } from './provider.ts';

/** The signing side takes a proof for five minutes, and its clock may be ahead of ours. */
const staleAfterMilliseconds = 4 * 60_000;

/**
 * The role that every instance has and nobody can assume: its session is named by EC2, after the instance.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/iam-roles-for-amazon-ec2.html#ec2-instance-identity-roles
 */
const identityCredentials = 'meta-data/identity-credentials/ec2/security-credentials/ec2-instance';
/** JSON; of its fields only AccountId is of use here. */
const identityInfo = 'meta-data/identity-credentials/ec2/info';

export function awsProvider(imds: Imds, sign: (proof: IdentityProof) => Promise<string>): NodeProviderPort {
  return {
    versions: evidenceVersions.aws,
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

    async makeEvidence(question) {
      const region = await present(imds, 'meta-data/placement/region');
      const [claims, sts] = await Promise.all([readClaims(question.version, region), signToken(question, region)]);
      const { nonce, now } = question;
      return { data: JSON.stringify({ ...claims, sts, nonce }), staleAt: now + staleAfterMilliseconds };
    },
  };

  /** What says which instance it is, by version of the evidence. */
  async function readClaims(version: string, region: string): Promise<object> {
    if (version === 'aws/v1') return { v: 1, rsa2048: await present(imds, 'dynamic/instance-identity/rsa2048') };
    const [account, instance] = await Promise.all([
      present(imds, identityInfo).then(readAccount),
      present(imds, 'meta-data/instance-id'),
    ]);
    return { v: 2, account, region, instance };
  }

  async function signToken({ clusterName, binding, nonce, now }: EvidenceQuestion, region: string): Promise<string> {
    const partition = partitionOf(region);
    if (partition === undefined) throw new Error(`region ${region} is of no known partition`);
    return sign({
      credentials: readCredentials(await present(imds, identityCredentials)),
      region,
      host: `sts.${region}.${partition.dnsSuffix}`,
      id: `csr-attest/v1/${clusterName}/${binding(nonce)}`,
      now,
    });
  }
}

async function present(imds: Imds, path: string): Promise<string> {
  const text = await imds.read(path);
  if (text === undefined || text === '') throw new Error(`the metadata service has no ${path}`);
  return text;
}

function readAccount(text: string): string {
  const { Code, AccountId } = readJson(text);
  if (Code === 'Success' && isText(AccountId)) return AccountId;
  throw new Error(`the metadata service names no account at ${identityInfo}`);
}

/** What it says is a secret: no message repeats any of it. */
function readCredentials(text: string): IdentityProof['credentials'] {
  const { Code, AccessKeyId, SecretAccessKey, Token } = readJson(text);
  if (Code === 'Success' && isText(AccessKeyId) && isText(SecretAccessKey) && isText(Token))
    return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: Token };
  throw new Error(`the metadata service gives no credentials at ${identityCredentials}`);
}

/** Without fields where it is no JSON object: the parser's own message would quote the text. */
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
