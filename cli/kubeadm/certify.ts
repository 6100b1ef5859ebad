/** Has requests signed, and puts each certificate beside its key. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { dirname } from 'node:path';
import { pemBlocks } from '../../core/encoding/pem.ts';
import type { KubeadmCertificate } from '../../core/kubeadm/certificates.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { replaceFile } from './host.ts';
import type { Attributes, Host } from './host.ts';
import { withLogin } from './kubeconfig.ts';
import { caFilesOf, filesOf } from './layout.ts';
import type { Files, Folders } from './layout.ts';
import type { KubeadmSigner, Signed } from './signer.ts';

export interface Wanted {
  readonly name: KubeadmCertificate;
  readonly files: Files;
  /** PEM. */
  readonly csr: string;
  readonly key: string;
}

export interface Certified {
  readonly wanted: Wanted;
  /** PEM: with the CAs below the root. */
  readonly certificate: string;
  readonly ca: string;
  readonly caPem: string;
}

/** Why a certificate is left as it is. */
export interface LeftOut {
  readonly name: KubeadmCertificate;
  readonly why: string;
}

/** What the signer permits. One refusal ends the command before anything is signed. */
export async function checkAll(
  wanted: readonly Wanted[],
  folders: Folders,
  signer: KubeadmSigner,
  host: Host,
): Promise<{ readonly permitted: readonly Wanted[]; readonly leftOut: readonly LeftOut[] }> {
  const permitted: Wanted[] = [];
  const leftOut: LeftOut[] = [];
  const refusals: string[] = [];
  for (const each of wanted) {
    const answer = await signer.ask({ name: each.name, csr: each.csr, dryRun: true });
    if (answer.ok) {
      await checkTrusted(each.name, answer.caPem, folders, host);
      permitted.push(each);
    } else if (answer.why === 'NotConfigured') leftOut.push({ name: each.name, why: answer.message });
    else if (answer.why === 'NotIncluded')
      leftOut.push({ name: each.name, why: '--include super-admin was not given' });
    else refusals.push(refusalText(each, answer));
  }
  if (refusals.length === 0) return { permitted, leftOut };
  throw new CommandFailure(
    exitCodes.refused,
    refusals.join('\n'),
    'nothing was signed or written (docs/ca/kubeadm.md has each reason)',
  );
}

export async function certify(wanted: readonly Wanted[], signer: KubeadmSigner, io: Io): Promise<readonly Certified[]> {
  const certified: Certified[] = [];
  for (const each of wanted) {
    const answer = await signer.ask({ name: each.name, csr: each.csr, dryRun: false });
    if (!answer.ok) {
      const code = answer.why === 'InProgress' ? exitCodes.temporary : exitCodes.refused;
      throw new CommandFailure(code, refusalText(each, answer), 'no file was changed; run the same command again');
    }
    checkAnswer(each, answer);
    io.err(`signed ${each.name} (CA ${answer.ca})\n`);
    certified.push({ wanted: each, certificate: answer.certificatePem, ca: answer.ca, caPem: answer.caPem });
  }
  return certified;
}

/** As a client of the control plane would: before the file of a key gets a certificate that does not fit. */
function checkAnswer({ name, key }: Wanted, { certificatePem, caPem }: Extract<Signed, { ok: true }>): void {
  const [certificate, ca] = [new X509Certificate(certificatePem), new X509Certificate(caPem)];
  const isIssued = certificate.checkIssued(ca) && certificate.verify(ca.publicKey);
  if (isIssued && certificate.checkPrivateKey(createPrivateKey(key))) return;
  throw new CommandFailure(
    exitCodes.configuration,
    `the answer for ${name} is no certificate of its CA for this key; nothing was written`,
  );
}

/** The control plane trusts what is in the CA's file. Another CA would lock it out. */
async function checkTrusted(name: KubeadmCertificate, caPem: string, folders: Folders, host: Host): Promise<void> {
  const { certificate: path } = caFilesOf(name, folders);
  const file = await host.read(path);
  if (file === undefined || isAmong(caPem, file.toString('latin1'))) return;
  throw new CommandFailure(
    exitCodes.conflict,
    `${path} does not hold the CA that signs ${name} (${new X509Certificate(caPem).subject.replaceAll('\n', ', ')})`,
    'this control plane would not trust its certificates; put the CA into the file first (docs/ca/rotation.md), or correct kubeadm.cas',
  );
}

function isAmong(caPem: string, bundle: string): boolean {
  const ca = new X509Certificate(caPem).fingerprint256;
  return pemBlocks(bundle, 'CERTIFICATE').some((pem) => new X509Certificate(pem).fingerprint256 === ca);
}

/** Writes the CA's certificate if kubeadm wrote no such file: a CA certificate without its key tells kubeadm that the CA is external. */
export async function writeCas(
  certified: readonly Certified[],
  folders: Folders,
  host: Host,
  owner: Attributes,
): Promise<readonly string[]> {
  const written: string[] = [];
  for (const { wanted, caPem } of certified) {
    const { certificate: path } = caFilesOf(wanted.name, folders);
    if ((await host.read(path)) !== undefined) continue;
    // kubeadm makes no folder for certificates where it was asked for kubeconfigs alone.
    await host.makeFolder(dirname(path), 0o755);
    await replaceFile(path, caPem, host, { ...owner, mode: 0o644 });
    written.push(path);
  }
  return written;
}

/** Into the files of these folders. `withKey`: the key goes there too. */
export async function writePair(
  { wanted, certificate }: Pick<Certified, 'wanted' | 'certificate'>,
  { folders, withKey }: { readonly folders: Folders; readonly withKey: boolean },
  host: Host,
  owner: Attributes,
): Promise<boolean> {
  const target = filesOf(wanted.name, folders);
  if (target.kind === 'kubeconfig') {
    const text = (await host.read(target.kubeconfig))?.toString('utf8') ?? '';
    const authority = (await host.read(caFilesOf(wanted.name, folders).certificate))?.toString('latin1') ?? '';
    const login = { certificate, authority, ...(withKey ? { key: wanted.key } : {}) };
    return replaceFile(target.kubeconfig, withLogin(target.kubeconfig, text, login), host, { ...owner, mode: 0o600 });
  }
  // Two files cannot change at once. A program that starts between the two sees a pair that does not fit, and the same command,
  // run again, completes it.
  const key = withKey && (await replaceFile(target.key, wanted.key, host, { ...owner, mode: 0o600 }));
  const changed = await replaceFile(target.certificate, certificate, host, { ...owner, mode: 0o644 });
  return key || changed;
}

function refusalText({ name }: Wanted, { why, message }: Extract<Signed, { ok: false }>): string {
  return `${name}: ${why}: ${message}`;
}
