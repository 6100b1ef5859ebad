/** The context of a call: what is decoded, and that what the relay's client encodes is decoded as it was. */
import { describe, expect, test } from 'vitest';
import { encodeContext } from '../../../../../adapters/signing-api/context.ts';
import type { AttestContext, MachineObject } from '../../../../../core/ports/signing-endpoint.ts';
import { decodeContext } from '../../../../../lambdas/attest/context.ts';
import { contextOf, machineObject } from '../../../../harness/attestation/machine-objects.ts';

const full = machineObject({ nodeName: 'node-1', addresses: ['10.0.0.1', 'fd00::1'] });
const withoutAddresses = machineObject({ nodeName: 'node-1' });
const cluster = { deleting: false, kubeletAuthentication: true, authorizedAttestors: ['aws'] };

describe('what is not a context', () => {
  const ofMachine = (change: object) => ({ clusterApi: { machines: [machineObject(), { ...full, ...change }] } });
  const without = (key: keyof MachineObject) => ({ clusterApi: { machines: [{ ...full, [key]: undefined }] } });
  const ofCluster = (change: unknown) => ({ clusterApi: { machines: [], cluster: change } });
  const long = 'x'.repeat(513);
  test.each<[string, unknown, string]>([
    ['null', null, 'context is not an object'],
    ['a list', [], 'context is not an object'],
    ['a text', 'x', 'context is not an object'],
    ['the Machine of an older version', { machine: {} }, 'context has keys other than clusterApi'],
    ['Cluster API that is null', { clusterApi: null }, 'context.clusterApi is not an object'],
    ['Cluster API that is a list', { clusterApi: [] }, 'context.clusterApi is not an object'],
    [
      'one key more in it',
      { clusterApi: { machines: [], force: true } },
      'context.clusterApi has keys other than machines, cluster',
    ],
    ['no list of machines', { clusterApi: {} }, 'context.clusterApi.machines is not a list of at most 8 objects'],
    [
      'machines in an object',
      { clusterApi: { machines: {} } },
      'context.clusterApi.machines is not a list of at most 8 objects',
    ],
    [
      'a machine that is null',
      { clusterApi: { machines: [null] } },
      'context.clusterApi.machines is not a list of at most 8 objects',
    ],
    [
      'nine machines',
      { clusterApi: { machines: Array(9).fill(full) } },
      'context.clusterApi.machines is not a list of at most 8 objects',
    ],
    [
      'one key more in a machine',
      ofMachine({ groups: ['x'] }),
      'context.clusterApi.machines[1] has keys other than kind, namespace, name, clusterName, providerId, nodeName, bootstrapReady, deleting, addresses',
    ],
    [
      'another kind',
      ofMachine({ kind: 'MachineSet' }),
      'context.clusterApi.machines[1].kind is not Machine or MachinePool',
    ],
    ...(['kind', 'namespace', 'name', 'clusterName', 'providerId', 'bootstrapReady', 'deleting'] as const).map(
      (key) =>
        [`no ${key}`, without(key), `context.clusterApi.machines[0].${key} is not `] as [string, unknown, string],
    ),
    ...(['namespace', 'name', 'clusterName', 'providerId', 'nodeName'] as const).flatMap(
      (key): [string, unknown, string][] => [
        [
          `a number as ${key}`,
          ofMachine({ [key]: 1 }),
          `context.clusterApi.machines[1].${key} is not a string of at most 512 characters`,
        ],
        [
          `a long ${key}`,
          ofMachine({ [key]: long }),
          `context.clusterApi.machines[1].${key} is not a string of at most 512 characters`,
        ],
      ],
    ),
    [
      'a text that stands for true',
      ofMachine({ bootstrapReady: 'true' }),
      'context.clusterApi.machines[1].bootstrapReady is not true or false',
    ],
    [
      'null that stands for false',
      ofMachine({ deleting: null }),
      'context.clusterApi.machines[1].deleting is not true or false',
    ],
    [
      'addresses in a text',
      ofMachine({ addresses: '10.0.0.1' }),
      'context.clusterApi.machines[1].addresses is not a list of at most 64 strings',
    ],
    [
      'addresses that are numbers',
      ofMachine({ addresses: [1] }),
      'context.clusterApi.machines[1].addresses is not a list',
    ],
    [
      'many addresses',
      ofMachine({ addresses: Array(65).fill('a') }),
      'context.clusterApi.machines[1].addresses is not a list',
    ],
    ['a long address', ofMachine({ addresses: [long] }), 'context.clusterApi.machines[1].addresses is not a list'],
    ['a Cluster that is null', ofCluster(null), 'context.clusterApi.cluster is not an object'],
    ['a Cluster that is a list', ofCluster([]), 'context.clusterApi.cluster is not an object'],
    [
      'one key more in a Cluster',
      ofCluster({ deleting: false, name: 'x' }),
      'context.clusterApi.cluster has keys other than deleting, kubeletAuthentication, authorizedAttestors',
    ],
    [
      'a Cluster that does not say whether it is being deleted',
      ofCluster({}),
      'context.clusterApi.cluster.deleting is not true or false',
    ],
    [
      'kubeletAuthentication in a text',
      ofCluster({ deleting: false, kubeletAuthentication: 'false' }),
      'context.clusterApi.cluster.kubeletAuthentication is not true or false',
    ],
    [
      'an attestor that is not in a list',
      ofCluster({ deleting: false, authorizedAttestors: 'aws' }),
      'context.clusterApi.cluster.authorizedAttestors is not a list of at most 64 strings',
    ],
    [
      'many attestors',
      ofCluster({ deleting: false, authorizedAttestors: Array(65).fill('a') }),
      'context.clusterApi.cluster.authorizedAttestors is not a list',
    ],
  ])('%s', (_, json, problem) => {
    const decoded = decodeContext(json);
    expect(decoded.ok).toBe(false);
    expect(decoded.ok ? '' : decoded.problem.slice(0, problem.length)).toBe(problem);
  });
});

