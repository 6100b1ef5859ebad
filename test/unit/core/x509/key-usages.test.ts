import { expect, test } from 'vitest';
import { isExtendedUsage, isKnownUsage, knownUsages, usageTable } from '../../../../core/x509/key-usages.ts';

/** RFC 5280 §4.2.1.3, in the order of the BIT STRING, by the names Kubernetes gives them. */
const bits = [
  ['digital signature', 'signing'],
  ['content commitment'],
  ['key encipherment'],
  ['data encipherment'],
  ['key agreement'],
  ['cert sign'],
  ['crl sign'],
  ['encipher only'],
  ['decipher only'],
];

/** Go's ExtKeyUsage constants in their order: certificates carry the identifiers in it. */
const purposes = [
  ['2.5.29.37.0', 'any'],
  ['1.3.6.1.5.5.7.3.1', 'server auth'],
  ['1.3.6.1.5.5.7.3.2', 'client auth'],
  ['1.3.6.1.5.5.7.3.3', 'code signing'],
  ['1.3.6.1.5.5.7.3.4', 'email protection', 's/mime'],
  ['1.3.6.1.5.5.7.3.5', 'ipsec end system'],
  ['1.3.6.1.5.5.7.3.6', 'ipsec tunnel'],
  ['1.3.6.1.5.5.7.3.7', 'ipsec user'],
  ['1.3.6.1.5.5.7.3.8', 'timestamping'],
  ['1.3.6.1.5.5.7.3.9', 'ocsp signing'],
  ['1.3.6.1.4.1.311.10.3.3', 'microsoft sgc'],
  ['2.16.840.1.113730.4.1', 'netscape sgc'],
];

test('the table is the 23 usages of the Kubernetes API', () => {
  const expected = {
    ...Object.fromEntries(bits.flatMap((names, keyUsageBit) => names.map((name) => [name, { keyUsageBit }]))),
    ...Object.fromEntries(purposes.flatMap(([extKeyUsage, ...names]) => names.map((name) => [name, { extKeyUsage }]))),
  };
  expect(usageTable).toEqual(expected);
  expect(knownUsages).toHaveLength(23);
});

test('extended usages stand in the order certificates carry them', () => {
  expect(knownUsages.filter(isExtendedUsage)).toEqual(purposes.flatMap(([, ...names]) => names));
});

test.each(['toString', '__proto__', 'Client Auth', 'client auth ', ''])('%j is no usage', (name) => {
  expect([isKnownUsage(name), isExtendedUsage(name)]).toEqual([false, false]);
});
