/** All attestation providers. A new provider is added here. */
import type { ClusterAttestation } from '../configuration/model/attestation.ts';
import type { GoogleFederation } from '../configuration/providers/google-keys.ts';
import { awsProvider } from './aws/provider.ts';
import type { AwsPorts } from './aws/endpoints.ts';
import type { ComputeEndpoint } from './google/compute.ts';
import { gceFacts } from './gce/evidence.ts';
import type { GcePorts } from './gce/provider.ts';
import { awsNitroTpmFacts } from './aws-nitrotpm/evidence.ts';
import { gceVtpmProvider } from './gce-vtpm/provider.ts';
import { insecureProvider } from './evidence/insecure.ts';
import { lazyProvider } from './evidence/lazy-provider.ts';
import type { AttestationProvider } from './evidence/provider.ts';
import { tpmFacts } from './tpm/evidence.ts';
import type { TpmPorts } from './tpm/ports.ts';
import { x509Facts } from './x509/evidence.ts';

export interface ProviderPorts {
  /** Required if the cluster configures `aws`. */
  readonly aws?: AwsPorts;
  /** Required if the cluster takes evidence of `tpm` or `aws-nitrotpm`. */
  readonly tpm?: TpmPorts;
  /** Required if the cluster configures `gce`. */
  readonly googleKeySet?: GcePorts['keySet'];
  /** Required if the cluster configures `gce`, or `gce-vtpm` with a federation. */
  readonly compute?: (federation: GoogleFederation) => ComputeEndpoint;
}

/** Whether a provider of this cluster sends challenges, for which attest needs the challenge key. */
export function needsChallengeKey({ tpm, awsNitroTpm }: ClusterAttestation): boolean {
  return tpm !== undefined || awsNitroTpm === true;
}

/** By their names in evidence. The profile of a signer lists the providers that it accepts. */
export function createProviders(
  attestation: ClusterAttestation,
  ports: ProviderPorts,
): ReadonlyMap<string, AttestationProvider> {
  const providers: AttestationProvider[] = [insecureProvider];
  const { audience, aws, tpm: policy } = attestation;
  const { aws: awsPorts, tpm: tpmPorts } = ports;
  if (aws !== undefined) {
    // Without this error every node would be refused, with a misleading reason.
    if (awsPorts === undefined)
      throw new Error('attestation.aws is configured, but the connections to AWS are missing');
    providers.push(awsProvider(aws, awsPorts));
    if (attestation.awsNitroTpm === true) {
      const { endorsementKeys } = awsPorts;
      if (endorsementKeys === undefined || tpmPorts === undefined)
        throw new Error('aws-nitrotpm is configured, but the challenge key or the connection to EC2 is missing');
      const all = { ...awsPorts, ...tpmPorts, endorsementKeys };
      const load = async () => (await import('./aws-nitrotpm/provider.ts')).awsNitroTpmProvider(aws, audience, all);
      providers.push(lazyProvider(awsNitroTpmFacts, load));
    }
  }
  if (policy !== undefined) {
    if (tpmPorts === undefined) throw new Error('attestation.tpm is configured, but the challenge key is missing');
    const load = async () => (await import('./tpm/provider.ts')).tpmProvider(policy, audience, tpmPorts);
    providers.push(lazyProvider(tpmFacts, load));
  }
  const { x509 } = attestation;
  if (x509 !== undefined)
    providers.push(lazyProvider(x509Facts, async () => (await import('./x509/provider.ts')).x509Provider(x509)));
  const { gce } = attestation;
  if (gce !== undefined) {
    const { googleKeySet: keySet } = ports;
    const compute = ports.compute?.(gce.federation);
    if (compute === undefined || keySet === undefined)
      throw new Error('attestation.gce is configured, but the connections to Google are missing');
    const load = async () => (await import('./gce/provider.ts')).gceProvider(gce, { compute, keySet });
    providers.push(lazyProvider(gceFacts, load));
  }
  const gceVtpm = attestation['gce-vtpm'];
  if (gceVtpm !== undefined) {
    const { federation } = gceVtpm;
    if (federation !== undefined && ports.compute === undefined)
      throw new Error('attestation.gce-vtpm names a federation, but the connection to Google is missing');
    providers.push(gceVtpmProvider(gceVtpm, federation === undefined ? undefined : ports.compute?.(federation)));
  }
  return new Map(providers.map((provider) => [provider.name, provider]));
}
