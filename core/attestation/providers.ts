/** All attestation providers: a new one adds its line here. */
import type { ClusterAttestation } from '../configuration/model/attestation.ts';
import { awsProvider } from './aws/provider.ts';
import type { AwsPorts } from './aws/endpoints.ts';
import { insecureProvider } from './evidence/insecure.ts';
import type { AttestationProvider } from './evidence/provider.ts';

export interface ProviderPorts {
  /** Needed where the cluster configures `aws`. */
  readonly aws?: AwsPorts;
}

/** By name as on the wire. The profile of a signer says which of them it accepts. */
export function createProviders(
  attestation: ClusterAttestation,
  ports: ProviderPorts,
): ReadonlyMap<string, AttestationProvider> {
  const providers = [insecureProvider];
  if (attestation.aws !== undefined) {
    // A provider that is missing silently would refuse every node with a wrong reason.
    if (ports.aws === undefined)
      throw new Error('attestation.aws is configured, but the connections to AWS are missing');
    providers.push(awsProvider(attestation.aws, ports.aws));
  }
  return new Map(providers.map((provider) => [provider.name, provider]));
}
