/** All attestation providers. A new provider is added here. */
import type { ClusterAttestation } from '../configuration/model/attestation.ts';
import { awsProvider } from './aws/provider.ts';
import type { AwsPorts } from './aws/endpoints.ts';
import { insecureProvider } from './evidence/insecure.ts';
import type { AttestationProvider } from './evidence/provider.ts';

export interface ProviderPorts {
  /** Required if the cluster configures `aws`. */
  readonly aws?: AwsPorts;
}

/** By their names in evidence. The profile of a signer lists the providers that it accepts. */
export function createProviders(
  attestation: ClusterAttestation,
  ports: ProviderPorts,
): ReadonlyMap<string, AttestationProvider> {
  const providers = [insecureProvider];
  if (attestation.aws !== undefined) {
    // Without this error every node would be refused, with a misleading reason.
    if (ports.aws === undefined)
      throw new Error('attestation.aws is configured, but the connections to AWS are missing');
    providers.push(awsProvider(attestation.aws, ports.aws));
  }
  return new Map(providers.map((provider) => [provider.name, provider]));
}
