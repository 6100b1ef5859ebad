/**
 * One certificate of kubeadm's control plane. The CSR and the name of its certificate come from the operator's machine; the private key
 * stays there. The same call again gives the same certificate (core/sign-kubeadm.ts).
 */
import { loadAuthority } from '../../../core/ca/authority.ts';
import { isKubeadmCertificate } from '../../../core/kubeadm/certificates.ts';
import type { KubeadmCertificate } from '../../../core/kubeadm/certificates.ts';
import { notConfigured, signForKubeadm } from '../../../core/sign-kubeadm.ts';
import type { KubeadmRequest, KubeadmResult } from '../../../core/sign-kubeadm.ts';
import type { CaAction } from './action.ts';

export interface KubeadmAnswer {
  readonly cluster: string;
  readonly name: KubeadmCertificate;
  readonly result: KubeadmResult;
}

const longestRequester = 512;

export const kubeadm: CaAction<KubeadmRequest, KubeadmAnswer> = {
  decode({ certificate, csr, include = [], dryRun = false, by, ...others }) {
    if (!isKubeadmCertificate(certificate) || typeof csr !== 'string' || typeof dryRun !== 'boolean') return undefined;
    if (typeof by !== 'string' || by.length > longestRequester || Object.keys(others).length > 0) return undefined;
    if (!Array.isArray(include) || !include.every((each) => each === 'super-admin')) return undefined;
    return { certificate, csr, includeSuperAdmin: include.length > 0, dryRun, requester: by };
  },
  async run(request, { cluster, cas, kubeadm: operators, key, store, origin, lambdaRequestId }) {
    const answer = (result: KubeadmResult): KubeadmAnswer => ({ cluster, name: request.certificate, result });
    if (operators === undefined) return answer({ ok: false, ...notConfigured(cluster) });
    const { settings, ledger, locks } = operators;
    const result = await signForKubeadm(
      request,
      { name: cluster, cas, kubeadm: settings },
      {
        ledger,
        locks,
        loadCa: (ca) => loadAuthority(ca, key(ca.name), store),
        now: () => origin().now,
        randomBytes: (count) => origin().randomBytes(count),
        lambdaRequestId,
      },
    );
    return answer(result);
  },
  // A refusal is the operator's to act on, who has it.
  logged: ({ name, result }) => ({
    failed: false,
    cas: { [result.ok ? result.ca : '-']: `${name}: ${result.ok ? stateOf(result) : result.why}` },
  }),
};

function stateOf({ certificatePem }: KubeadmResult & { readonly ok: true }): string {
  return certificatePem === undefined ? 'permitted' : 'signed';
}
