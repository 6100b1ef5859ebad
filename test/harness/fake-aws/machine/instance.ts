/** An EC2 instance of the fake AWS: the fields that DescribeInstances and IMDS tell of it, as plain data. */
import { randomBytes } from 'node:crypto';

export type InstanceState = 'pending' | 'running' | 'shutting-down' | 'terminated' | 'stopping' | 'stopped';

export interface FakeInstance {
  readonly instanceId: string;
  readonly account: string;
  readonly partition: string;
  readonly region: string;
  readonly availabilityZone: string;
  readonly imageId: string;
  readonly instanceType: string;
  readonly architecture: string;
  readonly vpcId: string;
  readonly subnetId: string;
  readonly state: InstanceState;
  /** In milliseconds. Both move on stop and start, neither on reboot. */
  readonly launchTime: number;
  readonly pendingTime: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly instanceProfile?: { readonly name: string; readonly id: string; readonly roleName: string };
  readonly metadataOptions: {
    readonly httpTokens: 'required' | 'optional';
    readonly httpPutResponseHopLimit: number;
    readonly httpEndpoint: 'enabled' | 'disabled';
    readonly instanceMetadataTags: 'enabled' | 'disabled';
  };
  /** The endorsement keys of its NitroTPM: SubjectPublicKeyInfo, DER, by EC2's KeyType. Absent: it has none. */
  readonly nitroTpm?: Readonly<Partial<Record<'rsa-2048' | 'ecc-sec-p384', Buffer>>>;
  readonly interfaces: readonly FakeInterface[];
  readonly rootDeviceType: 'ebs' | 'instance-store';
  readonly rootDeviceName: string;
  readonly volumes: readonly { readonly deviceName: string; readonly volumeId: string; readonly attachTime: number }[];
  readonly privateDnsName: string;
  readonly publicDnsName: string;
}

export interface FakeInterface {
  readonly interfaceId: string;
  readonly deviceIndex: number;
  readonly attachTime: number;
  readonly macAddress: string;
  /** The first is the primary one. */
  readonly addresses: readonly {
    readonly address: string;
    readonly dnsName: string;
    readonly public?: { readonly address: string; readonly dnsName: string };
  }[];
  readonly ipv6: readonly string[];
}

/** What a test cares about; the rest is filled in so that it fits together. */
export interface InstanceSpec extends Partial<Omit<FakeInstance, 'interfaces'>> {
  /** Of the first interface. */
  readonly privateIp?: string;
  readonly publicIp?: string;
  readonly ipv6?: readonly string[];
  /** Instead of the one interface that those describe. */
  readonly interfaces?: readonly FakeInterface[];
  /** Shorthand for an instance profile with a role of the same name. */
  readonly roleName?: string;
}

export function newInstance(spec: InstanceSpec, now: number): FakeInstance {
  const { privateIp, publicIp, ipv6, roleName, ...given } = spec;
  const region = given.region ?? 'eu-central-1';
  const partition = given.partition ?? partitionOf(region);
  // AWS tells times in seconds.
  const launched = Math.floor(now / 1_000) * 1_000;
  const address = privateIp ?? `10.0.${randomBytes(1)[0]}.${1 + ((randomBytes(1)[0] ?? 0) % 250)}`;
  const interfaces = given.interfaces ?? [
    networkInterface(region, 0, address, launched, {
      ...(publicIp === undefined ? {} : { publicIp }),
      ...(ipv6 === undefined ? {} : { ipv6 }),
    }),
  ];
  const [primary] = interfaces[0]?.addresses ?? [];
  const rootDeviceName = given.rootDeviceName ?? '/dev/xvda';
  const account = given.account ?? '111122223333';
  return {
    instanceId: `i-${hex(17)}`,
    account,
    partition,
    region,
    availabilityZone: `${region}a`,
    imageId: 'ami-0123456789abcdef0',
    instanceType: 'm7i.large',
    architecture: 'x86_64',
    vpcId: 'vpc-0aaaaaaaaaaaaaaaa',
    subnetId: 'subnet-0aaaaaaaaaaaaaaaa',
    state: 'running',
    launchTime: launched,
    pendingTime: launched,
    tags: {},
    ...(roleName === undefined ? {} : { instanceProfile: { name: roleName, id: 'AIPA0000000000000000', roleName } }),
    metadataOptions: {
      httpTokens: 'required',
      httpPutResponseHopLimit: 1,
      httpEndpoint: 'enabled',
      instanceMetadataTags: 'disabled',
    },
    rootDeviceType: 'ebs',
    rootDeviceName,
    volumes: [{ deviceName: rootDeviceName, volumeId: `vol-${hex(17)}`, attachTime: launched + 1_000 }],
    privateDnsName: primary?.dnsName ?? '',
    publicDnsName: primary?.public?.dnsName ?? '',
    ...given,
    interfaces,
  };
}

export function networkInterface(
  region: string,
  deviceIndex: number,
  address: string,
  attachTime: number,
  more: { readonly publicIp?: string; readonly ipv6?: readonly string[]; readonly secondary?: readonly string[] } = {},
): FakeInterface {
  const { publicIp, ipv6 = [], secondary = [] } = more;
  return {
    interfaceId: `eni-${hex(17)}`,
    deviceIndex,
    attachTime,
    macAddress: `06:${hex(10).match(/../g)?.join(':')}`,
    addresses: [
      {
        address,
        dnsName: privateName(address, region),
        ...(publicIp === undefined ? {} : { public: { address: publicIp, dnsName: publicName(publicIp, region) } }),
      },
      ...secondary.map((other) => ({ address: other, dnsName: privateName(other, region) })),
    ],
    ipv6,
  };
}

/** us-east-1 is older than the scheme of the others. */
function privateName(address: string, region: string): string {
  return `ip-${address.replaceAll('.', '-')}.${region === 'us-east-1' ? 'ec2' : `${region}.compute`}.internal`;
}

function publicName(address: string, region: string): string {
  const domain = partitionOf(region) === 'aws-cn' ? 'amazonaws.com.cn' : 'amazonaws.com';
  return `ec2-${address.replaceAll('.', '-')}.${region === 'us-east-1' ? 'compute-1' : `${region}.compute`}.${domain}`;
}

export function partitionOf(region: string): string {
  if (region.startsWith('cn-')) return 'aws-cn';
  if (region.startsWith('us-gov-')) return 'aws-us-gov';
  return region.startsWith('eusc-') ? 'aws-eusc' : 'aws';
}

function hex(digits: number): string {
  return randomBytes(Math.ceil(digits / 2))
    .toString('hex')
    .slice(0, digits);
}
