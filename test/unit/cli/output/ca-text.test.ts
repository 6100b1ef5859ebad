import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  CertificatePolicyExtension,
  Extension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { expect, test } from 'vitest';
import { caText } from '../../../../cli/output/ca-text.ts';
import { extensionText } from '../../../../cli/output/extension-names.ts';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

async function ca(extensions: Extension[]) {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const { rawData } = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=ca',
    keys,
    signingAlgorithm: algorithm,
    extensions,
  });
  return { name: 'ca', certificate: new Uint8Array(rawData), keyId: 'k', signatureAlgorithm: 'ECDSA_SHA_256' };
}

test('extensions that Countersign does not write are shown by OID, criticality and name', async () => {
  const shown = await ca([
    new BasicConstraintsExtension(true, 0, true),
    new CertificatePolicyExtension(['1.2.3'], true),
    new Extension('1.2.3.4', false, Buffer.from('0500', 'hex')),
  ]);
  expect(JSON.parse(await caText(shown, 'json'))).toMatchObject({
    extensions: [
      { oid: '2.5.29.32', critical: true, name: 'Certificate Policies' },
      { oid: '1.2.3.4', critical: false },
    ],
  });
  expect(await caText(shown, 'table')).toContain('2.5.29.32 (Certificate Policies, critical), 1.2.3.4');
});

test('without other extensions there is no such row', async () => {
  expect(JSON.parse(await caText(await ca([new BasicConstraintsExtension(true, 0, true)]), 'json'))).not.toHaveProperty(
    'extensions',
  );
});

test('an extension that the library cannot read is named by its OID', async () => {
  const unreadable = new Extension('2.5.29.32', true, Buffer.from('00', 'hex'));
  expect(JSON.parse(await caText(await ca([unreadable]), 'json'))).toMatchObject({
    extensions: [{ oid: '2.5.29.32' }],
  });
  expect(extensionText({ oid: '2.5.29.32' })).toBe('2.5.29.32');
});
