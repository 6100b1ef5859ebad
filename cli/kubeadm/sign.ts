/** `countersign kubeadm sign`: certificates for the requests that `kubeadm certs generate-csr` wrote. */
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { certify, checkAll, writeCas, writePair } from './certify.ts';
import type { Host } from './host.ts';
import { caFilesOf } from './layout.ts';
import type { Folders } from './layout.ts';
import { readMaterial } from './material.ts';
import { reportLine, printReport } from './report.ts';
import type { ReportLine } from './report.ts';
import { openSigner } from './signer.ts';
import type { SignerFlags } from './signer.ts';

export interface SignFlags extends SignerFlags {
  readonly dir: string;
  readonly certDir?: string;
  readonly dryRun?: true;
  readonly output: string;
}

export async function sign(flags: SignFlags, io: Io, host: Host): Promise<void> {
  const folders = foldersOf(flags);
  const material = await readMaterial(folders, host);
  if (material.length === 0)
    throw new CommandFailure(
      exitCodes.notFound,
      `there is no request of kubeadm in ${folders.kubeconfigs} and ${folders.pki}`,
      `kubeadm certs generate-csr --kubeconfig-dir ${folders.kubeconfigs} --cert-dir ${folders.pki} --config <file> writes them`,
    );
  const signer = await openSigner(flags, io);
  try {
    const { permitted, leftOut } = await checkAll(material, folders, signer, host);
    const lines: ReportLine[] = [];
    if (flags.dryRun === true) for (const each of permitted) lines.push({ name: each.name, done: 'permitted' });
    else {
      const certified = await certify(permitted, signer, io);
      // Now the certificates are recorded. After a crash from here on, the same command gets the same ones.
      const owner = await ownerOf(folders, host);
      for (const path of await writeCas(certified, folders, host, owner)) io.err(`wrote ${path}\n`);
      for (const each of certified) {
        const changed = await writePair(each, { folders, withKey: false }, host, owner);
        lines.push(reportLine(each, folders, changed ? 'written' : 'unchanged'));
      }
      await warnAboutCaKeys(permitted, folders, host, io);
    }
    printReport({ certificates: lines, leftOut }, flags.output, io);
  } finally {
    signer.close();
  }
}

export function foldersOf({ dir, certDir }: Pick<SignFlags, 'dir' | 'certDir'>): Folders {
  return { kubeconfigs: dir, pki: certDir ?? `${dir.replace(/\/+$/, '')}/pki` };
}

/** Of new files: that of the folder. */
export async function ownerOf(
  { kubeconfigs }: Folders,
  host: Host,
): Promise<{ mode: number; uid: number; gid: number }> {
  return (await host.attributes(kubeconfigs)) ?? { mode: 0o700, uid: 0, gid: 0 };
}

export async function warnAboutCaKeys(
  wanted: readonly { readonly name: Parameters<typeof caFilesOf>[0] }[],
  folders: Folders,
  host: Host,
  io: Io,
): Promise<void> {
  const keys = new Set(wanted.map(({ name }) => caFilesOf(name, folders).key));
  for (const key of keys)
    if ((await host.attributes(key)) !== undefined)
      io.err(
        `warning: ${key} is on this machine, so kubeadm itself signs and renews with it (docs/ca/sources.md moves it into KMS)\n`,
      );
}
