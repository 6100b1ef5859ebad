import { describe, expect, test } from 'vitest';
import { checkDevice, deviceAnnotations } from '../../../../core/attestation/device.ts';
import type { Device } from '../../../../core/attestation/evidence/provider.ts';

const recorded = { akName: '000b01', resetCount: 7, clock: 1_000 };
const device = (change: Partial<Device> = {}, state: Partial<Device['state']> = {}): Device => ({
  state: { ...recorded, ...state },
  activated: false,
  challenge: () => Promise.resolve('{"v":1}'),
  ...change,
});
const kind = async (given: Device | undefined, before: typeof recorded | undefined) =>
  (await checkDevice(given === undefined ? {} : { device: given }, before))?.kind ?? 'known';

describe('the TPM of a request and the record of its machine', () => {
  test('a machine without a TPM has nothing to compare', async () => {
    expect(await kind(undefined, undefined)).toBe('known');
  });

  test.for([
    ['the first use', undefined, device(), 'challenged'],
    ['the first use, activated', undefined, device({ activated: true }), 'known'],
    ['the key on record', recorded, device(), 'known'],
    ['another key', recorded, device({}, { akName: '000b02' }), 'challenged'],
    ['another key, activated', recorded, device({ activated: true }, { akName: '000b02' }), 'known'],
    ['the same clock: the same request again', recorded, device({}, { clock: 1_000 }), 'known'],
    ['an earlier clock', recorded, device({}, { clock: 999 }), 'refused'],
    ['an earlier clock, activated', recorded, device({ activated: true }, { clock: 999 }), 'refused'],
    ['an earlier reset count', recorded, device({}, { resetCount: 6, clock: 9_000 }), 'refused'],
    ['a later reset count', recorded, device({}, { resetCount: 8, clock: 1_001 }), 'known'],
    [
      'a power failure: a later reset count, an earlier clock',
      recorded,
      device({}, { resetCount: 8, clock: 1 }),
      'known',
    ],
  ] as const)('%s', async ([, before, given, expected]) => {
    expect(await kind(given, before)).toBe(expected);
  });

  test('a challenge has its annotation beside that of the endorsement key', async () => {
    const given = device({ endorsementKey: Buffer.from('ek') });
    expect(await checkDevice({ device: given }, undefined)).toEqual({
      kind: 'challenged',
      violations: [
        { code: 'AttestationChallenge', message: 'the machine must answer the challenge with its next request' },
      ],
      annotations: {
        ...deviceAnnotations({ device: given }),
        'countersign.dev/attestation-challenge': '{"v":1}',
      },
    });
  });

  test('a request names the endorsement key, where one is known', () => {
    expect(deviceAnnotations({ device: device({ endorsementKey: Buffer.from('ek') }) })).toEqual({
      'cluster-x-k8s-io/tpm-endorsement-key': 'ZWs=',
    });
    expect(deviceAnnotations({ device: device() })).toEqual({});
    expect(deviceAnnotations({})).toEqual({});
  });

  test('no challenge is made that is not needed', async () => {
    const challenge = () => Promise.reject(new Error('asked'));
    expect(await kind(device({ challenge }), recorded)).toBe('known');
    expect(await kind(device({ challenge, activated: true }), undefined)).toBe('known');
  });
});