describe('what the client encodes is decoded', () => {
  const roundTrip = (context: AttestContext | undefined): unknown => {
    const encoded = encodeContext(context);
    const decoded = decodeContext(encoded === undefined ? undefined : (JSON.parse(JSON.stringify(encoded)) as unknown));
    return decoded.ok ? decoded.value : decoded.problem;
  };
  test.each<[string, AttestContext]>([
    ['no Machine and no Cluster', contextOf([], null)],
    ['everything that an object may have', contextOf([full], cluster)],
    ['the least that an object has', contextOf()],
    ['a MachinePool', contextOf([machineObject({ kind: 'MachinePool' })], cluster)],
    ['a Machine and its MachinePool', contextOf([full, machineObject({ kind: 'MachinePool', name: 'pool' })], cluster)],
    ['no attestor at all', contextOf([full], { deleting: true, authorizedAttestors: [] })],
  ])('as it was: %s', (_, context) => expect(roundTrip(context)).toStrictEqual(context));

  test('a caller that did not look sends nothing', () => {
    for (const context of [undefined, {}]) {
      expect(encodeContext(context)).toBeUndefined();
      expect(roundTrip(context)).toStrictEqual({});
    }
  });

  test.each<[string, AttestContext, AttestContext]>([
    [
      'a ninth Machine is cut off, for two are refused',
      contextOf(Array<MachineObject>(9).fill(machineObject())),
      contextOf(Array<MachineObject>(8).fill(machineObject())),
    ],
    [
      'addresses of several Machines, which are refused',
      contextOf([full, full]),
      contextOf([withoutAddresses, withoutAddresses]),
    ],
    [
      'more addresses than attest takes',
      contextOf([machineObject({ addresses: Array<string>(65).fill('10.0.0.1') })]),
      contextOf(),
    ],
    ['an address that none can be', contextOf([machineObject({ addresses: ['x'.repeat(513)] })]), contextOf()],
    [
      'a provider ID longer than any',
      contextOf([machineObject({ providerId: 'x'.repeat(600) })]),
      contextOf([machineObject({ providerId: 'x'.repeat(512) })]),
    ],
    [
      'more attestors than there are',
      contextOf([], { deleting: false, authorizedAttestors: ['x'.repeat(513), ...Array<string>(70).fill('a')] }),
      contextOf([], { deleting: false, authorizedAttestors: Array<string>(64).fill('a') }),
    ],
  ])('within the bounds: %s', (_, context, decoded) => expect(roundTrip(context)).toStrictEqual(decoded));
});
