/** Which signers the InfraCluster names: those of the profiles with attestation, the first of each kind in countersign.yaml. */
import type { Profile } from '../../../core/policy/profile.ts';
import type { NamedSigners } from './infra-cluster.ts';

/**
 * A secure signer comes before an insecure one, which has no serving signer (proposal, Insecure providers). Undefined without a signer for
 * the client certificates of attested nodes.
 */
export function namedSigners(profiles: readonly Profile[]): NamedSigners | undefined {
  const attested = (kind: Profile['kind']) =>
    profiles.filter((profile) => profile.kind === kind && profile.attestation !== undefined);
  const clients = attested('kube-apiserver-client-kubelet');
  const secure = clients.find((profile) => !isInsecure(profile));
  const client = secure ?? clients[0];
  if (client === undefined) return undefined;
  const serving = secure === undefined ? undefined : attested('kubelet-serving')[0];
  return { client: client.signerName, ...(serving === undefined ? {} : { serving: serving.signerName }) };
}

function isInsecure({ attestation }: Profile): boolean {
  return attestation?.providers.includes('insecure') === true;
}
