/** A control-plane machine in a folder, with CAs in a data folder beside it, and a stand-in of kubeadm that makes keys and requests. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { createEmbeddedCa } from '../../../../adapters/embedded/authority.ts';
import { thisHost } from '../../../../cli/kubeadm/host.ts';
import type { Host } from '../../../../cli/kubeadm/host.ts';
import { filesOf } from '../../../../cli/kubeadm/layout.ts';
import type { Folders } from '../../../../cli/kubeadm/layout.ts';
import type { RenewFlags } from '../../../../cli/kubeadm/renew.ts';
import { processIo } from '../../../../cli/world.ts';
import type { Io } from '../../../../cli/runtime/io.ts';
import type { KubeadmCertificate } from '../../../../core/kubeadm/certificates.ts';
import { makeRequest, newKey } from '../../../harness/x509/requests.ts';
import type { RequestSpec } from '../../../harness/x509/requests.ts';
import { kubeadmCluster, kubeadmFile, kubeadmRequests } from '../../core/kubeadm/requests.ts';
import { now } from '../run.ts';

export interface Machine {
  readonly root: string;
  /** What is /etc/kubernetes elsewhere. */
  readonly dir: string;
  readonly folders: Folders;
  readonly data: string;
  readonly config: string;
  readonly flags: RenewFlags;
}

export async function machine(keys?: string): Promise<Machine> {
  const root = mkdtempSync(join(tmpdir(), 'countersign-kubeadm-'));
  const [dir, data, config] = [join(root, 'kubernetes'), join(root, 'data'), join(root, 'countersign.yaml')];
  mkdirSync(dir);
  writeFileSync(config, kubeadmFile(keys));
  for (const ca of kubeadmCluster(keys).cas.values()) await createEmbeddedCa(data, ca, { now, randomBytes });
  const flags: RenewFlags = { dir, data, config, kubeadm: 'kubeadm', include: [], output: 'json' };
  return { root, dir, folders: { kubeconfigs: dir, pki: join(dir, 'pki') }, data, config, flags };
}

/** As `kubeadm certs generate-csr` does: a key and a request for each, the key of a login in its kubeconfig. */
export function generate(
  folders: Folders,
  names: readonly KubeadmCertificate[],
  change: (name: KubeadmCertificate, spec: RequestSpec) => RequestSpec = (_, spec) => spec,
): void {
  for (const name of names) {
    const files = filesOf(name, folders);
    const { pem, keyPem } = makeRequest({ ...change(name, kubeadmRequests[name]), key: newKey('P-256') });
    mkdirSync(dirname(files.csr), { recursive: true });
    writeFileSync(files.csr, pem, { mode: 0o600 });
    if (files.kind === 'pki') writeFileSync(files.key, keyPem, { mode: 0o600 });
    else writeFileSync(files.kubeconfig, kubeconfig(keyPem), { mode: 0o600 });
  }
}

function kubeconfig(keyPem: string): string {
  return stringify({
    apiVersion: 'v1',
    clusters: [{ cluster: { server: 'https://k8s.example.com:6443' }, name: 'kubernetes' }],
    contexts: [{ context: { cluster: 'kubernetes', user: 'login' }, name: 'login@kubernetes' }],
    'current-context': 'login@kubernetes',
    kind: 'Config',
    users: [{ name: 'login', user: { 'client-key-data': Buffer.from(keyPem).toString('base64') } }],
  });
}

/** This machine, with the stand-in instead of kubeadm. `calls`: its arguments. */
export function hostWith(
  names: readonly KubeadmCertificate[],
  change?: Parameters<typeof generate>[2],
): Host & { readonly calls: (readonly string[])[] } {
  const calls: (readonly string[])[] = [];
  return {
    ...thisHost,
    calls,
    async run(_, args) {
      calls.push(args);
      const [, , , kubeconfigs = '', , pki = ''] = args;
      generate({ kubeconfigs, pki }, names, change);
      return { code: 0, output: '' };
    },
  };
}

export function quietIo(): Io & { readonly printed: { out: string; err: string } } {
  const printed = { out: '', err: '' };
  return {
    ...processIo(),
    now: () => now,
    environment: {},
    printed,
    out: (text) => void (printed.out += text),
    err: (text) => void (printed.err += text),
  };
}

export const read = (path: string): string => readFileSync(path, 'utf8');
