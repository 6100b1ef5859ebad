/** Who signs: the kubeadm function of a deployed cluster, or the files of a data folder. */
import { randomBytes } from 'node:crypto';
import { openEmbeddedAttestations } from '../../adapters/embedded/attestations.ts';
import { CaUnusableError, loadEmbeddedCa } from '../../adapters/embedded/authority.ts';
import { attestationsFileIn, ledgerFileIn } from '../../adapters/embedded/data.ts';
import { openEmbeddedLedger } from '../../adapters/embedded/ledger.ts';
import { caFault } from '../../core/ca/authority.ts';
import type { LoadedCa } from '../../core/ca/authority.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import { success } from '../../core/outcome/result.ts';
import type { KubeadmCertificate } from '../../core/kubeadm/certificates.ts';
import { notConfigured, signForKubeadm } from '../../core/sign-kubeadm.ts';
import { callServiceFunction } from '../aws/deployed-ca.ts';
import { chooseCluster } from '../cluster/cluster-choice.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

export interface SignerFlags {
  readonly cluster?: string;
  readonly function?: string;
  readonly region?: string;
  readonly data?: string;
  readonly config?: string;
  readonly include: readonly string[];
}

export interface Asked {
  readonly name: KubeadmCertificate;
  /** PEM. */
  readonly csr: string;
  /** All checks, and nothing is signed. */
  readonly dryRun: boolean;
}

/** `certificatePem`: empty after a dry run. */
export type Signed =
  | { readonly ok: true; readonly certificatePem: string; readonly ca: string; readonly caPem: string }
  | { readonly ok: false; readonly why: string; readonly message: string };

export interface KubeadmSigner {
  ask(asked: Asked): Promise<Signed>;
  close(): void;
}

export async function openSigner(flags: SignerFlags, io: Io): Promise<KubeadmSigner> {
  if (flags.data !== undefined) return openEmbedded(flags.data, flags, io);
  const cluster = flags.cluster ?? (io.environment['COUNTERSIGN_CLUSTER'] || undefined);
  if (cluster !== undefined) return openDeployed({ ...flags, cluster }, io);
  throw new CommandFailure(
    exitCodes.usage,
    'which cluster? --cluster names a deployed one; --data and --config a folder of this machine and its configuration',
  );
}

async function openDeployed(flags: SignerFlags & { readonly cluster: string }, io: Io): Promise<KubeadmSigner> {
  const account = await io.connectAccount(flags.region);
  // For the ledger. Before anything is signed, so that no certificate is without an author.
  const by = await account.callerArn().finally(() => account.close());
  return {
    async ask({ name, csr, dryRun }) {
      const { include } = flags;
      const request = { certificate: name, csr, include, dryRun, by };
      const answer = await callServiceFunction('kubeadm', request, flags, io).catch(explainMissing);
      const { ok, why, message, certificatePem = '', ca, caPem } = objectOf(answer['result']);
      if (answer['name'] !== name || typeof ok !== 'boolean')
        throw new CommandFailure(
          exitCodes.configuration,
          'the function does not answer like the kubeadm function of a cluster',
        );
      return ok
        ? { ok, certificatePem: String(certificatePem), ca: String(ca), caPem: String(caPem) }
        : { ok, why: String(why), message: String(message) };
    },
    close() {},
  };
}

function explainMissing(error: unknown): never {
  if (!(error instanceof CommandFailure) || error.code !== exitCodes.notFound) throw error;
  const advice =
    'the key kubeadm of countersign.yaml and npm run cdk -- deploy create it (docs/ca/kubeadm.md); --region and --function select another one';
  throw new CommandFailure(exitCodes.notFound, error.message, advice);
}

async function openEmbedded(folder: string, flags: SignerFlags, io: Io): Promise<KubeadmSigner> {
  if (flags.config === undefined)
    throw new CommandFailure(exitCodes.usage, '--data needs --config: the countersign.yaml that has the key kubeadm');
  const { cluster } = await chooseCluster(flags, io);
  const { kubeadm } = cluster;
  const { ledger, close: closeLedger } = openEmbeddedLedger(ledgerFileIn(folder));
  const { store: locks, close: closeLocks } = openEmbeddedAttestations(attestationsFileIn(folder));
  return {
    async ask({ name, csr, dryRun }) {
      if (kubeadm === undefined) return { ok: false, ...notConfigured(cluster.name) };
      const includeSuperAdmin = flags.include.includes('super-admin');
      const asked = { certificate: name, csr, dryRun, includeSuperAdmin, requester: io.userName() };
      const result = await signForKubeadm(
        asked,
        { ...cluster, kubeadm },
        { ledger, locks, loadCa: (ca) => loadFrom(folder, ca.name), now: () => io.now(), randomBytes },
      );
      return result.ok ? { certificatePem: '', ...result } : result;
    },
    close() {
      closeLedger();
      closeLocks();
    },
  };
}

async function loadFrom(folder: string, name: string): Promise<LoadedCa> {
  try {
    return success(await loadEmbeddedCa(folder, name));
  } catch (error) {
    if (!(error instanceof CaUnusableError)) throw error;
    return caFault(error.why === 'Damaged' ? 'CertificateMismatch' : error.why, error.message);
  }
}
