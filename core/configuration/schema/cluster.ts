/**
 * The shape of countersign.yaml: every key with its meaning; other keys are errors. Each key is enforced, because a key without
 * effect would mislead a reviewer.
 *
 * Every key is optional in the shape, because a cluster and `defaults` complete each other. What a complete cluster
 * must have, and how values must fit together, is checked in core/configuration/resolve/cluster.ts.
 */
import { signatureDigests } from '../../ports/signer.ts';
import type { SignatureAlgorithm } from '../../ports/signer.ts';
import { z } from 'zod';
import { clusterAttestation, profileAttestation } from './attestation.ts';
import { deploymentShape } from './deployment.ts';
import { duration, flag, label, matching, text, texts } from '../fields/values.ts';
import { kubeadmShape } from './kubeadm.ts';
import { knownUsages } from '../../x509/key-usages.ts';

const usages = z.array(z.enum(knownUsages));

const distinguishedName = z.strictObject({
  commonName: text
    .max(64, 'must be at most 64 characters (RFC 5280, ub-common-name)')
    .exactOptional()
    .describe('Common name of the CA, the issuer name of every certificate. Required.'),
  organization: text.max(64).exactOptional().describe('Organization of the CA.'),
  organizationalUnit: text.max(64).exactOptional().describe('Organizational unit of the CA.'),
  country: matching(/^[A-Z]{2}$/, 'must be two capital letters (ISO 3166)')
    .exactOptional()
    .describe('Country of the CA.'),
});

const ca = z.strictObject({
  kind: z
    .enum(['selfSigned', 'imported', 'issued'])
    .default('selfSigned')
    .describe(
      'Where the CA certificate comes from. `imported`: from another CA, or from before; an operator imports it. `issued`: from the CA that `issuedBy` names. See docs/ca/sources.md.',
    ),
  issuedBy: label
    .exactOptional()
    .describe('The CA of this cluster that signs the CA certificate. Kind `issued` only, and required there.'),
  replaces: label
    .exactOptional()
    .describe(
      'The CA of this cluster that this one follows in a rotation. Verifiers are given both, until the old one is removed from the file. Default: none. See docs/ca/trust.md.',
    ),
  keyMaterial: z.enum(['kms', 'imported']).exactOptional().meta({
    description:
      'Where the CA key comes from. `kms`: KMS makes it. `imported`: an operator imports an existing key, which `keys.importers` may do. Kind `imported` only.',
    default: 'kms',
  }),
  keySpec: z
    .enum(['P-256', 'P-384', 'P-521', 'RSA-2048', 'RSA-3072', 'RSA-4096'])
    .default('P-256')
    .describe('Kind of the CA key. Every Kubernetes client verifies P-256.'),
  signatureAlgorithm: z
    .enum(Object.keys(signatureDigests) as SignatureAlgorithm[])
    .exactOptional()
    .describe('What the CA key signs with. Default: the one that fits the key (SHA-256 for RSA, PKCS #1).'),
  subject: distinguishedName.prefault({}).describe('Name of the CA.'),
  validity: duration
    .exactOptional()
    .meta({ description: 'Lifetime of the CA certificate. Not for kind `imported`.', default: '3650d' }),
  pathLen: z.int().min(0).max(10).default(0).describe('How many CAs may stand between this one and a leaf.'),
  crlDistributionPoint: matching(
    /^https?:\/\/[!-~]{1,400}$/,
    'must be a URL, http://… or https://…, at which relying parties read the CRL without credentials',
  )
    .exactOptional()
    .describe(
      'URL of the CRL, written into each certificate of this CA. Default: certificates name none. See docs/ca/revocation.md.',
    ),
  multiRegion: flag(
    false,
    'Whether KMS makes a multi-Region key, of which another Region may have a replica. A key is made this way or the other, for ever.',
  ),
  replicaOf: matching(
    /^arn:aws(-[a-z]+)*:kms:[a-z0-9-]+:[0-9]{12}:key\/mrk-[0-9a-f]{32}$/,
    'must be the ARN of a multi-Region key, …:key/mrk-…',
  )
    .exactOptional()
    .describe(
      'The multi-Region key of another Region of which the key of this CA is a replica. Default: a key of its own.',
    ),
});

