/** What EC2 says about an instance (DescribeInstances), and the rules about it. */
import type { Instant } from '../ports.ts';

/** Of DescribeInstances only what is used, times as instants; what EC2 leaves out is left out. */
export interface InstanceDescription {
  readonly instanceId: string;
  /** Account: OwnerId of the reservation. */
  readonly ownerId: string;
  readonly state: 'pending' | 'running' | 'shutting-down' | 'terminated' | 'stopping' | 'stopped';
  readonly availabilityZone: string;
  readonly launchTime: Instant;
  readonly vpcId?: string;
  /** Of the primary interface. */
  readonly subnetId?: string;
  readonly tags: ReadonlyMap<string, string>;
  /** ARN. */
  readonly instanceProfile?: string;
  /** MetadataOptions. */
  readonly httpTokens?: 'required' | 'optional';
  readonly httpPutResponseHopLimit?: number;
  readonly privateDnsName?: string;
  readonly publicDnsName?: string;
  readonly rootDeviceType?: 'ebs' | 'instance-store';
  /** When the volume behind RootDeviceName was attached. */
  readonly rootAttachedAt?: Instant;
  /** When the interface of network card 0, device 0 was attached. */
  readonly interfaceAttachedAt?: Instant;
  /** Of all its network interfaces: private, secondary, public, elastic, carrier, IPv6. */
  readonly addresses: readonly string[];
  /** Likewise, private and public; the two names above need not be repeated. */
  readonly dnsNames: readonly string[];
}
