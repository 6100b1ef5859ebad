/** The keys of `attestation.aws` in countersign.yaml. How values must fit together is checked in aws.ts. */
import { z } from 'zod';
import { accountId, countOr, flag, matching, region, text } from '../fields/values.ts';

const role = matching(
  /^arn:aws(-[a-z]+)*:iam::[0-9]{12}:role\/[\w+=,.@/-]+$/,
  'must be the ARN of one role, such as arn:aws:iam::111122223333:role/nodes; no wildcards',
).max(2048);

/** docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html, Tag restrictions. */
const tagKey = z.string().min(1).max(128);
const tagValue = z.string().max(256);

const resourceId = (kind: 'vpc' | 'subnet') =>
  matching(new RegExp(`^${kind}-([0-9a-f]{8}|[0-9a-f]{17})$`), `must be the id of a ${kind}, such as ${kind}-0a1b2c3d`);

const instance = z.strictObject({
  httpTokensRequired: flag(
    true,
    'Whether IMDSv1 must be off. With it on, whatever can make the node fetch a URL gets its identity document and credentials.',
  ),
  maxHopLimit: countOr('any', 1, 64)
    .default(1)
    .describe('Largest hop limit of the metadata service (HttpPutResponseHopLimit), or `any`. At 2 pods reach it too.'),
  maxAttachSkewSeconds: countOr('any', 0, 86_400)
    .default(60)
    .describe(
      'How long after the first network interface the root volume may have been attached, or `any`. Later, the disk may have been swapped.',
    ),
  addresses: z
    .enum(['primary', 'all'])
    .default('primary')
    .describe(
      'Which addresses a serving certificate may hold. `primary`: the primary private address of the first interface, its public address and its IPv6 address. `all`: every address of every interface; a CNI plugin’s node policy can assign further ones.',
    ),
});

const fiveToSixty = 'must be a whole number from 5 to 60';

/** The key `attestation.aws` of a cluster. */
export const awsKeys = z.strictObject({
  accounts: z
    .record(
      accountId,
      z.strictObject({
        assumeRole: role
          .exactOptional()
          .describe('The role to look at instances with. Required for another account than that of the stacks.'),
      }),
    )
    .default({})
    .describe('Accounts, in quotes, whose instances may join. Required. Nothing is asked of AWS about any other.'),
  regions: z.array(region).default([]).describe('Regions whose instances may join. Required.'),
  vpcs: z.array(resourceId('vpc')).default([]).describe('VPCs, of which the instance must be in one.'),
  subnets: z.array(resourceId('subnet')).default([]).describe('Subnets, of which the instance must be in one.'),
  tags: z
    .record(tagKey, tagValue)
    .default({})
    .describe(
      'Tags the instance must have, all of them; value `*` = any. A principal that may tag instances decides which instances join. An account alone admits every instance in it, so at least one of `tags`, `vpcs`, `subnets`, `instanceProfiles` and `roles` is required.',
    ),
  instanceProfiles: z
    .array(text.regex(/^[\w+=,.@/:*-]+$/, 'must be the name or ARN of an instance profile, or a pattern of one'))
    .default([])
    .describe('Instance profiles, of which the instance must have one: names or ARNs, `*` = any run of characters.'),
  roles: z
    .array(role)
    .default([])
    .describe('Node roles whose sessions count as proof. Only, and required, with `requireIdentityRole: false`.'),
  nodeName: z
    .array(
      matching(
        /^(privateDnsName|privateDnsLabel|instanceId|tag:.{1,128}|pattern:.{1,253})$/,
        'must be privateDnsName, privateDnsLabel, instanceId, tag:<key> or pattern:<name with *>',
      ),
    )
    .default([])
    .describe(
      'What an instance may be called, any of them. Required. `privateDnsName`, `privateDnsLabel` (its first label), `instanceId`, `tag:<key>`: as EC2 says; `pattern:<name with *>`: any such name, first come, first served.',
    ),
  requireIdentityRole: flag(
    true,
    'Whether the node must prove itself with the instance identity role of EC2, whose session name no principal can choose.',
  ),
  acceptV1: flag(
    true,
    'Whether nodes may still prove themselves with evidence `aws/v1`, which carries the signed identity document. Set `false` when every node sends `aws/v2` (`countersign report` counts both). Without `requireIdentityRole`, `aws/v1` is the only version.',
  ),
  machines: z
    .enum(['any', 'listed'])
    .default('any')
    .describe('`listed`: only instances that `countersign machines allow` names.'),
  allowRestart: flag(
    false,
    'Whether an instance that was stopped and started may come back with a new key. Weak: a principal that can stop an instance can read its disk.',
  ),
  restartWindowMinutes: z
    .int()
    .min(5, fiveToSixty)
    .max(60, fiveToSixty)
    .default(15)
    .describe(
      'With `allowRestart`: for how long after the launch time that EC2 reports the new key is taken. Two minutes of it pass between the first look and the second.',
    ),
  instance: instance.prefault({}).describe('Further properties that EC2 must report for the instance.'),
  certificates: z
    .record(region, z.array(z.string().max(16_384)).min(1, 'must hold at least one certificate'))
    .default({})
    .describe(
      'Certificates (PEM, RSA-2048) with which AWS signs identity documents, by region, besides those the project knows.',
    ),
});

export type AwsAttestationInput = z.infer<typeof awsKeys>;
