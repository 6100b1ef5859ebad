/** The flags of `kubelet-authenticator join` that say how the machine proves itself: only those with which attest can admit it. */
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { Profile } from '../../core/policy/profile.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';

export interface EvidenceFlags {
  readonly provider?: string;
  readonly attestationCertificate?: string;
  readonly attestationKey?: string;
}

/** Its nodes run another program, with credentials of their own. */
const withoutJoin = 'gce-vtpm';

/** `cluster`: absent if no countersign.yaml was read. Throws CommandFailure if the machine could not join with these flags. */
export function evidenceFlags(flags: EvidenceFlags, cluster: ClusterConfiguration | undefined): readonly string[] {
  const { attestationCertificate, attestationKey } = flags;
  const profiles = [...(cluster?.profiles.values() ?? [])].filter(
    ({ kind, attestation }) => kind === 'kube-apiserver-client-kubelet' && attestation !== undefined,
  );
  const provider =
    cluster === undefined ? (flags.provider ?? 'aws') : providerFor(cluster.name, flags.provider, profiles);
  if (provider === withoutJoin)
    throw usage(
      `no join command can be printed for provider ${provider}: its nodes run gke-exec-auth-plugin`,
      '-o token creates a token without a command',
    );
  const files = [attestationCertificate, attestationKey];
  if (provider !== 'x509' && files.some((file) => file !== undefined))
    throw usage('--attestation-certificate and --attestation-key are for provider x509');
  // The command is pasted into a shell.
  if (provider === 'x509' && !files.every((file) => file !== undefined && /^\/[\w./@%+-]+$/.test(file)))
    throw usage(
      '--provider x509 needs --attestation-certificate and --attestation-key: absolute paths on the machine, without blanks',
    );
  return [
    `--provider ${provider}`,
    ...(provider === 'x509'
      ? [`--attestation-certificate ${attestationCertificate}`, `--attestation-key ${attestationKey}`]
      : []),
    ...signerFlag(provider, profiles),
  ];
}

function providerFor(cluster: string, wanted: string | undefined, profiles: readonly Profile[]): string {
  const accepted = [...new Set(profiles.flatMap(({ attestation }) => attestation?.providers ?? []))];
  if (wanted === undefined) {
    const [only, ...others] = accepted.filter((provider) => provider !== withoutJoin);
    if (others.length > 0)
      throw usage(
        `cluster ${cluster} takes evidence of ${accepted.join(', ')}`,
        '--provider names that of the machine',
      );
    return only ?? withoutJoin;
  }
  if (!accepted.includes(wanted))
    throw usage(`cluster ${cluster} takes no evidence of ${wanted}`, `--provider is one of ${accepted.join(', ')}`);
  return wanted;
}

/** By default join asks the signer of the provider, which the cluster need not have. */
function signerFlag(provider: string, profiles: readonly Profile[]): readonly string[] {
  const signers = profiles.filter(({ attestation }) => attestation?.providers.includes(provider) === true);
  const usual = `cluster.x-k8s.io/kube-apiserver-client-kubelet-${provider}`;
  const [signer] = signers;
  if (signer === undefined || signers.some(({ signerName }) => signerName === usual)) return [];
  return [`--signer-name ${signer.signerName}`];
}

function usage(message: string, remedy?: string): CommandFailure {
  return new CommandFailure(exitCodes.usage, message, remedy);
}
