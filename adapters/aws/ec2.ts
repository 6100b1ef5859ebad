/** What EC2 says about one instance, by the SDK: read only, and nothing decided here. */
import { DescribeInstancesCommand, EC2Client } from '@aws-sdk/client-ec2';
import type { DescribeInstancesResult, EC2ClientConfig, Instance, InstanceNetworkInterface } from '@aws-sdk/client-ec2';
import { fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import type { Ec2Endpoint, InstancePlace } from '../../core/attestation/aws/endpoints.ts';
import type { Ec2Fleet } from '../../core/attestation/aws/fleet.ts';
import type { InstanceDescription } from '../../core/attestation/aws/instance.ts';
import { MisconfigurationError, ThrottledError } from '../../core/ports/errors.ts';

/** A second try inside one call, and no more: whoever asks comes back anyway, and the function has 25 s for all it asks. */
export const ec2ClientConfig = {
  maxAttempts: 2,
  requestHandler: { connectionTimeout: 1_000, requestTimeout: 4_000, throwOnRequestTimeout: true },
} as const satisfies EC2ClientConfig;

type Retries = Extract<EC2ClientConfig['retryStrategy'], { acquireInitialRetryToken: unknown }>;
const tried = (count: number) => ({
  getRetryCount: () => count,
  getRetryCost: () => 0,
  getRetryDelay: () => (count === 0 ? 0 : 50),
});
/**
 * A second try of what was lost on the way (a connection that slept through a freeze of the function), none where EC2 asks
 * to slow down: the quota is the whole account's, and whoever asks finds out how much of it is his (the relay's
 * concurrency-limiter.ts). With a second try of its own in each call he would ask twice as much as he knows.
 */
export const sharedRetries: Retries = {
  acquireInitialRetryToken: async () => tried(0),
  async refreshRetryTokenForRetry(before, { errorType }) {
    if (errorType !== 'TRANSIENT' || before.getRetryCount() + 1 >= ec2ClientConfig.maxAttempts)
      throw new Error('there is no other try');
    return tried(before.getRetryCount() + 1);
  },
  recordSuccess() {},
};

/** Makes a client for a region, and for a role where the instance's account is another one. */
export type ConnectEc2 = (where: Pick<InstancePlace, 'region' | 'assumeRole'>) => EC2Client;

/** Credentials come from the environment, as everywhere in Lambda; an assumed role's end in its log of sessions. */
export const connectEc2: ConnectEc2 = (where) => connect(where, {});
/** For functions, of which many share the quota. */
export const connectSharedEc2: ConnectEc2 = (where) => connect(where, { retryStrategy: sharedRetries });

const connect = ({ region, assumeRole }: Parameters<ConnectEc2>[0], config: EC2ClientConfig): EC2Client =>
  new EC2Client({
    ...ec2ClientConfig,
    ...config,
    region,
    ...(assumeRole === undefined
      ? {}
      : {
          credentials: fromTemporaryCredentials({
            params: { RoleArn: assumeRole, RoleSessionName: 'countersign-attest', DurationSeconds: 900 },
            clientConfig: { ...ec2ClientConfig, region },
          }),
        }),
  });

/** One client for each region and role, made when it is first asked for. */
function clientsOf(connect: ConnectEc2): (where: InstancePlace) => EC2Client {
  const clients = new Map<string, EC2Client>();
  return ({ region, assumeRole }) => {
    const key = `${region} ${assumeRole ?? ''}`;
    const known = clients.get(key) ?? connect({ region, ...(assumeRole === undefined ? {} : { assumeRole }) });
    clients.set(key, known);
    return known;
  };
}

export function ec2Endpoint(connect: ConnectEc2 = connectEc2): Ec2Endpoint {
  const clientFor = clientsOf(connect);
  return {
    async describeInstance(where, instanceId) {
      // By its id, so that EC2 says when there is none. The filter says the same once more: without one EC2 takes it for a
      // question about everything there is, and lets half as many through.
      // https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
      const command = new DescribeInstancesCommand({
        InstanceIds: [instanceId],
        Filters: [{ Name: 'instance-id', Values: [instanceId] }],
      });
      let found;
      try {
        found = await clientFor(where).send(command);
      } catch (error) {
        if (isNotFound(error)) return 'notFound';
        throw ec2Error(error);
      }
      const [reservation, ...others] = found.Reservations ?? [];
      const [instance, ...more] = reservation?.Instances ?? [];
      // Asked for one id, EC2 gives one or says that it is not found.
      if (instance === undefined || others.length + more.length > 0) throw new Error('EC2 gave no single instance');
      return describe(instance, reservation?.OwnerId ?? '');
    },
  };
}

/** Of a thousand at once, EC2's answer may take longer than our patience. */
const instancesPerPage = 200;

/** For operators, who ask about all there are. */
export function ec2Fleet(connect: ConnectEc2 = connectEc2, perPage: number = instancesPerPage): Ec2Fleet {
  const clientFor = clientsOf(connect);
  return {
    async *listInstances(where, filters) {
      const Filters = filters.map(({ name, values }) => ({ Name: name, Values: [...values] }));
      let next: string | undefined;
      do {
        const command = new DescribeInstancesCommand({
          Filters,
          MaxResults: perPage,
          ...(next === undefined ? {} : { NextToken: next }),
        });
        let page: DescribeInstancesResult;
        try {
          page = await clientFor(where).send(command);
        } catch (error) {
          throw ec2Error(error);
        }
        for (const { OwnerId = '', Instances: instances = [] } of page.Reservations ?? [])
          for (const instance of instances) yield describe(instance, OwnerId);
        // EC2 ends with an empty token or none.
        next = page.NextToken === '' ? undefined : page.NextToken;
      } while (next !== undefined);
    },
  };
}

function isNotFound(error: unknown): boolean {
  // `Malformed`: what a document named is no instance id anywhere.
  return error instanceof Error && /^InvalidInstanceID\.(NotFound|Malformed)$/.test(error.name);
}

const throttling = new Set([
  'RequestLimitExceeded',
  'EC2ThrottledException',
  'RequestThrottled',
  // Of STS, where a role is assumed first.
  'Throttling',
  'ThrottlingException',
  'TooManyRequestsException',
]);
const forbidden = new Set([
  'UnauthorizedOperation',
  'AuthFailure',
  'AccessDenied',
  'AccessDeniedException',
  'OptInRequired',
  'CredentialsProviderError',
]);

/** In our words; an error of the platform is never an answer about an instance. Messages of EC2 may quote policies. */
function ec2Error(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (throttling.has(error.name)) return new ThrottledError('EC2 asks to slow down', { cause: error });
  if (forbidden.has(error.name))
    return new MisconfigurationError(`EC2 cannot be asked (${error.name}): see attestation.aws.accounts`);
  return new Error(`EC2 cannot be asked now (${error.name})`, { cause: error });
}

const states = new Set(['pending', 'running', 'shutting-down', 'terminated', 'stopping', 'stopped'] as const);
type State = typeof states extends Set<infer S> ? S : never;

function describe(instance: Instance, ownerId: string): InstanceDescription {
  const state = instance.State?.Name;
  if (state === undefined || !states.has(state)) throw new Error('EC2 gave an instance in no known state');
  const interfaces = instance.NetworkInterfaces ?? [];
  const root = instance.BlockDeviceMappings?.find(({ DeviceName: name }) => name === instance.RootDeviceName);
  const first = interfaces.find(isFirst);
  const { HttpTokens: httpTokens, HttpPutResponseHopLimit: hopLimit } = instance.MetadataOptions ?? {};
  const rootType = instance.RootDeviceType;
  return {
    instanceId: instance.InstanceId ?? '',
    ownerId,
    state: state satisfies State,
    availabilityZone: instance.Placement?.AvailabilityZone ?? '',
    launchTime: instance.LaunchTime?.getTime() ?? Number.NaN,
    ...given('vpcId', instance.VpcId),
    ...given('subnetId', instance.SubnetId),
    tags: new Map((instance.Tags ?? []).flatMap(({ Key, Value }) => (Key === undefined ? [] : [[Key, Value ?? '']]))),
    ...given('instanceProfile', instance.IamInstanceProfile?.Arn),
    ...(httpTokens === 'required' || httpTokens === 'optional' ? { httpTokens } : {}),
    ...given('httpPutResponseHopLimit', hopLimit),
    ...given('privateDnsName', instance.PrivateDnsName),
    ...given('publicDnsName', instance.PublicDnsName),
    ...(rootType === 'ebs' || rootType === 'instance-store' ? { rootDeviceType: rootType } : {}),
    ...given('rootAttachedAt', root?.Ebs?.AttachTime?.getTime()),
    ...given('interfaceAttachedAt', first?.Attachment?.AttachTime?.getTime()),
    ...(first === undefined ? { primaryAddresses: [], primaryDnsNames: [] } : primaryOf(first)),
    addresses: [...new Set(interfaces.flatMap(addressesOf))],
    dnsNames: [...new Set(interfaces.flatMap(namesOf))],
  };
}

/** EC2 leaves out what is not there, and sends empty text for names that are gone. */
function given<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return value === undefined || value === '' ? {} : ({ [key]: value } as { readonly [P in K]: V });
}

