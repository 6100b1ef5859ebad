/** Reads the files of `countersign ca import`. Only certificates leave this reader, so that a key in a file goes nowhere. */
import { decodePem } from '../../encoding/pem.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { certificateFacts, CertificateUnreadableError } from '../../x509/read-certificate.ts';
import type { ImportFault } from './faults.ts';

/** DER. */
export interface ImportedCertificates {
  readonly certificate: Uint8Array;
  /** Between the certificate and the root, nearest first. */
  readonly chain: readonly Uint8Array[];
  /** Absent if the certificate is self-signed. */
  readonly root?: Uint8Array;
}

export interface ImportTexts {
  readonly certificate: string;
  readonly chain?: string | undefined;
  readonly root?: string | undefined;
}

/** The texts are PEM. Text around the blocks, as openssl writes it, is skipped. */
export function readImport(texts: ImportTexts): Result<ImportedCertificates, ImportFault> {
  const certificates = certificatesIn(texts.certificate, 'the file of the certificate');
  if (!certificates.ok) return certificates;
  const above = certificatesIn(texts.chain ?? '', 'the chain');
  if (!above.ok) return above;
  const roots = certificatesIn(texts.root ?? '', 'the file of the root');
  if (!roots.ok) return roots;
  const [certificate, ...more] = certificates.value;
  const [root, ...moreRoots] = roots.value;
  if (certificate === undefined) return notPem('the file of the certificate holds no certificate');
  if (texts.root !== undefined && root === undefined) return notPem('the file of the root holds no certificate');
  if (texts.chain !== undefined && above.value.length === 0) return notPem('the chain holds no certificate');
  if (more.length > 0) return extra('the file of the certificate holds others too: put them into the chain');
  if (moreRoots.length > 0) return extra('the file of the root holds more than one certificate');
  return success({ certificate, chain: above.value, ...(root === undefined ? {} : { root }) });
}

function notPem(message: string): Result<never, ImportFault> {
  return failure({ why: 'NotPem', message });
}

function extra(message: string): Result<never, ImportFault> {
  return failure({ why: 'ExtraCertificate', message });
}

const maxTextLength = 262_144;

function certificatesIn(text: string, file: string): Result<readonly Uint8Array[], ImportFault> {
  if (text.length > maxTextLength) return notPem(`${file} is longer than ${maxTextLength} characters`);
  // Every line that looks like an edge of a block counts, so that a damaged block is not skipped as if it were text.
  const parts = text.split(/^(?=-----BEGIN)/m);
  const [before = '', ...blocks] = text.startsWith('-----BEGIN') ? ['', ...parts] : parts;
  if (before.includes('-----')) return notPem(`${file} holds a broken block`);
  const found: Uint8Array[] = [];
  for (const block of blocks) {
    const end = /^-----END [^\n]*-----[ \t\r]*$/m.exec(block);
    const cut = end === null ? block : block.slice(0, end.index + end[0].length);
    if (block.slice(cut.length).includes('-----')) return notPem(`${file} holds a broken block`);
    const decoded = decodePem(Buffer.from(`${cut.trimEnd()}\n`), ['CERTIFICATE']);
    // The problem names the expected label, never the text.
    if (!decoded.ok) return notPem(`${file} ${decoded.problem}`);
    found.push(...decoded.value.map(({ content }) => content));
  }
  return success(found);
}

/** The strictly read certificate; `name` is for the message. */
export function factsOf(der: Uint8Array, name: string): Result<ReturnType<typeof certificateFacts>, ImportFault> {
  try {
    return success(certificateFacts(der));
  } catch (error) {
    if (!(error instanceof CertificateUnreadableError)) throw error;
    return failure({ why: 'Unreadable', message: `${name} cannot be read: ${error.message}` });
  }
}
