/** Every attestation provider there is: a new one adds its line here. */
import type { ClusterAttestation } from '../configuration/model/attestation.ts';
import { awsProvider } from './aws/provider.ts';
import type { AwsPorts } from './aws/endpoints.ts';
import { insecureProvider } from './evidence/insecure.ts';
import type { AttestationProvider } from './evidence/provider.ts';

export interface ProviderPorts {
  /** Needed where the cluster configures `aws`. */
  readonly aws?: AwsPorts;
}

/** By name as on the wire. Which of them a signer takes is its profile's to say. */
export function createProviders(
  attestation: ClusterAttestation,
  ports: ProviderPorts,
): ReadonlyMap<string, AttestationProvider> {
  const providers = [insecureProvider];
  if (attestation.aws !== undefined) {
    // A provider that silently was not there would refuse every node for another reason than the true one.
    if (ports.aws === undefined) throw new Error('attestation.aws is configured, and there is no way to AWS');
    providers.push(awsProvider(attestation.aws, ports.aws));
  }
  return new Map(providers.map((provider) => [provider.name, provider]));
}
