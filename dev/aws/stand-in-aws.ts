/**
 * A small stand-in for AWS, in this process: machines that sign requests with their own credentials, an STS that finds the
 * signer, and an EC2 that describes the machines. STS verifies the signature over the request that it received, so it refuses
 * evidence that was made for another request. Machines have no signed identity document (aws/v1).
 */
import { createHash, createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import type { AwsPorts, StsAnswer, StsRequest } from '../../core/attestation/aws/endpoints.ts';
import type { InstanceDescription } from '../../core/attestation/aws/instance.ts';
import { refuseInsideLambda } from '../../adapters/embedded/refuse-in-lambda.ts';

export interface StandInAws {
  readonly account: string;
  readonly region: string;
  readonly ports: AwsPorts;
  /** Starts an instance with the tags `Name` and the cluster's. */
  readonly launch: (name: string) => StandInMachine;
  /** Changes the tag `Name`, as a principal that may tag instances can. */
  readonly rename: (instanceId: string, name: string) => void;
}

/** What software on an instance can get from the metadata service, and make with the instance's credentials. */
export interface StandInMachine {
  readonly instanceId: string;
  /** As in the Node object. */
  readonly providerId: string;
  /** What its metadata service answers, below `/latest/`. */
  readonly metadata: (path: string) => string | undefined;
  /** A GetCallerIdentity request for another party to send, in the form of `aws eks get-token`. `id` is signed with it. */
  readonly signToken: (id: string) => string;
}

interface Credentials {
  readonly accessKeyId: string;
  readonly secret: string;
  readonly sessionToken: string;
  readonly instanceId: string;
}

/** An account that is obviously not real. */
const [account, region] = ['000011112222', 'eu-central-1'];
const zone = `${region}a`;
const stsHost = `sts.${region}.amazonaws.com`;

export function createStandInAws(clusterTag: string): StandInAws {
  refuseInsideLambda('the stand-in for AWS', process.env);
  const instances = new Map<string, InstanceDescription>();
  const credentials = new Map<string, Credentials>();

  function launch(name: string): StandInMachine {
    const instance = newInstance(`10.0.0.${instances.size + 1}`, { [clusterTag]: 'owned', Name: name });
    const { instanceId } = instance;
    instances.set(instanceId, instance);
    const own = {
      accessKeyId: `ASIA${randomBytes(8).toString('hex').toUpperCase()}`,
      secret: randomBytes(30).toString('base64'),
      sessionToken: randomBytes(120).toString('base64'),
      instanceId,
    };
    credentials.set(own.accessKeyId, own);
    const metadata = new Map([
      ['meta-data/instance-id', instanceId],
      ['meta-data/local-ipv4', instance.addresses[0] ?? ''],
      ['meta-data/placement/availability-zone', zone],
      ['meta-data/placement/region', region],
      ['meta-data/identity-credentials/ec2/info', JSON.stringify({ Code: 'Success', AccountId: account })],
      ['meta-data/identity-credentials/ec2/security-credentials/ec2-instance', credentialText(own)],
    ]);
    return {
      instanceId,
      providerId: `aws:///${zone}/${instanceId}`,
      metadata: (path) => metadata.get(path),
      signToken: (id) => signToken(own, id),
    };
  }

  return {
    account,
    region,
    launch,
    rename(instanceId, name) {
      const instance = instances.get(instanceId);
      if (instance === undefined) throw new Error(`there is no instance ${instanceId}`);
      instances.set(instanceId, { ...instance, tags: new Map(instance.tags).set('Name', name) });
    },
    ports: {
      sts: async (request) => getCallerIdentity(request, credentials),
      ec2: {
        describeInstance: async (place, instanceId) => {
          const here = place.account === account && place.region === region;
          return (here ? instances.get(instanceId) : undefined) ?? 'notFound';
        },
      },
      regionCertificates: new Map(),
    },
  };
}

function credentialText({ accessKeyId, secret, sessionToken }: Credentials): string {
  return JSON.stringify({
    Code: 'Success',
    Type: 'AWS-HMAC',
    AccessKeyId: accessKeyId,
    SecretAccessKey: secret,
    Token: sessionToken,
  });
}

function newInstance(address: string, tags: Readonly<Record<string, string>>): InstanceDescription {
  const launchTime = Math.floor(Date.now() / 1_000) * 1_000;
  return {
    instanceId: `i-${randomBytes(9).toString('hex').slice(0, 17)}`,
    ownerId: account,
    state: 'running',
    availabilityZone: zone,
    launchTime,
    tags: new Map(Object.entries(tags)),
    httpTokens: 'required',
    httpPutResponseHopLimit: 1,
    rootDeviceType: 'ebs',
    rootAttachedAt: launchTime,
    interfaceAttachedAt: launchTime,
    primaryAddresses: [address],
    primaryDnsNames: [],
    addresses: [address],
    dnsNames: [],
  };
}

// ── Signature Version 4, in the query ───────────────────────────────────────────────────────────────────────────────

const signedHeader = 'x-k8s-aws-id';

function signToken({ accessKeyId, secret, sessionToken }: Credentials, id: string): string {
  const time = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const parameters = {
    Action: 'GetCallerIdentity',
    Version: '2011-06-15',
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': `${accessKeyId}/${time.slice(0, 8)}/${region}/sts/aws4_request`,
    'X-Amz-Date': time,
    'X-Amz-Expires': '60',
    'X-Amz-Security-Token': sessionToken,
    'X-Amz-SignedHeaders': `host;${signedHeader}`,
  };
  const query = Object.entries(parameters)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');
  const signature = signatureOf(secret, { host: stsHost, query, id, time });
  const url = `https://${stsHost}/?${query}&X-Amz-Signature=${signature}`;
  return `k8s-aws-v1.${Buffer.from(url).toString('base64url')}`;
}

interface Signed {
  readonly host: string;
  /** Everything but the signature, sorted by name. */
  readonly query: string;
  readonly id: string;
  readonly time: string;
}

/** https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html, for GET of `/`. */
function signatureOf(secret: string, { host, query, id, time }: Signed): string {
  const headers = `host:${host}\n${signedHeader}:${id}\n`;
  const request = ['GET', '/', query, headers, `host;${signedHeader}`, sha256('')].join('\n');
  const scope = [time.slice(0, 8), region, 'sts', 'aws4_request'];
  const toSign = ['AWS4-HMAC-SHA256', time, scope.join('/'), sha256(request)].join('\n');
  const key = scope.reduce(
    (made: Buffer, part) => createHmac('sha256', made).update(part).digest(),
    Buffer.from(`AWS4${secret}`),
  );
  return createHmac('sha256', key).update(toSign).digest('hex');
}

/** What STS does: finds the key's secret, signs the request that it received, and compares the signatures. */
function getCallerIdentity({ host, path, headers }: StsRequest, known: ReadonlyMap<string, Credentials>): StsAnswer {
  const sent = path.slice('/?'.length).split('&');
  const values = new URLSearchParams(sent.join('&'));
  const value = (name: string): string => values.get(name) ?? '';
  const credentials = known.get(value('X-Amz-Credential').split('/')[0] ?? '');
  const time = value('X-Amz-Date');
  const query = sent
    .filter((part) => !part.startsWith('X-Amz-Signature='))
    .sort()
    .join('&');
  const signed = { host, query, id: headers[signedHeader] ?? '', time };
  if (credentials === undefined || !sameText(signatureOf(credentials.secret, signed), value('X-Amz-Signature')))
    return stsAnswer(403, {
      Error: { Type: 'Sender', Code: 'SignatureDoesNotMatch', Message: 'the request was changed after it was signed' },
    });
  const { instanceId } = credentials;
  return stsAnswer(200, {
    GetCallerIdentityResponse: {
      GetCallerIdentityResult: {
        Account: account,
        Arn: `arn:aws:sts::${account}:assumed-role/aws:ec2-instance/${instanceId}`,
        UserId: `${account}:aws:ec2-instance:${instanceId}`,
      },
      ResponseMetadata: { RequestId: randomUUID() },
    },
  });
}

function stsAnswer(status: number, body: object): StsAnswer {
  return { status, contentType: 'application/json', body: JSON.stringify(body) };
}

function sameText(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
