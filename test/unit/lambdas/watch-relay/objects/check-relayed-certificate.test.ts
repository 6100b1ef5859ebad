import { expect, test } from 'vitest';
import { certificateProblem } from '../../../../../lambdas/watch-relay/objects/check-relayed-certificate.ts';
import { makeRequest, newKey } from '../../../../harness/x509/requests.ts';
import type { TestKeyKind } from '../../../../harness/x509/requests.ts';
import { caCertificate, caPem, certificateFor, goodPem, newCa, otherPem, request, testCa } from '../fixtures.ts';

/** root → middle → the issuer of the leaves */
const root = ['CN=root', await newCa()] as const;
const middle = ['CN=middle', await newCa()] as const;
const middlePem = await caCertificate(middle, root);
const issuerPem = await caCertificate(testCa, middle);
const strangerPem = await caCertificate(['CN=test CA', await newCa()], middle);

test.each<TestKeyKind>(['RSA-2048', 'P-256', 'P-384', 'P-521', 'Ed25519'])(
  'a certificate for the requested %s key may be written, with or without a chain',
  async (kind) => {
    const key = newKey(kind);
    const { bytes } = makeRequest({ key });
    const pem = await certificateFor(key);
    expect(certificateProblem(pem, bytes)).toBeUndefined();
    expect(certificateProblem(pem + issuerPem, bytes)).toBeUndefined();
    expect(certificateProblem(pem + issuerPem + middlePem, bytes)).toBeUndefined();
    expect(certificateProblem(goodPem, bytes)).toMatch(/another key/);
  },
);

test.each<[string, string, string]>([
  ['nothing', '', 'empty'],
  ['no PEM', 'hello', 'PEM'],
  ['text before', `text before\n${goodPem}`, 'PEM'],
  ['text after', `${goodPem}text after\n`, 'PEM'],
  ['headers', goodPem.replace('-----\n', '-----\nProc-Type: 4,ENCRYPTED\n\n'), 'PEM'],
  ['another label', goodPem.replaceAll('CERTIFICATE', 'PRIVATE KEY'), 'PEM'],
  ['blank lines between blocks', `${goodPem}\n\n${caPem}`, 'PEM'],
  ['a line missing', goodPem.replace(/\n[A-Za-z0-9+/]{64}\n/, '\n'), 'parsed'],
  ['a broken intermediate', `${goodPem}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`, 'parsed'],
  ['a CA certificate', caPem, 'CA'],
  ['a certificate for another key', otherPem, 'another key'],
  ['the leaf second', otherPem + goodPem, 'not a CA'],
  ['far too many', goodPem.repeat(1_000), 'too long'],
])('%s is not written', (_, pem, problem) => {
  expect(certificateProblem(pem, request.bytes)).toContain(problem);
});

test.each<[string, string, string]>([
  ['an unrelated CA', goodPem + caPem, 'did not issue'],
  ['a leaf', goodPem + otherPem, 'not a CA'],
  ['the same leaf again', goodPem + goodPem, 'not a CA'],
  ['a CA of the right name and another key', goodPem + strangerPem, 'did not issue'],
  ['the next but one', goodPem + middlePem, 'did not issue'],
  ['its issuer, and a foreign CA behind it', goodPem + issuerPem + caPem, 'did not issue'],
  ['the chain in another order', goodPem + middlePem + issuerPem, 'did not issue'],
  ['the root behind it', goodPem + issuerPem + middlePem + (await caCertificate(root, root)), 'self-signed root'],
  ['its issuer, if that is a root', goodPem + (await caCertificate(testCa, testCa)), 'self-signed root'],
])('finding 25: with %s behind the leaf nothing is written', (_, pem, problem) => {
  expect(certificateProblem(pem, request.bytes)).toContain(problem);
});

test('nothing is written on a request that cannot be read', () => {
  expect(certificateProblem(goodPem, Buffer.from('nonsense'))).toContain('request');
});