function isFirst({ Attachment: attachment }: InstanceNetworkInterface): boolean {
  return attachment?.DeviceIndex === 0 && (attachment.NetworkCardIndex ?? 0) === 0;
}

/**
 * What nobody can assign to the machine while it runs, but for its public address: EC2 fixes the primary private address
 * of the first interface when the instance is launched. Of several IPv6 addresses only the one that EC2 calls primary.
 */
function primaryOf(first: InstanceNetworkInterface): {
  readonly primaryAddresses: readonly string[];
  readonly primaryDnsNames: readonly string[];
} {
  const { PrivateIpAddress: address, PrivateDnsName: name, Association: association, Ipv6Addresses: v6 = [] } = first;
  const [sole, ...others] = v6;
  const primaryV6 = others.length === 0 ? sole : v6.find(({ IsPrimaryIpv6: primary }) => primary === true);
  return {
    primaryAddresses: [address, association?.PublicIp, association?.CarrierIp, primaryV6?.Ipv6Address].filter(isText),
    primaryDnsNames: [name, association?.PublicDnsName].filter(isText),
  };
}

function addressesOf(each: InstanceNetworkInterface): readonly string[] {
  const all = [
    each.PrivateIpAddress,
    each.Association?.PublicIp,
    each.Association?.CarrierIp,
    ...(each.PrivateIpAddresses ?? []).flatMap((address) => [
      address.PrivateIpAddress,
      address.Association?.PublicIp,
      address.Association?.CarrierIp,
    ]),
    ...(each.Ipv6Addresses ?? []).map(({ Ipv6Address: address }) => address),
  ];
  return all.filter(isText);
}

function namesOf(each: InstanceNetworkInterface): readonly string[] {
  const all = [
    each.PrivateDnsName,
    each.Association?.PublicDnsName,
    ...(each.PrivateIpAddresses ?? []).flatMap((address) => [
      address.PrivateDnsName,
      address.Association?.PublicDnsName,
    ]),
  ];
  return all.filter(isText);
}

function isText(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}
