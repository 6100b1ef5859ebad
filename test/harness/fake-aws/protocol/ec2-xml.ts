/** DescribeInstances' answer, element by element as EC2 names them. */
import { randomUUID } from 'node:crypto';
import type { FakeInstance, FakeInterface, InstanceState } from '../machine/instance.ts';
import { escapeXml } from '../service.ts';

export const stateCode: Readonly<Record<InstanceState, number>> = {
  pending: 0,
  running: 16,
  'shutting-down': 32,
  terminated: 48,
  stopping: 64,
  stopped: 80,
};

export function describeReservation(namespace: string, instances: readonly FakeInstance[], nextToken: string): string {
  const reservations = instances.map((instance) =>
    element(
      'item',
      text('reservationId', `r-${instance.instanceId.slice(2)}`),
      text('ownerId', instance.account),
      element('groupSet'),
      element('instancesSet', describeInstance(instance)),
    ),
  );
  return [
    `<DescribeInstancesResponse xmlns="${namespace}">`,
    text('requestId', randomUUID()),
    element('reservationSet', ...reservations),
    nextToken === '' ? '' : text('nextToken', nextToken),
    '</DescribeInstancesResponse>',
  ].join('');
}

/** GetInstanceTpmEkPub's answer. */
export function endorsementKeyAnswer(namespace: string, fields: Readonly<Record<string, string>>): string {
  const named = Object.entries({ requestId: randomUUID(), ...fields }).map(([name, value]) => text(name, value));
  return `<GetInstanceTpmEkPubResponse xmlns="${namespace}">${named.join('')}</GetInstanceTpmEkPubResponse>`;
}

function describeInstance(instance: FakeInstance): string {
  const { instanceProfile, metadataOptions, interfaces, state } = instance;
  const ended = state === 'terminated';
  const [primary] = interfaces[0]?.addresses ?? [];
  return element(
    'item',
    text('instanceId', instance.instanceId),
    text('imageId', instance.imageId),
    element('instanceState', text('code', String(stateCode[state])), text('name', state)),
    text('privateDnsName', instance.privateDnsName),
    text('dnsName', instance.publicDnsName),
    text('instanceType', instance.instanceType),
    text('launchTime', time(instance.launchTime)),
    element('placement', text('availabilityZone', instance.availabilityZone), text('tenancy', 'default')),
    // Of an instance that ended, EC2 soon tells neither network nor disks.
    ...(ended ? [] : [text('subnetId', instance.subnetId), text('vpcId', instance.vpcId)]),
    ...(primary === undefined ? [] : [text('privateIpAddress', primary.address)]),
    ...(primary?.public === undefined ? [] : [text('ipAddress', primary.public.address)]),
    text('architecture', instance.architecture),
    text('rootDeviceType', instance.rootDeviceType),
    text('rootDeviceName', instance.rootDeviceName),
    element(
      'blockDeviceMapping',
      ...instance.volumes.map(({ deviceName, volumeId, attachTime }) =>
        element(
          'item',
          text('deviceName', deviceName),
          element(
            'ebs',
            text('volumeId', volumeId),
            text('status', 'attached'),
            text('attachTime', time(attachTime)),
            text('deleteOnTermination', 'true'),
          ),
        ),
      ),
    ),
    ...(instanceProfile === undefined
      ? []
      : [
          element(
            'iamInstanceProfile',
            text('arn', `arn:${instance.partition}:iam::${instance.account}:instance-profile/${instanceProfile.name}`),
            text('id', instanceProfile.id),
          ),
        ]),
    element(
      'tagSet',
      ...Object.entries(instance.tags).map(([key, value]) => element('item', text('key', key), text('value', value))),
    ),
    element('networkInterfaceSet', ...interfaces.map((each) => describeInterface(each, instance))),
    element(
      'metadataOptions',
      text('state', 'applied'),
      text('httpTokens', metadataOptions.httpTokens),
      text('httpPutResponseHopLimit', String(metadataOptions.httpPutResponseHopLimit)),
      text('httpEndpoint', metadataOptions.httpEndpoint),
      text('httpProtocolIpv6', 'disabled'),
      text('instanceMetadataTags', metadataOptions.instanceMetadataTags),
    ),
    ...(instance.nitroTpm === undefined ? [] : [text('tpmSupport', 'v2.0')]),
    element('privateDnsNameOptions', text('hostnameType', 'ip-name')),
  );
}

function describeInterface(each: FakeInterface, { account, subnetId, vpcId }: FakeInstance): string {
  const [primary] = each.addresses;
  const association = (of: FakeInterface['addresses'][number]['public']) =>
    of === undefined
      ? []
      : [
          element(
            'association',
            text('publicIp', of.address),
            text('publicDnsName', of.dnsName),
            text('ipOwnerId', 'amazon'),
          ),
        ];
  return element(
    'item',
    text('networkInterfaceId', each.interfaceId),
    text('subnetId', subnetId),
    text('vpcId', vpcId),
    text('ownerId', account),
    text('status', 'in-use'),
    text('macAddress', each.macAddress),
    ...(primary === undefined
      ? []
      : [text('privateIpAddress', primary.address), text('privateDnsName', primary.dnsName)]),
    element(
      'attachment',
      text('attachmentId', `eni-attach-${each.interfaceId.slice(4)}`),
      text('deviceIndex', String(each.deviceIndex)),
      text('status', 'attached'),
      text('attachTime', time(each.attachTime)),
      text('deleteOnTermination', 'true'),
      text('networkCardIndex', '0'),
    ),
    ...association(primary?.public),
    element(
      'privateIpAddressesSet',
      ...each.addresses.map(({ address, dnsName, public: known }, index) =>
        element(
          'item',
          text('privateIpAddress', address),
          text('privateDnsName', dnsName),
          text('primary', String(index === 0)),
          ...association(known),
        ),
      ),
    ),
    element('ipv6AddressesSet', ...each.ipv6.map((address) => element('item', text('ipv6Address', address)))),
    text('interfaceType', 'interface'),
  );
}

function element(name: string, ...inside: readonly string[]): string {
  return `<${name}>${inside.join('')}</${name}>`;
}

function text(name: string, value: string): string {
  return element(name, escapeXml(value));
}

/** EC2 tells milliseconds, and they are always 0. */
function time(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}.000Z`;
}
