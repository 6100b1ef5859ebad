import type { ClusterAttestation } from './attestation.ts';
import type { KeySpec } from '../schema/cluster.ts';
import type { DeploymentConfiguration } from './deployment.ts';
import type { SignatureAlgorithm } from '../../ports/signer.ts';
import type { Profile } from '../../policy/profile.ts';

export interface Configuration {
  readonly clusters: ReadonlyMap<string, ClusterConfiguration>;
  /** How each cluster runs on AWS. */
  readonly deployments: ReadonlyMap<string, DeploymentConfiguration>;
}

/** What is signed for one cluster: defaults merged, every value filled in and checked. */
export interface ClusterConfiguration {
  readonly name: string;
  readonly cas: ReadonlyMap<string, CaConfiguration>;
  /** By signerName. */
  readonly profiles: ReadonlyMap<string, Profile>;
  /** By signerName, one for each profile. */
  readonly approval: ReadonlyMap<string, 'manual' | 'approve'>;
  /** Present if a profile demands attestation; absent in the bundle of the sign function. */
  readonly attestation?: ClusterAttestation;
}

export interface CaConfiguration {
  readonly name: string;
  readonly kind: 'selfSigned';
  readonly keySpec: KeySpec;
  readonly signatureAlgorithm: SignatureAlgorithm;
  readonly subject: {
    readonly commonName: string;
    readonly organization?: string;
    readonly organizationalUnit?: string;
    readonly country?: string;
  };
  readonly validitySeconds: number;
  readonly pathLen: number;
}
