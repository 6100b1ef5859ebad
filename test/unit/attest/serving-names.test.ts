import { describe, expect, test } from 'vitest';
import type { ServingNames } from '../../../core/attestation-configuration.ts';
import { checkNames, rangeAddresses } from '../../../core/serving-names.ts';
import type { NamesQuestion } from '../../../core/serving-names.ts';

const machine = {
  identity: 'aws#m1',
  addresses: ['10.0.0.5', '10.0.0.6', '203.0.113.9', '2001:db8::5'],
  dnsNames: ['ip-10-0-0-5.eu-central-1.compute.internal', 'ec2-203-0-113-9.eu-central-1.compute.amazonaws.com'],
};
const names: ServingNames = {
  addressRanges: ['192.168.0.0/24', '2001:db8:1::/64'],
  reservedAddresses: ['10.96.0.0/12', '192.168.0.1'],
  reservedNames: ['api.prod.example.com', '*.internal.example.com'],
};

interface Asked {
  readonly dns?: readonly string[];
  readonly ip?: readonly string[];
}
function refused({ dns = [], ip = [] }: Asked, more: Partial<NamesQuestion> = {}): readonly string[] {
  const sans = { dns, ip, email: [], uri: [], unsupported: [] };
  const found = checkNames({ sans, nodeName: 'node-1', machine, names, holders: new Map(), ...more });
  expect(found.every(({ code }) => code === 'NameNotOwned')).toBe(true);
  return found.map(({ message }) => message);
}

describe('addresses', () => {
  test.each(['10.0.0.5', '10.0.0.6', '203.0.113.9', '2001:db8::5'])('%s of an interface is its own', (ip) =>
    expect(refused({ ip: [ip] })).toEqual([]),
  );
  test.each([
    ['of another machine', '10.0.0.7'],
    ['of another machine, IPv6', '2001:db8::6'],
    ['of a service', '10.96.0.1'],
    ['of the control-plane endpoint, though in a range', '192.168.0.1'],
    ['loopback', '127.0.0.1'],
    ['loopback, IPv6', '::1'],
    ['unspecified', '0.0.0.0'],
    ['unspecified, IPv6', '::'],
    ['of the metadata service', '169.254.169.254'],
    ['link-local', 'fe80::1'],
    ['multicast', '224.0.0.1'],
    ['broadcast', '255.255.255.255'],
  ])('%s: %s is not', (_, ip) =>
    expect(refused({ ip: [ip] })).toEqual([`address ${ip} does not belong to this machine`]),
  );

  test('a reserved address stays reserved on an interface', () => {
    const more = { machine: { ...machine, addresses: ['10.96.0.1'] } };
    expect(refused({ ip: ['10.96.0.1'] }, more)).toHaveLength(1);
  });
  test.each(['0.0.0.1', '127.0.0.2', '169.254.0.9', '224.0.0.9', '240.0.0.1', '::', '::1', 'fe80::9', 'ff02::9'])(
    '%s is nobody’s, though on an interface and in a range',
    (ip) => {
      const range = ip.includes(':') ? '::/0' : '0.0.0.0/0';
      const own = { machine: { ...machine, addresses: [ip] } };
      expect(refused({ ip: [ip] }, own)).toHaveLength(1);
      expect(refused({ ip: [ip] }, { names: { ...names, addressRanges: [range] } })).toHaveLength(1);
    },
  );
  test('a range that cannot be read holds nothing', () => {
    const more = { names: { ...names, addressRanges: ['192.168.0.0/99'], reservedAddresses: ['10.0.0.0/99'] } };
    expect(refused({ ip: ['192.168.0.0', '10.0.0.5'] }, more)).toEqual([
      'address 192.168.0.0 does not belong to this machine',
    ]);
  });
  test('its own interface address is its own, API server or not', () => {
    expect(refused({ ip: ['10.0.0.5'] }, { nodeName: 'cp-1' })).toEqual([]);
  });
  test('in a range the first user has it', () => {
    const ip = ['192.168.0.7', '2001:db8:1::7'];
    expect(refused({ ip })).toEqual([]);
    expect(refused({ ip }, { holders: new Map([['192.168.0.7', 'aws#m1']]) })).toEqual([]);
    expect(refused({ ip }, { holders: new Map([['192.168.0.7', 'aws#m2']]) })).toEqual([
      'address 192.168.0.7 does not belong to this machine',
    ]);
  });
  test('range addresses are found once each', () => {
    const sans = { dns: [], ip: ['192.168.0.7', '10.0.0.5', '192.168.0.7'], email: [], uri: [], unsupported: [] };
    expect(rangeAddresses(sans, names)).toEqual(['192.168.0.7']);
  });
});

describe('DNS names', () => {
  test.each(['node-1', 'NODE-1', ...machine.dnsNames])('%s is its own', (name) =>
    expect(refused({ dns: [name] })).toEqual([]),
  );
  test.each([
    'node-2',
    'ip-10-0-0-6.eu-central-1.compute.internal',
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'Kubernetes.Default.SVC.cluster.local',
    'kubernetes.default.svc.corp.example',
    'web.shop.svc',
    'api.prod.example.com',
    'db.internal.example.com',
    'localhost',
    '*.eu-central-1.compute.internal',
    'node-1.',
    'kubernetes.',
    '',
  ])('%j is not', (name) => expect(refused({ dns: [name] })).toHaveLength(1));
  test.each(['kubernetes', 'kubernetes.default.svc', 'api.prod.example.com', 'a.svc.cluster.local'])(
    'a node called %s gets no certificate for it',
    (nodeName) => expect(refused({ dns: [nodeName] }, { nodeName })).toHaveLength(1),
  );
  test.each([
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'web.shop.svc.corp.example',
    'a.cluster.local',
    'cluster.local',
    'localhost',
    'api.prod.example.com',
    'worker.',
    '*.example.com',
  ])('%s stays refused if the platform says it is the machine', (name) => {
    const more = { machine: { ...machine, dnsNames: [name] } };
    expect(refused({ dns: [name] }, more)).toHaveLength(1);
  });
});

describe('a Machine object', () => {
  test('narrows', () => {
    const only = ['10.0.0.5', 'IP-10-0-0-5.eu-central-1.compute.internal'];
    expect(refused({ ip: ['10.0.0.5'], dns: ['node-1', only[1] ?? ''] }, { only })).toEqual([]);
    expect(refused({ ip: ['10.0.0.6'] }, { only })).toHaveLength(1);
    expect(refused({ dns: [machine.dnsNames[1] ?? ''] }, { only })).toHaveLength(1);
  });
  test('never widens', () => {
    const only = ['10.0.0.7', 'node-2', 'kubernetes'];
    expect(refused({ ip: ['10.0.0.7'], dns: ['node-2', 'kubernetes'] }, { only })).toHaveLength(3);
  });
});
