/**
 * What countersign.yaml can say about attestation: of a profile, and of a cluster. How values must fit together is in
 * core/configuration/resolve/attestation.ts and core/configuration/resolve/aws-attestation.ts.
 */
import { z } from 'zod';
import { providerNames } from '../../policy/signer-names.ts';

const text = z.string().min(1, 'must not be empty').max(253, 'must be at most 253 characters');
const yesNo = z.boolean('must be true or false');

/** Of a profile. */
export const profileAttestation = z.strictObject({
  providers: z
    .array(z.enum(providerNames))
    .min(1, 'must name at least one provider')
    .optional()
    .describe(
      'Whose evidence counts. Required; under `cluster.x-k8s.io/` the name of the signer says it. `insecure` has a signer of its own.',
    ),
  required: yesNo.optional().meta({
    description:
      'Whether a request without evidence is refused. `false`: it is answered as if nothing were attested here.',
    default: true,
  }),
  mode: z.enum(['enforce', 'audit']).optional().meta({
    description:
      '`audit`: failed evidence is recorded, but refuses and registers nothing; valid evidence is a first use. For clusters that are being moved to attestation.',
    default: 'enforce',
  }),
  subjectAccessReview: yesNo.optional().meta({
    description:
      'Whether the relay, where it approves, also sends a SubjectAccessReview to the API server (`countersign-nodeclient` …). Only with `approval: approve`.',
    default: false,
  }),
});

const region = z.string().regex(/^[a-z]{2,5}(-[a-z]+)+-[0-9]$/, 'must be a region such as eu-central-1');

const role = z
  .string()
  .max(2048, 'must be at most 2048 characters')
  .regex(
    /^arn:aws(-[a-z]+)*:iam::[0-9]{12}:role\/[\w+=,.@/-]+$/,
    'must be the ARN of one role, such as arn:aws:iam::111122223333:role/nodes; no wildcards',
  );

/** docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html, Tag restrictions. */
const tagKey = z.string().min(1, 'must not be empty').max(128, 'must be at most 128 characters');
const tagValue = z.string().max(256, 'must be at most 256 characters');

const resourceId = (kind: 'vpc' | 'subnet') =>
  z
    .string()
    .regex(new RegExp(`^${kind}-([0-9a-f]{8}|[0-9a-f]{17})$`), `must be the id of a ${kind}, such as ${kind}-0a1b2c3d`);

/** `any` says it in words: an absent key is the default, not the absence of a limit. */
const limit = (least: number, most: number) => {
  const wanted = `must be a whole number from ${least} to ${most}, or any`;
  return z.union([z.int(wanted).min(least, wanted).max(most, wanted), z.literal('any')], wanted);
};

const instance = z.strictObject({
  httpTokensRequired: yesNo.optional().meta({
    description:
      'Whether IMDSv1 must be off. With it on, whatever can make the node fetch a URL gets its identity document and credentials.',
    default: true,
  }),
  maxHopLimit: limit(1, 64).optional().meta({
    description:
      'Largest hop limit of the metadata service (HttpPutResponseHopLimit), or `any`. At 2 pods reach it too.',
    default: 1,
  }),
  maxAttachSkewSeconds: limit(0, 86_400).optional().meta({
    description:
      'How long after the first network interface the root volume may have been attached, or `any`. Later, the disk may have been swapped.',
    default: 60,
  }),
  addresses: z.enum(['primary', 'all']).optional().meta({
    description:
      'Which addresses a serving certificate may hold. `primary`: the primary private address of the first interface, its public address and its IPv6 address. `all`: every address of every interface; a CNI plugin’s node policy can assign further ones.',
    default: 'primary',
  }),
});

