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
  /** Present if a profile demands attestation; in the bundle of the kubeadm function alone. */
  readonly attestation?: ClusterAttestation;
  /** What operators may have signed for kubeadm's control plane; in the bundle of the kubeadm function alone. */
  readonly kubeadm?: KubeadmConfiguration;
}

/** The certificates of kubeadm's control plane. Names: DNS names in lower case, addresses in canonical form. */
export interface KubeadmConfiguration {
  /** The CA for each purpose. Certificates of an absent CA are not signed. */
  readonly cas: { readonly kubernetes?: string; readonly frontProxy?: string; readonly etcd?: string };
  /** Names and addresses of the API server, the same on all nodes. */
  readonly apiServerNames: readonly string[];
  /** The control-plane nodes, each with its addresses and further names. */
  readonly nodes: readonly (readonly [name: string, names: readonly string[]])[];
  readonly clusterDomain: string;
  readonly maxTtlSeconds: number;
}

/** A CA. `kind`: where its certificate comes from (docs/ca/sources.md). */
export type CaConfiguration = SelfSignedCa | ImportedCa | IssuedCa;

interface AnyCa {
  readonly name: string;
  readonly keySpec: KeySpec;
  readonly signatureAlgorithm: SignatureAlgorithm;
  readonly subject: {
    readonly commonName: string;
    readonly organization?: string;
    readonly organizationalUnit?: string;
    readonly country?: string;
  };
  /** How many CAs may stand between this one and a leaf. */
  readonly pathLen: number;
  /** The CA of the same cluster that this one follows: both are trusted while both are configured. No CA has two successors. */
  readonly replaces?: string;
  /** URL of its CRL, in each of its leaves. */
  readonly crlDistributionPoint?: string;
}

export interface SelfSignedCa extends AnyCa {
  readonly kind: 'selfSigned';
  readonly validitySeconds: number;
}

/** Another CA, outside of Countersign, made its certificate, or the certificate existed before. An operator imports it. */
export interface ImportedCa extends AnyCa {
  readonly kind: 'imported';
  /** `imported`: KMS has the key only after an operator imported it too. */
  readonly keyMaterial: 'kms' | 'imported';
}

export interface IssuedCa extends AnyCa {
  readonly kind: 'issued';
  /** The CA of the same cluster that signs its certificate. */
  readonly issuedBy: string;
  readonly validitySeconds: number;
}
