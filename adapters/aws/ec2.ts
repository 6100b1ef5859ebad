/** Reads instance descriptions from EC2 with the SDK. core/attestation/aws/ decides what they prove. */
import { DescribeInstancesCommand, EC2Client, GetInstanceTpmEkPubCommand } from '@aws-sdk/client-ec2';
import type { DescribeInstancesResult, EC2ClientConfig, Instance, InstanceNetworkInterface } from '@aws-sdk/client-ec2';
import { fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import type {
  Ec2Endpoint,
  Ec2Fleet,
  EndorsementKeyEndpoint,
  InstancePlace,
} from '../../core/attestation/aws/endpoints.ts';
import type { InstanceDescription } from '../../core/attestation/aws/instance.ts';
import { MisconfigurationError, ThrottledError } from '../../core/ports/errors.ts';
import { idleConnections, retryOnce } from '../http/stale-connections.ts';

/** One retry per call: the relay repeats the whole request anyway, and the function has 25 s in total. */
export const ec2ClientConfig = {
  maxAttempts: 2,
  requestHandler: {
    connectionTimeout: 1_000,
    requestTimeout: 4_000,
    throwOnRequestTimeout: true,
    ...idleConnections(1),
  },
} as const satisfies EC2ClientConfig;

/**
 * Retries a lost connection and an error of EC2, but not a throttled call. The quota belongs to the whole account, and the
 * relay limits its own concurrency by counting throttled calls (concurrency-limiter.ts). A hidden retry would double the
 * calls that the relay counts.
 */
export const sharedRetries = retryOnce(({ errorType }) => errorType === 'TRANSIENT');

/** Creates a client for a region, with the credentials of a role if the instance belongs to another account. */
export type ConnectEc2 = (where: Pick<InstancePlace, 'region' | 'assumeRole'>) => EC2Client;

export const connectEc2: ConnectEc2 = (where) => connect(where, {});
/** For Lambda functions, many of which share the quota. */
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

/** One client per region and role, created at the first use. */
function clientsOf(connect: ConnectEc2): (where: InstancePlace) => EC2Client {
  const clients = new Map<string, EC2Client>();
  return ({ region, assumeRole }) => {
    const key = `${region} ${assumeRole ?? ''}`;
    const client = clients.get(key) ?? connect({ region, ...(assumeRole === undefined ? {} : { assumeRole }) });
    clients.set(key, client);
    return client;
  };
}

export function ec2Endpoint(connect: ConnectEc2 = connectEc2): Ec2Endpoint {
  const clientFor = clientsOf(connect);
  return {
    async describeInstance(where, instanceId) {
      // The ID makes EC2 report a missing instance. The filter repeats the ID, since EC2 counts calls without a filter
      // against a quota that is half as large.
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
      if (instance === undefined || others.length + more.length > 0)
        throw new Error('EC2 did not return exactly one instance');
      return describe(instance, reservation?.OwnerId ?? '');
    },
  };
}

export function endorsementKeyEndpoint(connect: ConnectEc2 = connectEc2): EndorsementKeyEndpoint {
  const clientFor = clientsOf(connect);
  return async (where, instanceId, type) => {
    const command = new GetInstanceTpmEkPubCommand({ InstanceId: instanceId, KeyType: type, KeyFormat: 'der' });
    let found;
    try {
      found = await clientFor(where).send(command);
    } catch (error) {
      throw ec2Error(error);
    }
    const { InstanceId: of, KeyType: ofType, KeyFormat: format, KeyValue: value = '' } = found;
    // A key of another instance would let that one answer for this one.
    if (of !== instanceId || ofType !== type || format !== 'der')
      throw new Error('EC2 returned another endorsement key than the requested one');
    return Buffer.from(value, 'base64');
  };
}

/** With 1 000 instances per page, EC2's answer may take longer than our timeout. */
const instancesPerPage = 200;

/** For the operator's commands, which list all instances, and for attest, which lists the terminated ones. */
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
        // On the last page the token is empty or missing.
        next = page.NextToken === '' ? undefined : page.NextToken;
      } while (next !== undefined);
    },
  };
}

function isNotFound(error: unknown): boolean {
  // `Malformed`: the ID in the evidence is not an instance ID.
  return error instanceof Error && /^InvalidInstanceID\.(NotFound|Malformed)$/.test(error.name);
}

const throttling = new Set([
  'RequestLimitExceeded',
  'EC2ThrottledException',
  'RequestThrottled',
  // From STS, when a role is assumed.
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

/** Throttling, misconfiguration or a temporary error. EC2's own messages are dropped, since they may quote IAM policies. */
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
  if (state === undefined || !states.has(state)) throw new Error('EC2 returned an instance with an unknown state');
  const interfaces = instance.NetworkInterfaces ?? [];
  const root = instance.BlockDeviceMappings?.find(({ DeviceName: name }) => name === instance.RootDeviceName);
  const primary = interfaces.find(isPrimary);
  const { HttpTokens: httpTokens, HttpPutResponseHopLimit: hopLimit } = instance.MetadataOptions ?? {};
  const rootType = instance.RootDeviceType;
  return {
    instanceId: instance.InstanceId ?? '',
    ownerId,
    state: state satisfies State,
    availabilityZone: instance.Placement?.AvailabilityZone ?? '',
    launchTime: instance.LaunchTime?.getTime() ?? Number.NaN,
    ...optional('vpcId', instance.VpcId),
    ...optional('subnetId', instance.SubnetId),
    tags: new Map((instance.Tags ?? []).flatMap(({ Key, Value }) => (Key === undefined ? [] : [[Key, Value ?? '']]))),
    ...optional('instanceProfile', instance.IamInstanceProfile?.Arn),
    ...(httpTokens === 'required' || httpTokens === 'optional' ? { httpTokens } : {}),
    ...optional('httpPutResponseHopLimit', hopLimit),
    ...optional('tpmSupport', instance.TpmSupport),
    ...optional('privateDnsName', instance.PrivateDnsName),
    ...optional('publicDnsName', instance.PublicDnsName),
    ...(rootType === 'ebs' || rootType === 'instance-store' ? { rootDeviceType: rootType } : {}),
    ...optional('rootAttachedAt', root?.Ebs?.AttachTime?.getTime()),
    ...optional('interfaceAttachedAt', primary?.Attachment?.AttachTime?.getTime()),
    ...(primary === undefined ? { primaryAddresses: [], primaryDnsNames: [] } : primaryEntriesOf(primary)),
    addresses: [...new Set(interfaces.flatMap(addressesOf))],
    dnsNames: [...new Set(interfaces.flatMap(namesOf))],
  };
}

/** EC2 omits absent values, and returns an empty string for a name that was removed. */
function optional<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return value === undefined || value === '' ? {} : ({ [key]: value } as { readonly [P in K]: V });
}

function isPrimary({ Attachment: attachment }: InstanceNetworkInterface): boolean {
  return attachment?.DeviceIndex === 0 && (attachment.NetworkCardIndex ?? 0) === 0;
}

/**
 * Addresses and names of the primary network interface, which keeps them while the instance runs; only its public address
 * can be reassigned. If the interface has several IPv6 addresses, the result contains only the one that EC2 marks as primary.
 */
function primaryEntriesOf(primary: InstanceNetworkInterface): {
  readonly primaryAddresses: readonly string[];
  readonly primaryDnsNames: readonly string[];
} {
  const { PrivateIpAddress: address, PrivateDnsName: name, Association: association, Ipv6Addresses: v6 = [] } = primary;
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
