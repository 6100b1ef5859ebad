/** Has kubeadm make new keys and requests, and compares their names with the certificates that they replace. */
import { dirname, join } from 'node:path';
import type { KubeadmCertificate } from '../../core/kubeadm/certificates.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Host } from './host.ts';
import { filesOf } from './layout.ts';
import type { Folders } from './layout.ts';
import { namesOfCertificate, readMaterial, readPair } from './material.ts';

export interface GenerateFlags {
  /** The program. */
  readonly kubeadm: string;
  /** kubeadm's own configuration. */
  readonly kubeadmConfig?: string;
  readonly allowChangedNames?: true;
}

/** Afterwards the folder `fresh` is there, complete. */
export async function generateRequests(
  wanted: readonly KubeadmCertificate[],
  { folders, work, fresh }: { readonly folders: Folders; readonly work: string; readonly fresh: string },
  flags: GenerateFlags,
  host: Host,
): Promise<void> {
  const draft = join(work, 'new.draft');
  // Keys of a killed run, which nothing certified.
  await host.remove(draft);
  await host.makeFolder(draft, 0o700);
  const drafts: Folders = { kubeconfigs: draft, pki: join(draft, 'pki') };
  try {
    await runKubeadm(drafts, flags, host);
    const material = await readMaterial(drafts, host);
    const missing = wanted.filter((name) => !material.some((each) => each.name === name));
    if (missing.length > 0)
      throw new CommandFailure(exitCodes.configuration, `${flags.kubeadm} wrote no request for ${missing.join(', ')}`);
    const changes: string[] = [];
    for (const { name, names } of material.filter((each) => wanted.includes(each.name)))
      changes.push(...(await changedNames(name, names, folders, host)));
    if (changes.length > 0 && flags.allowChangedNames !== true)
      throw new CommandFailure(
        exitCodes.refused,
        `the new certificates would have other names:\n${changes.join('\n')}`,
        'nothing was changed; --kubeadm-config gives kubeadm the configuration of this node, --allow-changed-names accepts the names',
      );
    for (const { files } of material)
      for (const path of files.kind === 'pki' ? [files.key, files.csr] : [files.kubeconfig, files.csr]) {
        await host.sync(path);
        await host.sync(dirname(path));
      }
  } catch (error) {
    await host.remove(work).catch(() => undefined);
    throw error;
  }
  await host.rename(draft, fresh);
  await host.sync(work);
  await host.sync(dirname(work));
}

async function runKubeadm({ kubeconfigs, pki }: Folders, { kubeadm, kubeadmConfig }: GenerateFlags, host: Host) {
  const config = kubeadmConfig === undefined ? [] : ['--config', kubeadmConfig];
  const args = ['certs', 'generate-csr', '--kubeconfig-dir', kubeconfigs, '--cert-dir', pki, ...config];
  const done = await host.run(kubeadm, args);
  if (done === undefined)
    throw new CommandFailure(exitCodes.configuration, `there is no program ${kubeadm}`, '--kubeadm names it');
  if (done.code !== 0)
    throw new CommandFailure(
      exitCodes.configuration,
      `${[kubeadm, ...args].join(' ')} failed (${done.code}):\n${done.output.trim().slice(-2_000)}`,
      'nothing was changed',
    );
}

async function changedNames(
  name: KubeadmCertificate,
  names: readonly string[],
  folders: Folders,
  host: Host,
): Promise<readonly string[]> {
  const files = filesOf(name, folders);
  const { certificate = '' } = await readPair(files, host);
  const present = namesOfCertificate(certificate, files.kind === 'pki' ? files.certificate : files.kubeconfig);
  return [
    ...present.filter((each) => !names.includes(each)).map((each) => `  ${name} would lose ${each}`),
    ...names.filter((each) => !present.includes(each)).map((each) => `  ${name} would gain ${each}`),
  ];
}
