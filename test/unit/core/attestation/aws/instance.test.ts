import { describe, expect, test } from 'vitest';
import type { NodeNameRule } from '../../../../../core/configuration/providers/aws.ts';
import { describeMachine } from '../../../../../core/attestation/aws/instance.ts';
import type { InstanceDescription } from '../../../../../core/attestation/aws/instance.ts';
import { account, instance, instanceId, region } from '../../../../corpus/attestation/aws-machine.ts';

const expected = { identity: 'aws#…', account, region, instanceId };
const machineOf = (rules: readonly NodeNameRule[], facts: Partial<InstanceDescription> = {}) =>
  describeMachine({ nodeName: rules, instance: { addresses: 'primary' } }, expected, { ...instance, ...facts });
const tagged = (value: string) => ({ tags: new Map([['Name', value]]) });

describe('node names', () => {
  test.for<[string, NodeNameRule, Partial<InstanceDescription>, readonly string[]]>([
    ['the private DNS name', { kind: 'privateDnsName' }, {}, ['ip-10-0-0-5.eu-central-1.compute.internal']],
    ['its first label', { kind: 'privateDnsLabel' }, {}, ['ip-10-0-0-5']],
    ['the instance id', { kind: 'instanceId' }, {}, [instanceId]],
    ['a tag', { kind: 'tag', key: 'Name' }, tagged('Worker-1'), ['worker-1']],
    ['a pattern', { kind: 'pattern', pattern: 'edge-*' }, {}, ['edge-*']],
    ['no private DNS name', { kind: 'privateDnsName' }, { privateDnsName: '' }, []],
    ['no tag', { kind: 'tag', key: 'Name' }, {}, []],
    // A user who may write tags could otherwise choose any name, the control plane's among them.
    ['a tag that is a pattern', { kind: 'tag', key: 'Name' }, tagged('*'), []],
    ['a tag that is a pattern for some', { kind: 'tag', key: 'Name' }, tagged('cp-*'), []],
    ['a tag that no Node can be called', { kind: 'tag', key: 'Name' }, tagged('my worker'), []],
    ['an empty tag', { kind: 'tag', key: 'Name' }, tagged(''), []],
  ])('%s', ([, rule, facts, names]) => {
    expect(machineOf([rule], facts).nodeNames).toEqual(names);
  });

  test('any of several rules', () => {
    expect(
      machineOf([{ kind: 'instanceId' }, { kind: 'tag', key: 'x' }, { kind: 'privateDnsLabel' }]).nodeNames,
    ).toEqual([instanceId, 'ip-10-0-0-5']);
  });
});

describe('what belongs to it', () => {
  test('addresses are told once, in the form in which requests are read', () => {
    const primaryAddresses = [
      '10.0.0.5',
      '2001:DB8:0:0::0:1',
      '2001:db8::1',
      '::ffff:10.0.0.7',
      '',
      '10.0.0.0/24',
      'x',
    ];
    expect(machineOf([], { primaryAddresses }).addresses).toEqual(['10.0.0.5', '2001:db8::1', '10.0.0.7']);
  });

  test('DNS names are host names, in lower case', () => {
    const primaryDnsNames = ['A.example', '', '*.example', 'b c'];
    expect(machineOf([], { primaryDnsNames, privateDnsName: '', publicDnsName: 'p.example' }).dnsNames).toEqual([
      'p.example',
      'a.example',
    ]);
  });

  test.each([
    ['primary', ['10.0.0.5', '198.51.100.7', '2001:db8::5'], ['ec2-198-51-100-7.eu-central-1.compute.amazonaws.com']],
    [
      'all',
      ['10.0.0.5', '10.0.0.6', '198.51.100.7', '2001:db8::5'],
      ['ip-10-0-0-6.eu-central-1.compute.internal', 'ec2-198-51-100-7.eu-central-1.compute.amazonaws.com'],
    ],
  ] as const)('finding 12: with addresses: %s', (which, addresses, dnsNames) => {
    const machine = describeMachine({ nodeName: [], instance: { addresses: which } }, expected, instance);
    expect(machine.addresses).toEqual(addresses);
    expect(machine.dnsNames).toEqual(['ip-10-0-0-5.eu-central-1.compute.internal', ...dnsNames]);
  });
});
