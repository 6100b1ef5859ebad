import { describe, expect, test } from 'vitest';
import { checkNames, rangeAddresses } from '../../../../../core/attestation/serving-names.ts';
import type { NamesQuestion } from '../../../../../core/attestation/serving-names.ts';
import { ranges } from '../../../../harness/attestation/address-ranges.ts';

const machine = {
  identity: 'aws#m1',
  addresses: ['10.0.0.5', '10.0.0.6', '203.0.113.9', '2001:db8::5'],
  dnsNames: ['ip-10-0-0-5.eu-central-1.compute.internal', 'ec2-203-0-113-9.eu-central-1.compute.amazonaws.com'],
};
const addressRanges = ranges('192.168.0.0/24', '2001:db8:1::/64');
interface Asked {
  readonly dns?: readonly string[];
  readonly ip?: readonly string[];
}
function refused({ dns = [], ip = [] }: Asked, more: Partial<NamesQuestion> = {}): readonly string[] {
  const sans = { dns, ip, email: [], uri: [], unsupported: [] };
  const found = checkNames({ sans, nodeName: 'node-1', machine, addressRanges, holders: new Map(), only: [], ...more });
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
    ['loopback', '127.0.0.1'],
  ])('%s: %s is not', (_, ip) =>
    expect(refused({ ip: [ip] })).toEqual([`address ${ip} does not belong to this machine`]),
  );

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
    expect(rangeAddresses(sans, addressRanges)).toEqual(['192.168.0.7']);
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
    '*.eu-central-1.compute.internal',
    'node-1.',
    '',
  ])('%j is not', (name) => expect(refused({ dns: [name] })).toHaveLength(1));
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