const profile = z.strictObject({
  ca: label
    .exactOptional()
    .describe('The CA that signs, by its name under `cas`. May be left out when there is only one.'),
  maxTtl: duration
    .default('30d')
    .describe('Longest lifetime, and the lifetime of a request that names none. At least 60s.'),
  keys: z
    .array(z.enum(['RSA', 'P-256', 'P-384', 'P-521', 'Ed25519']))
    .min(1, 'must name at least one kind')
    .default(['RSA', 'P-256', 'P-384', 'P-521', 'Ed25519'])
    .describe('Kinds of requester keys permitted. RSA means 2048 to 8192 bits, always.'),
  requester: z
    .strictObject({
      users: texts.exactOptional().describe('User names, `*` = any run of characters.'),
      groups: texts
        .exactOptional()
        .describe('Groups of which the requester must have one, `*` = any run of characters.'),
      nodeItself: z
        .boolean()
        .exactOptional()
        .describe(
          'Whether the node itself may ask besides them: user `system:node:<name>` for that very name, in group `system:nodes`. Default: true where attestation is enforced and for `…-aws` signers, false elsewhere. Kubelet signers only.',
        ),
    })
    .exactOptional()
    .describe(
      'Who may ask: one matching user name or group is enough. Default: any requester whose request is approved; where attestation is enforced and under `cluster.x-k8s.io/` the groups `system:bootstrappers` and `system:bootstrappers:*` for client certificates (with provider `gce-vtpm` the user `kubelet-bootstrap`), and only the node itself for serving ones.',
    ),
  attestation: profileAttestation
    .exactOptional()
    .describe('The proof of the machine that a request needs. Kubelet signers only. Default: none.'),
  requestBlocks: z
    .enum(['gce-vtpm'])
    .exactOptional()
    .describe(
      'Whose blocks may follow the certificate request in `spec.request`. `gce-vtpm`: those of gke-exec-auth-plugin and no others. They are read and must certify the requested key, but prove nothing here: the approver judges them. Only for `kubernetes.io/kube-apiserver-client-kubelet` without `attestation`. Default: those of kubelet-authenticator.',
    ),
  freshKeys: flag(
    false,
    'Whether a key that was certified before is refused, so that each certificate has a key of its own.',
  ),
  subject: z
    .strictObject({
      commonNames: texts
        .exactOptional()
        .describe(
          'Common names permitted, `*` = any run of characters; never reserved names. Default: any that is not reserved, for own signers none. Not for the kubelet signers.',
        ),
      organizations: texts.exactOptional().describe('Organizations permitted, likewise.'),
      commonNameRequired: z
        .boolean()
        .exactOptional()
        .meta({ description: 'Whether a request without a common name is refused. Own signers only.', default: false }),
      allowReserved: texts
        .exactOptional()
        .describe(
          'Exact reserved names that this signer may give as common name or organization; never node names. Not for the kubelet signers.',
        ),
    })
    .prefault({})
    .describe('The names that a certificate may hold.'),
  usages: z
    .strictObject({
      allowed: usages.default([]).describe('Usages a request may ask for. Required.'),
      required: usages.default([]).describe('Usages a request must ask for.'),
    })
    .exactOptional()
    .describe('Key usages, in the words of the Kubernetes API. Own signers only, and required there.'),
  sans: z
    .strictObject({
      dns: texts
        .exactOptional()
        .describe('DNS names permitted. `*` = any run of characters; a wildcard name only by the very same pattern.'),
      email: texts.exactOptional().describe('Mail addresses permitted. `*` never covers an `@`.'),
      ip: texts.exactOptional().describe('Addresses and CIDR blocks permitted.'),
      uri: texts.exactOptional().describe('URIs permitted. `*` never covers any of `/ ? # @ \\ %`.'),
      required: z
        .boolean()
        .exactOptional()
        .meta({ description: 'Whether a request without any subjectAltName is refused.', default: false }),
      allowReserved: texts
        .exactOptional()
        .describe(
          'Exact DNS names and addresses that kubelets may serve under although they are reserved or not host names. Kubelet serving signers only.',
        ),
    })
    .prefault({})
    .describe(
      'Subject alternative names; a type without a list is not permitted. All but `allowReserved`: own signers only.',
    ),
});

