/**
 * `countersign kubeadm renew`: new keys and certificates for a control plane, under the same names.
 *
 *   <dir>/countersign-renewal/new     what `kubeadm certs generate-csr` wrote, then the certificates
 *                            /before  the files as they were, complete before the first one is replaced
 *
 * Each step is complete or absent, by a rename, so that the same command goes on where a killed one ended. At the end the folder
 * is renamed, and is the backup.
 */
import { dirname, join } from 'node:path';
import { kubeadmCertificates } from '../../core/kubeadm/certificates.ts';
import type { KubeadmCertificate } from '../../core/kubeadm/certificates.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { certify, checkAll, writePair } from './certify.ts';
import type { LeftOut } from './certify.ts';
import { generateRequests } from './generate.ts';
import type { GenerateFlags } from './generate.ts';
import { replaceFile } from './host.ts';
import type { Host } from './host.ts';
import { filesOf, podsToRestart } from './layout.ts';
import type { Folders } from './layout.ts';
import { readMaterial, readPair } from './material.ts';
import { printReport, reportLine } from './report.ts';
import { foldersOf, ownerOf, warnAboutCaKeys } from './sign.ts';
import type { SignFlags } from './sign.ts';
import { openSigner } from './signer.ts';

export type RenewFlags = SignFlags & GenerateFlags;

export async function renew(flags: RenewFlags, io: Io, host: Host): Promise<void> {
  const folders = foldersOf(flags);
  const work = join(folders.kubeconfigs, 'countersign-renewal');
  const fresh = join(work, 'new');
  const freshFolders: Folders = { kubeconfigs: fresh, pki: join(fresh, 'pki') };
  const { wanted, leftOut } = await presentCertificates(folders, flags, host);
  const signer = await openSigner(flags, io);
  try {
    // Step 1: new keys and requests, for the names of the present certificates.
    const isResumed = (await host.attributes(fresh)) !== undefined;
    if (isResumed) io.err(`going on with the renewal in ${work}\n`);
    else await generateRequests(wanted, { folders, work, fresh }, flags, host);
    // Now the requests are on the disk. After a crash from here on, the same command has the same ones signed.
    const material = (await readMaterial(freshFolders, host)).filter(({ name }) => wanted.includes(name));

    // Step 2: certificates, each beside its new key.
    const unsigned = material.filter(({ certificate }) => certificate === undefined);
    const checked = await checkAll(unsigned, folders, signer, host).catch(async (error: unknown) => {
      // No certificate was made of these requests: the next run has kubeadm make others, with a corrected configuration.
      if (unsigned.length === material.length) await host.remove(work);
      throw error;
    });
    const left = [...leftOut, ...checked.leftOut];
    const isNothing = checked.permitted.length === 0 && unsigned.length === material.length;
    if (flags.dryRun === true || isNothing) {
      if (!isResumed || isNothing) await host.remove(work);
      const certificates = checked.permitted.map(({ name }) => ({ name, done: 'permitted' as const }));
      printReport({ certificates, leftOut: left }, flags.output, io);
      return;
    }
    const owner = await ownerOf(folders, host);
    for (const each of await certify(checked.permitted, signer, io))
      await writePair(each, { folders: freshFolders, withKey: false }, host, owner);

    // Step 3: a copy of the files as they are, before the first one is replaced.
    const signed = (await readMaterial(freshFolders, host)).flatMap((each) =>
      wanted.includes(each.name) && each.certificate !== undefined
        ? [{ wanted: each, certificate: each.certificate }]
        : [],
    );
    await backUp(
      signed.map(({ wanted: { name } }) => name),
      { folders, work },
      host,
    );

    // Step 4: the new files in their places. A crash leaves old and new ones; the same command replaces the rest.
    for (const each of signed)
      if (await writePair(each, { folders, withKey: true }, host, owner)) io.err(`replaced ${each.wanted.name}\n`);

    // Step 5: nothing remains to be done. The folder is the backup from now on; the new keys are in their places.
    const backup = join(
      folders.kubeconfigs,
      `countersign-backup-${new Date(io.now()).toISOString().replaceAll(':', '-')}`,
    );
    await host.rename(work, backup);
    await host.sync(folders.kubeconfigs);
    await host.remove(join(backup, 'new'));

    await warnAboutCaKeys(material, folders, host, io);
    const certificates = signed.map((each) => reportLine(each, folders, 'written'));
    const restart = podsToRestart(signed.map(({ wanted: { name } }) => name));
    printReport({ certificates, leftOut: left, backup, restart }, flags.output, io);
  } finally {
    signer.close();
  }
}

/** The certificates that the control plane has. The kubelet renews its own. */
async function presentCertificates(
  folders: Folders,
  { include }: RenewFlags,
  host: Host,
): Promise<{ readonly wanted: readonly KubeadmCertificate[]; readonly leftOut: readonly LeftOut[] }> {
  const wanted: KubeadmCertificate[] = [];
  const leftOut: LeftOut[] = [];
  for (const name of kubeadmCertificates) {
    if (name === 'kubelet.conf') continue;
    const files = filesOf(name, folders);
    const { certificate } = await readPair(files, host);
    const isKubeconfig = files.kind === 'kubeconfig' && (await host.attributes(files.kubeconfig)) !== undefined;
    if (certificate === undefined && isKubeconfig) leftOut.push({ name, why: 'its certificate is not inside it' });
    else if (certificate !== undefined && name === 'super-admin.conf' && !include.includes('super-admin'))
      leftOut.push({ name, why: '--include super-admin was not given' });
    else if (certificate !== undefined) wanted.push(name);
  }
  if (wanted.length === 0)
    throw new CommandFailure(
      exitCodes.notFound,
      `there is no certificate of kubeadm in ${folders.kubeconfigs} and ${folders.pki}`,
      'countersign kubeadm sign makes the first certificates of a control plane',
    );
  return { wanted, leftOut };
}

/** Nothing, if there is a backup: some files may be new already. */
async function backUp(
  names: readonly KubeadmCertificate[],
  { folders, work }: { readonly folders: Folders; readonly work: string },
  host: Host,
): Promise<void> {
  const before = join(work, 'before');
  if ((await host.attributes(before)) !== undefined) return;
  const draft = `${before}.draft`;
  await host.remove(draft);
  const places: Folders = { kubeconfigs: draft, pki: join(draft, 'pki') };
  for (const name of names) {
    const [from, to] = [filesOf(name, folders), filesOf(name, places)];
    const pairs =
      from.kind === 'pki' && to.kind === 'pki'
        ? [[from.key, to.key] as const, [from.certificate, to.certificate] as const]
        : from.kind === 'kubeconfig' && to.kind === 'kubeconfig'
          ? [[from.kubeconfig, to.kubeconfig] as const]
          : [];
    for (const [source, copy] of pairs) {
      const [content, attributes] = [await host.read(source), await host.attributes(source)];
      if (content === undefined || attributes === undefined) continue;
      await host.makeFolder(dirname(copy), 0o700);
      await replaceFile(copy, content, host, attributes);
    }
  }
  await host.rename(draft, before);
  await host.sync(work);
}
