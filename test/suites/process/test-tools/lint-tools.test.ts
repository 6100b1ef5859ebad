import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { beforeAll, describe, expect, test } from 'vitest';
import { lintCertificates, type LintReport } from '../../../harness/x509/lint-tools.ts';
import { clientExtensions, createTestAuthority, type TestAuthority } from '../../../harness/x509/test-certificates.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('zlint', 'pkilint');

/*
 * A linter that finds nothing proves something only if it finds something where there is something. Each planted
 * defect is one we could make ourselves; the rule that must catch it is named, and one certificate is clean.
 */
describe.skipIf(skip)('the linters', () => {
  let ca: TestAuthority;
  let good: string;

  beforeAll(async () => {
    ca = await createTestAuthority('lint test CA');
    good = await leaf(clientExtensions());
  });

  async function leaf(extensions: x509.Extension[], subject: x509.JsonName = [{ CN: ['a user'] }]): Promise<string> {
    return (await ca.issue({ subject, extensions })).certificatePem;
  }

  test('have nothing against a good CA and a good leaf', async () => {
    const reports = await lintCertificates([
      { certificatePem: ca.certificatePem },
      { certificatePem: good, issuerPem: ca.certificatePem },
    ]);
    expect(reports.map((report) => report.findings)).toEqual([[], []]);
  });

  test.for<[defect: string, make: () => Promise<string>, expected: string[]]>([
    [
      'a negative serial number',
      async () => withNegativeSerial(good),
      ['zlint e_serial_number_not_positive', 'pkilint pkix.certificate_serial_number_out_of_range'],
    ],
    [
      'a CA that may not sign certificates',
      () => leaf([new x509.BasicConstraintsExtension(true, 0, true), keyUsage(x509.KeyUsageFlags.digitalSignature)]),
      ['pkilint pkix.ca_certificate_keycertsign_keyusage_not_set'], // zlint has this among the web's rules only
    ],
    [
      'a leaf that may sign certificates',
      () => leaf([keyUsage(x509.KeyUsageFlags.keyCertSign)]),
      ['zlint e_ext_key_usage_cert_sign_without_ca', 'pkilint pkix.ee_certificate_keycertsign_keyusage_set'],
    ],
    [
      'basic constraints that are not critical',
      () => leaf([new x509.BasicConstraintsExtension(true, 0, false), keyUsage(x509.KeyUsageFlags.keyCertSign)]),
      ['zlint e_basic_constraints_not_critical', 'pkilint pkix.basic_constraints_extension_not_critical'],
    ],
    [
      'the same extension twice',
      () => leaf([...clientExtensions(), ...clientExtensions()]),
      ['zlint e_ext_duplicate_extension', 'pkilint pkix.duplicate_extension'],
    ],
    [
      'key encipherment with an EC key (RFC 8813)',
      () => leaf([keyUsage(x509.KeyUsageFlags.keyEncipherment)]),
      ['zlint e_ecdsa_allowed_ku', 'pkilint pkix.key_usage_value_prohibited_for_ec'],
    ],
    [
      'a common name of more than 64 characters',
      () => leaf(clientExtensions(), [{ CN: ['a'.repeat(65)] }]),
      ['zlint e_subject_common_name_max_length', 'pkilint itu.invalid_asn1_syntax'],
    ],
    [
      'no authority key identifier',
      async () => withoutExtension(good, '2.5.29.35'),
      [
        'zlint e_ext_authority_key_identifier_no_key_identifier',
        'pkilint pkix.authority_key_identifier_extension_absent',
      ],
    ],
    [
      'something that is no certificate',
      async () => pem(Buffer.from('3003020101', 'hex')),
      ['zlint unreadable', 'pkilint unreadable'],
    ],
  ])('see %s', async ([, make, expected]) => {
    const [report] = await lintCertificates([{ certificatePem: await make() }]);
    expect(names(report)).toEqual(expect.arrayContaining(expected));
  });

  test('see a certificate that the named issuer did not sign', async () => {
    const stranger = await createTestAuthority('lint test CA'); // the same name, another key
    const [report] = await lintCertificates([{ certificatePem: good, issuerPem: stranger.certificatePem }]);
    expect(names(report)).toContain('pkilint pkix.signature_verification_failed');
  });

  test('answer for each certificate in order, also behind one that cannot be read', async () => {
    const bad = withNegativeSerial(good);
    const noCertificate = pem(Buffer.from('0500', 'hex'));
    const batch = [good, noCertificate, bad, noCertificate, good];
    const reports = await lintCertificates(batch.map((certificatePem) => ({ certificatePem })));
    const worst = (report: LintReport) => report.findings.map(({ severity }) => severity);
    expect(reports.map((report) => worst(report)[0] ?? 'none')).toEqual(['none', 'fatal', 'error', 'fatal', 'none']);
  });
});

function names(report: LintReport | undefined): string[] {
  return (report?.findings ?? []).map(({ tool, lint }) => `${tool} ${lint}`);
}

function keyUsage(usages: x509.KeyUsageFlags): x509.Extension {
  return new x509.KeyUsagesExtension(usages, true);
}

/** Sets the sign bit of the serial number, which the library would not encode. The signature no longer fits. */
function withNegativeSerial(certificatePem: string): string {
  const certificate = new x509.X509Certificate(certificatePem);
  const der = Buffer.from(certificate.rawData);
  const offset = der.indexOf(Buffer.from(certificate.serialNumber, 'hex'));
  der[offset] = der[offset]! | 0x80;
  return pem(der);
}

/** The certificate with one extension renamed to an unknown one: as good as absent. The signature no longer fits. */
function withoutExtension(certificatePem: string, oid: string): string {
  const der = Buffer.from(new x509.X509Certificate(certificatePem).rawData);
  const last = Number(oid.split('.').at(-1));
  const offset = der.indexOf(Buffer.from([0x06, 0x03, 0x55, 0x1d, last]));
  der[offset + 4] = 0x7f;
  return pem(der);
}

function pem(der: Buffer): string {
  return x509.PemConverter.encode(der, 'CERTIFICATE');
}
