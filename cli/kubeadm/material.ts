/** Requests that kubeadm wrote, each with its private key, which is read to compare it and goes nowhere. */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { decodePem, pemBlocks } from '../../core/encoding/pem.ts';
import { readDer } from '../../core/encoding/der-reader.ts';
import { emptySequence } from '../../core/encoding/der-reader.ts';
import { kubeadmCertificates } from '../../core/kubeadm/certificates.ts';
import type { KubeadmCertificate } from '../../core/kubeadm/certificates.ts';
import { refusalMessage } from '../../core/outcome/outcome.ts';
import { decodeRequest } from '../../core/x509/certificate-request.ts';
import { decodeSubject, subjectText } from '../../core/x509/distinguished-name.ts';
import { extensionType } from '../../core/x509/model.ts';
import type { Subject, SubjectAltNames } from '../../core/x509/model.ts';
import { certificateFacts } from '../../core/x509/read-certificate.ts';
import { decodeSubjectAltNames } from '../../core/x509/subject-alt-names.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Host } from './host.ts';
import { readLogin } from './kubeconfig.ts';
import { filesOf } from './layout.ts';
import type { Files, Folders } from './layout.ts';

export interface Material {
  readonly name: KubeadmCertificate;
  readonly files: Files;
  /** PEM. */
  readonly csr: string;
  /** PEM. */
  readonly key: string;
  /** PEM: the certificate beside it, if there is one. */
  readonly certificate: string | undefined;
  /** Its subject and subjectAltNames. */
  readonly names: readonly string[];
}

/** The requests of the folders, in kubeadm's order. Throws CommandFailure for one that cannot be used. */
export async function readMaterial(folders: Folders, host: Host): Promise<readonly Material[]> {
  const found: Material[] = [];
  for (const name of kubeadmCertificates) {
    const files = filesOf(name, folders);
    const csr = (await host.read(files.csr))?.toString('latin1');
    if (csr === undefined) continue;
    const decoded = decodeRequest(Buffer.from(csr, 'latin1'));
    if (!decoded.ok) throw wrong(files.csr, refusalMessage(decoded.problem).replaceAll('spec.request', 'it'));
    const { key, certificate } = await readPair(files, host);
    if (key === undefined)
      throw wrong(files.csr, `its private key is not in ${files.kind === 'pki' ? files.key : files.kubeconfig}`);
    const { subject, sans, publicKey } = decoded.value;
    // The request of an earlier key, which has its certificate: kubeadm leaves the file where it is.
    if (!isKeyOf(key, publicKey.spki, files)) {
      if (certificate !== undefined && isCertificateOf(certificate, key, files)) continue;
      throw wrong(
        files.csr,
        'it is of another key than the one beside it',
        'remove both, and have kubeadm make new ones',
      );
    }
    found.push({ name, files, csr, key, certificate, names: namesIn(subject, sans) });
  }
  return found;
}

/** What a control plane has: private key and certificate, in their files or in the kubeconfig. */
export async function readPair(
  files: Files,
  host: Host,
): Promise<{ readonly key: string | undefined; readonly certificate: string | undefined }> {
  if (files.kind === 'kubeconfig') {
    const text = (await host.read(files.kubeconfig))?.toString('utf8');
    return text === undefined ? { key: undefined, certificate: undefined } : readLogin(files.kubeconfig, text);
  }
  const [key, certificate] = [await host.read(files.key), await host.read(files.certificate)];
  return { key: key?.toString('latin1'), certificate: certificate?.toString('latin1') };
}

/** Subject and subjectAltNames of the first certificate of a PEM text. */
export function namesOfCertificate(pem: string, at: string): readonly string[] {
  try {
    const facts = certificateFacts(derOf(pem));
    const name = readDer(facts.subjectName);
    const subject = name.ok ? decodeSubject(name.value) : undefined;
    const sans = decodeSubjectAltNames(facts.extensions.get(extensionType.subjectAltName)?.value ?? emptySequence);
    if (subject?.ok === true && sans.ok) return namesIn(subject.value, sans.value);
  } catch {
    // Not a certificate that this program reads.
  }
  throw wrong(at, 'its certificate cannot be read');
}

export function isCertificateOf(certificatePem: string, keyPem: string, files: Files): boolean {
  return isKeyOf(keyPem, certificateFacts(derOf(certificatePem)).spki, files);
}

/** DER of the first certificate in a PEM text. */
export function derOf(pem: string): Uint8Array {
  const [first = ''] = pemBlocks(pem, 'CERTIFICATE');
  const decoded = decodePem(Buffer.from(first), ['CERTIFICATE']);
  if (!decoded.ok) throw new TypeError(`a certificate ${decoded.problem}`);
  return decoded.value[0]?.content ?? new Uint8Array();
}

export function notAfterOf(pem: string): Date {
  return new X509Certificate(pem).validToDate;
}

function isKeyOf(keyPem: string, spki: Uint8Array, files: Files): boolean {
  try {
    const own = createPublicKey(createPrivateKey(keyPem)).export({ type: 'spki', format: 'der' });
    return Buffer.compare(own, spki) === 0;
  } catch {
    // The message of node:crypto is dropped, although it names structures only.
    throw wrong(files.kind === 'pki' ? files.key : files.kubeconfig, 'its private key cannot be read');
  }
}

function namesIn(subject: Subject, { dns, ip, email, uri }: SubjectAltNames): readonly string[] {
  const names = [
    `subject ${subjectText(subject)}`,
    ...dns.map((name) => `DNS name ${name}`),
    ...ip.map((address) => `address ${address}`),
    ...[...email, ...uri].map((name) => `name ${name}`),
  ];
  return [...new Set(names)].toSorted();
}

function wrong(path: string, why: string, hint?: string): CommandFailure {
  return new CommandFailure(exitCodes.configuration, `${path} cannot be used: ${why}`, hint);
}
