/**
 * The metadata service of one instance, IMDSv2 only: a read needs a token of this service. `hops` is the distance of the
 * client: a token does not reach a client beyond the instance's hop limit, such as the pods of a node.
 */
import { randomBytes } from 'node:crypto';
import type { ReceivedRequest } from '../../aws/sigv4-verifier.ts';
import { plain, startService, type Answer, type Service } from '../service.ts';
import type { Credential, FakeAws } from '../world.ts';

export interface FakeImds extends Service {
  /** Paths that were told, in order. */
  readonly told: readonly string[];
}

interface ImdsOptions {
  readonly aws: FakeAws;
  readonly instanceId: string;
  /** 1: a process of the instance itself. */
  readonly hops?: number;
}

const tokenPath = '/latest/api/token';
const ttlHeader = 'x-aws-ec2-metadata-token-ttl-seconds';

export async function startFakeImds({ aws, instanceId, hops = 1 }: ImdsOptions): Promise<FakeImds> {
  const told: string[] = [];
  /** Token → until when. */
  const tokens = new Map<string, number>();

  function handle({ method, target, headers }: ReceivedRequest): Answer | 'hang up' {
    const instance = aws.instances.get(instanceId);
    if (instance === undefined || instance.state !== 'running') return 'hang up';
    const { httpEndpoint, httpPutResponseHopLimit } = instance.metadataOptions;
    if (httpEndpoint === 'disabled') return plain(403, 'Forbidden');
    if (target === tokenPath) {
      if (method !== 'PUT') return plain(405, 'Method Not Allowed');
      // An open proxy passes requests on with this header.
      if (headers['x-forwarded-for'] !== undefined) return plain(403, 'Forbidden');
      const seconds = Number(headers[ttlHeader] ?? '');
      if (!/^\d{1,5}$/.test(headers[ttlHeader] ?? '') || seconds < 1 || seconds > 21_600)
        return plain(400, 'Bad Request');
      if (hops > httpPutResponseHopLimit) return 'hang up';
      const token = randomBytes(40).toString('base64');
      tokens.set(token, aws.now() + seconds * 1_000);
      return plain(200, token, { [ttlHeader]: String(seconds) });
    }
    const until = tokens.get(headers['x-aws-ec2-metadata-token'] ?? '');
    if (until === undefined || until <= aws.now()) return plain(401, 'Unauthorized');
    if (method !== 'GET') return plain(405, 'Method Not Allowed');
    const path = /^\/(?:latest|\d{4}-\d\d-\d\d)\/(.*)$/.exec(target)?.[1];
    const text = path === undefined ? undefined : tell(path);
    if (path === undefined || text === undefined) return plain(404, 'Not Found');
    told.push(path);
    return plain(200, text);
  }

  function tell(path: string): string | undefined {
    const instance = aws.instances.get(instanceId);
    if (instance === undefined) return undefined;
    const { instanceProfile, account, partition, region, availabilityZone, interfaces, metadataOptions } = instance;
    const primary = interfaces[0]?.addresses[0];
    const tag = /^meta-data\/tags\/instance\/(.+)$/.exec(path)?.[1];
    if (tag !== undefined)
      return metadataOptions.instanceMetadataTags === 'enabled' && Object.hasOwn(instance.tags, tag)
        ? instance.tags[tag]
        : undefined;
    const roleName = /^meta-data\/iam\/security-credentials\/([^/]+)$/.exec(path)?.[1];
    if (roleName !== undefined)
      return roleName === instanceProfile?.roleName
        ? credentialText(aws.profileCredential(instanceId), aws)
        : undefined;

    switch (path) {
      case 'dynamic/instance-identity/document':
        return aws.identityDocument(instanceId);
      case 'dynamic/instance-identity/rsa2048':
        return aws.rsa2048(instanceId);
      case 'meta-data/identity-credentials/ec2/info':
        return infoText(account, aws);
      case 'meta-data/identity-credentials/ec2/security-credentials/ec2-instance':
        return credentialText(aws.identityCredential(instanceId), aws);
      case 'meta-data/iam/security-credentials':
      case 'meta-data/iam/security-credentials/':
        return instanceProfile?.roleName;
      case 'meta-data/ami-id':
        return instance.imageId;
      case 'meta-data/instance-id':
        return instanceId;
      case 'meta-data/instance-type':
        return instance.instanceType;
      case 'meta-data/hostname':
      case 'meta-data/local-hostname':
        return primary?.dnsName;
      case 'meta-data/local-ipv4':
        return primary?.address;
      case 'meta-data/public-hostname':
        return primary?.public?.dnsName;
      case 'meta-data/public-ipv4':
        return primary?.public?.address;
      case 'meta-data/mac':
        return interfaces[0]?.macAddress;
      case 'meta-data/placement/availability-zone':
        return availabilityZone;
      case 'meta-data/placement/region':
        return region;
      case 'meta-data/services/partition':
        return partition;
      case 'meta-data/services/domain':
        return partition === 'aws-cn' ? 'amazonaws.com.cn' : 'amazonaws.com';
      default:
        return undefined;
    }
  }

  const service = await startService(handle);
  return { ...service, told };
}

function credentialText(
  { accessKeyId, secretAccessKey, sessionToken, expiresAt = 0 }: Credential,
  aws: FakeAws,
): string {
  const fields = {
    Code: 'Success',
    LastUpdated: seconds(aws.now()),
    Type: 'AWS-HMAC',
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    Token: sessionToken,
    Expiration: seconds(expiresAt),
  };
  return JSON.stringify(fields, null, 2);
}

function infoText(account: string, aws: FakeAws): string {
  return JSON.stringify({ Code: 'Success', LastUpdated: seconds(aws.now()), AccountId: account }, null, 2);
}

function seconds(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}
