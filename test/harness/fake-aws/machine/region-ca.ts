/**
 * Stands for the key by which each AWS region signs instance identity documents. AWS's own keys never leave AWS, so
 * each fake region has an RSA-2048 key and a self-signed certificate like theirs: all regions share one name, and the
 * serial number alone says which region's it is. Signed by the real OpenSSL in AWS's encoding (measured: BER of
 * indefinite length, content inside, no certificate inside), because DER fixtures would leave that decoder untested.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface RegionCa {
  readonly region: string;
  readonly certificatePem: string;
  readonly certificateDer: Buffer;
  /** PKCS#8. */
  readonly keyPem: string;
  /** Upper-case hex, as X509Certificate tells it. */
  readonly serialNumber: string;
}

/** What AWS does not do, for hostile fixtures. Everything absent = as AWS does it. */
export interface CmsOptions {
  /** `der`: definite lengths. */
  readonly encoding?: 'ber' | 'der';
  /** `false`: the signature is over the content itself. */
  readonly signedAttributes?: boolean;
  readonly digest?: 'sha1' | 'sha256' | 'sha384' | 'sha512' | 'md5';
  /** The content is left out. OpenSSL streams no such thing: it is DER. */
  readonly detached?: boolean;
  readonly embedCertificates?: boolean;
  /** Further SignerInfos behind the authority's own. */
  readonly alsoSignedBy?: readonly RegionCa[];
  /** Name the signer by subject key identifier, not by issuer and serial number. */
  readonly keyIdentifier?: boolean;
  /** Dotted OID or OpenSSL's name, instead of id-data. */
  readonly contentType?: string;
  /** RSASSA-PSS instead of PKCS#1 v1.5, in DER likewise. */
  readonly pss?: boolean;
}

const authorities = new Map<string, RegionCa>();

/** The same one for a region within a process. */
export function regionCa(region: string): RegionCa {
  const known = authorities.get(region) ?? createRegionCa(region);
  authorities.set(region, known);
  return known;
}

/** One more for the region, with a key and serial number of its own. */
export function createRegionCa(region: string): RegionCa {
  return inFolder((folder) => {
    const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
    // Positive and without a leading zero byte, so that it reads the same however it is printed.
    const serial = Buffer.concat([Buffer.of(0x41), randomBytes(7)]).toString('hex');
    openssl(
      ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-sha256', '-keyout', key, '-out', certificate],
      ['-days', '36500', '-set_serial', `0x${serial}`],
      ['-subj', '/C=US/ST=Washington State/L=Seattle/O=Amazon Web Services LLC'],
    );
    const certificatePem = readFileSync(certificate, 'utf8');
    const { raw, serialNumber } = new X509Certificate(certificatePem);
    return { region, certificatePem, certificateDer: raw, keyPem: readFileSync(key, 'utf8'), serialNumber };
  });
}

/**
 * The text of IMDS' `dynamic/instance-identity/rsa2048`: base64 in lines of 64, without armour. The content are the exact
 * bytes of `document`.
 */
export function signIdentityDocument(
  document: string | Uint8Array,
  authority: string | RegionCa,
  options: CmsOptions = {},
): string {
  return imdsText(signCms(document, authority, options));
}

/** The CMS SignedData itself. */
export function signCms(document: string | Uint8Array, authority: string | RegionCa, options: CmsOptions = {}): Buffer {
  const first = typeof authority === 'string' ? regionCa(authority) : authority;
  const signers = [first, ...(options.alsoSignedBy ?? [])];
  const streamed = options.encoding !== 'der' && options.detached !== true && options.pss !== true;
  return inFolder((folder) => {
    const [input, output] = [join(folder, 'document'), join(folder, 'signed')];
    writeFileSync(input, document);
    const signerArgs = signers.flatMap((signer, index) => {
      const [key, certificate] = [join(folder, `${index}.key`), join(folder, `${index}.pem`)];
      writeFileSync(key, signer.keyPem);
      writeFileSync(certificate, signer.certificatePem);
      const padding = options.pss === true ? ['-keyopt', 'rsa_padding_mode:pss'] : [];
      return ['-signer', certificate, '-inkey', key, ...padding];
    });
    openssl(
      ['cms', '-sign', '-binary', '-nosmimecap', '-in', input, '-out', output, '-outform', 'DER'],
      ['-md', options.digest ?? 'sha256'],
      options.detached === true ? [] : ['-nodetach'],
      options.embedCertificates === true ? [] : ['-nocerts'],
      options.signedAttributes === false ? ['-noattr'] : [],
      streamed ? ['-stream', '-indef'] : [],
      options.keyIdentifier === true ? ['-keyid'] : [],
      options.contentType === undefined ? [] : ['-econtent_type', options.contentType],
      signerArgs,
    );
    return readFileSync(output);
  });
}

function imdsText(signed: Uint8Array): string {
  return (
    Buffer.from(signed)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  ).join('\n');
}

function openssl(...args: readonly (readonly string[])[]): void {
  execFileSync('openssl', args.flat(), { stdio: ['ignore', 'ignore', 'pipe'], timeout: 30_000 });
}

function inFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-region-ca-'));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