const aws = z.strictObject({
  accounts: z
    .record(
      z.string().regex(/^[0-9]{12}$/, 'must be twelve digits, in quotes'),
      z.strictObject({
        assumeRole: role
          .optional()
          .describe('The role to look at instances with. Required for another account than that of the stacks.'),
      }),
    )
    .optional()
    .describe('Accounts, in quotes, whose instances may join. Required. Nothing is asked of AWS about any other.'),
  regions: z.array(region).optional().describe('Regions whose instances may join. Required.'),
  vpcs: z.array(resourceId('vpc')).optional().describe('VPCs, of which the instance must be in one.'),
  subnets: z.array(resourceId('subnet')).optional().describe('Subnets, of which the instance must be in one.'),
  tags: z
    .record(tagKey, tagValue)
    .optional()
    .describe(
      'Tags the instance must have, all of them; value `*` = any. A principal that may tag instances decides which instances join. An account alone admits every instance in it, so at least one of `tags`, `vpcs`, `subnets`, `instanceProfiles` and `roles` is required.',
    ),
  instanceProfiles: z
    .array(text.regex(/^[\w+=,.@/:*-]+$/, 'must be the name or ARN of an instance profile, or a pattern of one'))
    .optional()
    .describe('Instance profiles, of which the instance must have one: names or ARNs, `*` = any run of characters.'),
  roles: z
    .array(role)
    .optional()
    .describe('Node roles whose sessions count as proof. Only, and required, with `requireIdentityRole: false`.'),
  nodeName: z
    .array(
      z
        .string()
        .regex(
          /^(privateDnsName|privateDnsLabel|instanceId|tag:.{1,128}|pattern:.{1,253})$/,
          'must be privateDnsName, privateDnsLabel, instanceId, tag:<key> or pattern:<name with *>',
        ),
    )
    .optional()
    .describe(
      'What an instance may be called, any of them. Required. `privateDnsName`, `privateDnsLabel` (its first label), `instanceId`, `tag:<key>`: as EC2 says; `pattern:<name with *>`: any such name, first come, first served.',
    ),
  requireIdentityRole: yesNo.optional().meta({
    description:
      'Whether the node must prove itself with the instance identity role of EC2, whose session name no principal can choose.',
    default: true,
  }),
  acceptV1: yesNo.optional().meta({
    description:
      'Whether nodes may still prove themselves with evidence `aws/v1`, which carries the signed identity document. Set `false` when every node sends `aws/v2` (`countersign report` counts both). Without `requireIdentityRole`, `aws/v1` is the only version.',
    default: true,
  }),
  machines: z.enum(['any', 'listed']).optional().meta({
    description: '`listed`: only instances that `countersign machines allow` names.',
    default: 'any',
  }),
  allowRestart: yesNo.optional().meta({
    description:
      'Whether an instance that was stopped and started may come back with a new key. Weak: a principal that can stop an instance can read its disk.',
    default: false,
  }),
  restartWindowMinutes: z
    .int('must be a whole number from 5 to 60')
    .min(5, 'must be a whole number from 5 to 60')
    .max(60, 'must be a whole number from 5 to 60')
    .optional()
    .meta({
      description:
        'With `allowRestart`: for how long after the launch time that EC2 reports the new key is taken. Two minutes of it pass between the first look and the second.',
      default: 15,
    }),
  instance: instance.optional().describe('Further properties that EC2 must report for the instance.'),
  certificates: z
    .record(
      region,
      z.array(z.string().max(16_384, 'must be at most 16384 characters')).min(1, 'must hold at least one certificate'),
    )
    .optional()
    .describe(
      'Certificates (PEM, RSA-2048) with which AWS signs identity documents, by region, besides those the project knows.',
    ),
});

/** Of a cluster. */
export const clusterAttestation = z.strictObject({
  audience: z
    .string()
    .regex(/^[!-~]{1,253}$/, 'must be 1 to 253 printable ASCII characters without blanks')
    .optional()
    .describe(
      'A name only this deployment has, part of every proof: evidence made for another deployment is refused. Default: `<account>/<region>/<cluster>` where `aws` names both, otherwise required.',
    ),
  aws: aws.optional().describe('Which instances of EC2 may join. Required where a profile takes evidence of `aws`.'),
  addressRanges: z
    .array(text)
    .max(256, 'must have at most 256 entries')
    .optional()
    .describe(
      'Addresses that EC2 does not know of (VIPs, secondary networks): CIDR blocks. Each belongs to the machine that asks first.',
    ),
});

export type ProfileAttestationInput = z.infer<typeof profileAttestation>;
export type ClusterAttestationInput = z.infer<typeof clusterAttestation>;
export type AwsAttestationInput = z.infer<typeof aws>;
