/**
 * The kubeadm function, for operators: one certificate of kubeadm's control plane. The CSR and the name of its certificate come from the
 * operator's machine; the private key stays there. The same call again gives the same certificate (core/sign-kubeadm.ts).
 *
 * It is a function of its own, because `lambda:InvokeFunction` on it is enough to become administrator of the cluster. Operators who
 * import, rotate and revoke have that right on the ca function only.
 */
import { loggedCall } from '../../adapters/lambda/operator-call.ts';
import type { OperatorLogEntry } from '../../adapters/lambda/operator-call.ts';
import type { LambdaContext } from '../../adapters/lambda/http.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import { isKubeadmCertificate } from '../../core/kubeadm/certificates.ts';
import type { KubeadmCertificate } from '../../core/kubeadm/certificates.ts';
import { signForKubeadm } from '../../core/sign-kubeadm.ts';
import type { KubeadmCluster, KubeadmPorts, KubeadmRequest, KubeadmResult } from '../../core/sign-kubeadm.ts';

export interface KubeadmSite {
  readonly cluster: KubeadmCluster;
  readonly ports: KubeadmPorts;
}

export interface KubeadmHandlerPorts {
  /** Throws if the environment does not match the bundled configuration. */
  readonly connect: () => KubeadmSite;
  readonly log: (entry: OperatorLogEntry) => void;
}

export interface KubeadmAnswer {
  /** `--function` may name the function of another cluster. */
  readonly cluster: string;
  readonly name: KubeadmCertificate;
  readonly result: KubeadmResult;
}

export type KubeadmHandler = (event: unknown, context?: LambdaContext) => Promise<KubeadmAnswer>;

/** The handler throws for temporary failures, and for an event that `countersign kubeadm` does not send. */
export function createKubeadmHandler({ connect, log }: KubeadmHandlerPorts): KubeadmHandler {
  return async (event, context) => {
    const request = decodeEvent(event);
    if (request === undefined) throw new TypeError('the event is not one of countersign kubeadm');
    return loggedCall('kubeadm', log, async () => {
      const { cluster, ports } = connect();
      const result = await signForKubeadm(request, cluster, { ...ports, lambdaRequestId: context?.awsRequestId });
      const name = request.certificate;
      // A refusal is the operator's to act on, who has it.
      const report = { [result.ok ? result.ca : '-']: `${name}: ${result.ok ? stateOf(result) : result.why}` };
      return { answer: { cluster: cluster.name, name, result }, log: { failed: false, cas: report } };
    });
  };
}

const longestRequester = 512;

/** `undefined` for other fields or types. */
function decodeEvent(event: unknown): KubeadmRequest | undefined {
  const { certificate, csr, include = [], dryRun = false, by, ...others } = objectOf(event);
  if (!isKubeadmCertificate(certificate) || typeof csr !== 'string' || typeof dryRun !== 'boolean') return undefined;
  if (typeof by !== 'string' || by.length > longestRequester || Object.keys(others).length > 0) return undefined;
  if (!Array.isArray(include) || !include.every((each) => each === 'super-admin')) return undefined;
  return { certificate, csr, includeSuperAdmin: include.length > 0, dryRun, requester: by };
}

function stateOf({ certificatePem }: KubeadmResult & { readonly ok: true }): string {
  return certificatePem === undefined ? 'permitted' : 'signed';
}