const signerName = matching(
  /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+\/[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/,
  'must be a signer name: a domain with a dot, one slash, a path, such as k8s.example.com/web',
).max(571);

export const clusterShape = z.strictObject({
  cas: z
    .record(label, ca.meta({ title: 'A CA' }))
    .default({})
    .describe('The CAs of the cluster, by name. At least one.'),
  profiles: z
    .record(signerName, profile.meta({ title: 'What one signer permits' }))
    .default({})
    .describe('What each signer permits, by signerName. At least one.'),
  approval: z
    .record(signerName, z.enum(['manual', 'approve']))
    .exactOptional()
    .meta({
      description:
        'Who approves requests, by signerName. `manual`: another approver, for example kubectl certificate approve. `approve`: the relay, and it denies what the rules refuse; for signers other than the kubelets’ only if `requester` lists users or groups and, where certificates are logins, `subject` limits names.',
      default: 'manual',
    }),
  approveServingWithoutProof: flag(
    false,
    'Whether `approval: approve` is permitted for kubelet serving signers that enforce no proof of the machine. Each node then gets certificates for the names and addresses of all others.',
  ),
  reservedNames: texts
    .default([])
    .describe(
      'Names that no signer but the kubelet signers gives as common name or organization, unless `subject.allowReserved` lists them exactly, and DNS names that no node may serve under. `*` = any run of characters; case is ignored. Added to the names that are always reserved.',
    ),
  reservedAddresses: texts
    .default([])
    .describe('Addresses no node may serve under: the service range, the control-plane endpoint. CIDR blocks.'),
  clusterDomain: matching(
    /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/,
    'must be a DNS name in lower case, without a dot at its end',
  )
    .max(253)
    .default('cluster.local')
    .describe('DNS domain of the cluster (`--cluster-domain` of the kubelet). No node may serve under a name in it.'),
  attestation: clusterAttestation.exactOptional().describe('Which machines may join, where profiles demand a proof.'),
  kubeadm: kubeadmShape
    .exactOptional()
    .describe(
      'The certificates of kubeadm’s control plane that operators may have signed (`countersign kubeadm`). Default: none. See docs/ca/kubeadm.md.',
    ),
  ...deploymentShape,
});

export const fileShape = z.strictObject({
  version: z.literal(1).describe('Version of this format.'),
  defaults: clusterShape
    .exactOptional()
    .describe(
      'Anything a cluster can have, for all clusters. Maps are merged key by key; lists and values are replaced.',
    ),
  clusters: z
    .record(label, clusterShape.meta({ title: 'A cluster' }))
    .describe('The clusters, by name. The name is part of the URL: `/v1/clusters/<name>/sign`.'),
});

/** A CA that is described without a file. */
export const namedCaShape = z.strictObject({ name: label, ca });

/** As written, without the defaults of this schema. */
export type WrittenCluster = z.input<typeof clusterShape>;
export type WrittenFile = z.input<typeof fileShape>;
/** With the defaults of this schema filled in. */
export type ClusterInput = z.output<typeof clusterShape>;
export type CaInput = z.output<typeof ca>;
export type ProfileInput = z.output<typeof profile>;
export type KeySpec = CaInput['keySpec'];

/** The smallest useful file. */
const example = {
  version: 1,
  clusters: {
    prod: {
      cas: { client: { subject: { commonName: 'prod client CA' } } },
      profiles: { 'kubernetes.io/kube-apiserver-client-kubelet': { ca: 'client', maxTtl: '30d' } },
    },
  },
};

/** JSON Schema (2020-12) of the file, for editors. */
export function configurationSchema(): Readonly<Record<string, unknown>> {
  const schema = z.toJSONSchema(fileShape, {
    reused: 'inline',
    io: 'input',
    // An empty default is omitted, because the description says what an absent list or map means.
    override: ({ jsonSchema }) => {
      const initial = jsonSchema.default;
      if (typeof initial === 'object' && Object.keys(initial ?? {}).length === 0) delete jsonSchema.default;
    },
  });
  return {
    $id: 'urn:countersign:countersign.yaml:1',
    title: 'countersign.yaml',
    description: 'Which requesters may get which certificates. The reference of all keys: docs/configuration.md',
    ...schema,
    examples: [example],
  };
}
