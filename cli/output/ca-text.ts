/** The output of `countersign ca`, for a CA with its key in KMS or in a folder. */
import { X509Certificate } from 'node:crypto';
import { certificateFacts } from '../../core/x509/read-certificate.ts';
import { extensionType } from '../../core/x509/model.ts';
import { toPem } from '../../core/encoding/pem.ts';
import { formatOutput, table } from './output.ts';

export interface ShownCa {
  readonly name: string;
  /** DER. */
  readonly certificate: Uint8Array;
  readonly keyId: string;
  readonly signatureAlgorithm: string;
}

/** A table or JSON, or the certificate as PEM. */
export async function caText(
  { name, certificate, keyId, signatureAlgorithm }: ShownCa,
  output: string,
): Promise<string> {
  if (output === 'pem') return toPem('CERTIFICATE', certificate);
  const facts = certificateFacts(certificate);
  const shown = {
    name,
    subject: facts.subject,
    serial: facts.serial,
    notBefore: new Date(facts.notBefore).toISOString(),
    notAfter: new Date(facts.notAfter).toISOString(),
    key: keyText(certificate),
    signatureAlgorithm,
    keyId,
    subjectKeyIdentifier: Buffer.from(facts.subjectKeyIdentifier ?? []).toString('hex'),
    fingerprintSha256: facts.fingerprintSha256,
  };
  const rows = Object.entries(shown).map(([key, value]) => [labels[key] ?? key, value]);
  const others = [...facts.extensions.keys()].filter((oid) => !ownExtensions.has(oid));
  if (others.length === 0) return formatOutput(output, shown, () => table(rows));
  const { extensionText, extensionsOfCertificate } = await import('./extension-names.ts');
  const extensions = extensionsOfCertificate(certificate, others);
  return formatOutput(output, { ...shown, extensions }, () =>
    table([...rows, ['extensions', extensions.map(extensionText).join(', ')]]),
  );
}

/** The extensions of the CA certificates that Countersign makes. */
const ownExtensions: ReadonlySet<string> = new Set([
  extensionType.keyUsage,
  extensionType.basicConstraints,
  extensionType.subjectKeyIdentifier,
]);

const labels: Readonly<Record<string, string>> = {
  notBefore: 'valid from',
  notAfter: 'valid to',
  signatureAlgorithm: 'signs with',
  keyId: 'key id',
  subjectKeyIdentifier: 'SKI',
  fingerprintSha256: 'SHA-256',
};

function keyText(certificate: Uint8Array): string {
  const { asymmetricKeyType, asymmetricKeyDetails } = new X509Certificate(certificate).publicKey;
  if (asymmetricKeyType === 'rsa') return `RSA-${asymmetricKeyDetails?.modulusLength}`;
  const curve = asymmetricKeyDetails?.namedCurve ?? '';
  return { prime256v1: 'P-256', secp384r1: 'P-384', secp521r1: 'P-521' }[curve] ?? curve;
}
