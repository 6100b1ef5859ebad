// Written by `npm run api` from the schema of countersign.yaml. Do not edit.
import type { ClusterAttestation } from './attestation-props.ts';
import type {
  ClusterAccess,
  ClusterAlarms,
  ClusterKeys,
  ClusterLimits,
  ClusterLogs,
  ClusterPlace,
} from './deployment-props.ts';
import type { ProfileProps } from './profile-props.ts';

/** A cluster: what is signed, who may call, and how it runs on AWS. The keys of countersign.yaml. */
export interface ClusterProps {
  /**
   * Name of the cluster, a DNS label of at most 40 characters. It is part of the URL and of the names of functions
   * and of the caller role.
   */
  readonly name: string;

  /**
   * The CAs of the cluster, by name. At least one.
   */
  readonly cas: Readonly<Record<string, CaProps>>;

  /**
   * What each signer permits, by signerName. At least one.
   */
  readonly profiles: Readonly<Record<string, ProfileProps>>;

  /**
   * Who approves requests, by signerName. `manual`: another approver, for example kubectl certificate approve.
   * `approve`: the relay, and it denies what the rules refuse; for signers other than the kubelets’ only if
   * `requester` lists users or groups and, where certificates are logins, `subject` limits names.
   *
   * @default - manual
   */
  readonly approval?: Readonly<Record<string, 'manual' | 'approve'>>;

  /**
   * Whether `approval: approve` is permitted for kubelet serving signers that enforce no proof of the machine. Each
   * node then gets certificates for the names and addresses of all others.
   *
   * @default - false
   */
  readonly approveServingWithoutProof?: boolean;

  /**
   * Names that no signer but the kubelet signers gives as common name or organization, unless
   * `subject.allowReserved` lists them exactly, and DNS names that no node may serve under. `*` = any run of
   * characters; case is ignored. Added to the names that are always reserved.
   *
   * @default - none
   */
  readonly reservedNames?: readonly string[];

  /**
   * Addresses no node may serve under: the service range, the control-plane endpoint. CIDR blocks.
   *
   * @default - none
   */
  readonly reservedAddresses?: readonly string[];

  /**
   * DNS domain of the cluster (`--cluster-domain` of the kubelet). No node may serve under a name in it.
   *
   * @default - cluster.local
   */
  readonly clusterDomain?: string;

  /**
   * Which machines may join, where profiles demand a proof.
   *
   * @default - none
   */
  readonly attestation?: ClusterAttestation;

  /**
   * The certificates of kubeadm’s control plane that operators may have signed (`countersign kubeadm`). See
   * docs/ca/kubeadm.md.
   *
   * @default - none
   */
  readonly kubeadm?: KubeadmProps;

  /**
   * How the sign function is reached: by an API Gateway HTTP API, or by a Lambda function URL.
   *
   * @default - httpApi
   */
  readonly frontDoor?: 'httpApi' | 'functionUrl';

  /**
   * Who may call. Deployed clusters need at least one authentication method.
   */
  readonly access: ClusterAccess;

  /**
   * How much the cluster may use.
   *
   * @default - the defaults of its properties
   */
  readonly limits?: ClusterLimits;

  /**
   * When alarms are raised, and where they are sent.
   *
   * @default - the defaults of its properties
   */
  readonly alarms?: ClusterAlarms;

  /**
   * Whether the stack has a CloudWatch dashboard. An account has three for nothing; a further one costs more than
   * the rest of an idle cluster.
   *
   * @default - false
   */
  readonly dashboard?: boolean;

  /**
   * Who administers the CA keys. None of these principals can sign with them.
   *
   * @default - the defaults of its properties
   */
  readonly keys?: ClusterKeys;

  /**
   * Logs of functions and endpoint.
   *
   * @default - the defaults of its properties
   */
  readonly logs?: ClusterLogs;

  /**
   * Where the stacks are.
   *
   * @default - the defaults of its properties
   */
  readonly aws?: ClusterPlace;
}

/** A CA. */
export interface CaProps {
  /**
   * Where the CA certificate comes from. `imported`: from another CA, or from before; an operator imports it.
   * `issued`: from the CA that `issuedBy` names. See docs/ca/sources.md.
   *
   * @default - selfSigned
   */
  readonly kind?: 'selfSigned' | 'imported' | 'issued';

