import { describe, expect, test } from 'vitest';
import { checkRegistrar, registrarOf } from '../../../../core/attestation/evidence/registrar.ts';
import type { IdentityRecord } from '../../../../core/ports/attestation-store.ts';

const instance = 'aws#aws/111122223333/eu-central-1/i-0123456789abcdef0';
const device = { akName: '000b01', resetCount: 1, clock: 1 };
const record = (identity: string, withTpm: boolean) =>
  ({ identity, ...(withTpm ? { device } : {}) }) as unknown as IdentityRecord;

describe('the provider that registered a machine', () => {
  test.each([
    [instance, false, 'aws'],
    [instance, true, 'aws-nitrotpm'],
    [`tpm#${'0'.repeat(64)}`, true, 'tpm'],
    ['gce-vtpm#1/z/2', true, 'gce-vtpm'],
    ['x509#prod/uri/spiffe://aws#1', false, 'x509'],
  ])('of %s with a TPM: %s', (identity, withTpm, provider) => {
    expect(registrarOf(record(identity, withTpm))).toBe(provider);
  });
});

describe('evidence of another provider of EC2 than the one on record', () => {
  const weaker = 'this machine is registered with its TPM, and the evidence is without';

  test('is refused without the TPM that is on record', () => {
    expect(checkRegistrar(record(instance, true), { name: 'aws' })).toEqual([
      { code: 'AttestationInvalid', message: weaker },
    ]);
  });

  test('is taken if it adds the TPM, and at the first use', () => {
    expect(checkRegistrar(record(instance, false), { name: 'aws-nitrotpm' })).toEqual([]);
    expect(checkRegistrar(undefined, { name: 'aws' })).toEqual([]);
    expect(checkRegistrar(record(instance, true), { name: 'aws-nitrotpm' })).toEqual([]);
    expect(checkRegistrar(record(instance, false), { name: 'aws' })).toEqual([]);
    expect(checkRegistrar(record('gce-vtpm#1/z/2', true), { name: 'gce-vtpm' })).toEqual([]);
  });
});