  /**
   * The CA of this cluster that signs the CA certificate. Kind `issued` only, and required there.
   *
   * @default - none
   */
  readonly issuedBy?: string;

  /**
   * The CA of this cluster that this one follows in a rotation. Verifiers are given both, until the old one is
   * removed from the file. See docs/ca/trust.md.
   *
   * @default - none
   */
  readonly replaces?: string;

  /**
   * Where the CA key comes from. `kms`: KMS makes it. `imported`: an operator imports an existing key, which
   * `keys.importers` may do. Kind `imported` only.
   *
   * @default - kms
   */
  readonly keyMaterial?: 'kms' | 'imported';

  /**
   * Kind of the CA key. Every Kubernetes client verifies P-256.
   *
   * @default - P-256
   */
  readonly keySpec?: 'P-256' | 'P-384' | 'P-521' | 'RSA-2048' | 'RSA-3072' | 'RSA-4096';

  /**
   * What the CA key signs with.
   *
   * @default - the one that fits the key (SHA-256 for RSA, PKCS #1)
   */
  readonly signatureAlgorithm?:
    | 'ECDSA_SHA_256'
    | 'ECDSA_SHA_384'
    | 'ECDSA_SHA_512'
    | 'RSASSA_PKCS1_V1_5_SHA_256'
    | 'RSASSA_PKCS1_V1_5_SHA_384'
    | 'RSASSA_PKCS1_V1_5_SHA_512'
    | 'RSASSA_PSS_SHA_256'
    | 'RSASSA_PSS_SHA_384'
    | 'RSASSA_PSS_SHA_512';

  /**
   * Name of the CA.
   */
  readonly subject: CaSubject;

  /**
   * Lifetime of the CA certificate. Not for kind `imported`.
   *
   * @default - 3650d
   */
  readonly validity?: string;

  /**
   * How many CAs may stand between this one and a leaf.
   *
   * @default - 0
   */
  readonly pathLen?: number;

  /**
   * URL of the CRL, written into each certificate of this CA. See docs/ca/revocation.md.
   *
   * @default - certificates name none
   */
  readonly crlDistributionPoint?: string;

  /**
   * Whether KMS makes a multi-Region key, of which another Region may have a replica. A key is made this way or the
   * other, for ever.
   *
   * @default - false
   */
  readonly multiRegion?: boolean;

  /**
   * The multi-Region key of another Region of which the key of this CA is a replica.
   *
   * @default - a key of its own
   */
  readonly replicaOf?: string;
}

/** The name of a CA. */
export interface CaSubject {
  /**
   * Common name of the CA, the issuer name of every certificate.
   */
  readonly commonName: string;

  /**
   * Organization of the CA.
   *
   * @default - none
   */
  readonly organization?: string;

  /**
   * Organizational unit of the CA.
   *
   * @default - none
   */
  readonly organizationalUnit?: string;

  /**
   * Country of the CA.
   *
   * @default - none
   */
  readonly country?: string;
}

/** The certificates of kubeadm’s control plane that operators may have signed. */
export interface KubeadmProps {
  /**
   * The CAs by what they sign, each a name under `cas`. A certificate whose CA is left out is not signed.
   */
  readonly cas: KubeadmCas;

  /**
   * Names and addresses of the API server that are the same on all nodes: the first address of the service range,
   * the control-plane endpoint, `certSANs`. Those that kubeadm itself gives (`kubernetes`, `kubernetes.default.svc`
   * …) need no entry.
   *
   * @default - none
   */
  readonly apiServerNames?: readonly string[];

  /**
   * The control-plane nodes, by name, each with its addresses and further names. Certificates name no other node.
   */
  readonly nodes: Readonly<Record<string, readonly string[]>>;

  /**
   * Lifetime of the certificates. They end no later than their CA.
   *
   * @default - 365d
   */
  readonly maxTtl?: string;
}

/** The CAs by what they sign for kubeadm’s control plane. */
export interface KubeadmCas {
  /**
   * Signs for the API server, its clients and the kubeconfigs: the CA of `ca.crt`.
   *
   * @default - none
   */
  readonly kubernetes?: string;

  /**
   * Signs the client certificate with which the API server calls aggregated API servers: the CA of
   * `front-proxy-ca.crt`.
   *
   * @default - none
   */
  readonly frontProxy?: string;

  /**
   * Signs for etcd and its clients: the CA of `etcd/ca.crt`.
   *
   * @default - none
   */
  readonly etcd?: string;
}
