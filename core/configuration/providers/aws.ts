/** Resolves which EC2 instances may join. Besides the account, the operator must name at least one criterion. */
import { X509Certificate } from 'node:crypto';
import type { AwsAttestationInput } from './aws-keys.ts';
import type { Place } from '../fields/place.ts';
import { nodeNamePattern } from './anchors.ts';
import { decodePem } from '../../encoding/pem.ts';

/** The keys of `attestation.aws`, described in aws-keys.ts. A machine must match each list that is not empty. */
export interface AwsAttestation extends Readonly<
  Omit<AwsAttestationInput, 'accounts' | 'tags' | 'nodeName' | 'instance' | 'certificates'>
> {
  /** By account id. AWS is asked about no other account. */
  readonly accounts: ReadonlyMap<string, { readonly assumeRole?: string }>;
  /** Exact value by tag key, such as `kubernetes.io/cluster/<name>`; the value `*` means any. */
  readonly tags: ReadonlyMap<string, string>;
  /** The node names that an instance may have; one matching rule is enough. At least one. */
  readonly nodeName: readonly NodeNameRule[];
  readonly instance: {
    readonly httpTokensRequired: boolean;
    /** Absent = any. */
    readonly maxHopLimit?: number;
    /** Absent = not checked. */
    readonly maxAttachSkewSeconds?: number;
    readonly addresses: 'primary' | 'all';
  };
  /** PEM by region: certificates of the operator, in addition to those of the package. */
  readonly certificates: ReadonlyMap<string, readonly string[]>;
}

export type NodeNameRule =
  /** `ip-10-0-0-1.eu-central-1.compute.internal`, as the AWS cloud provider names nodes. */
  | { readonly kind: 'privateDnsName' }
  /** The first label of that name. */
  | { readonly kind: 'privateDnsLabel' }
  | { readonly kind: 'instanceId' }
  | { readonly kind: 'tag'; readonly key: string }
  /** Any name that matches the pattern; the first machine keeps it. */
  | { readonly kind: 'pattern'; readonly pattern: string };

/** `deployedTo`: the account of the stacks, if the file names it. `at`: the key `aws` under `attestation`. */
export function resolveAws(input: AwsAttestationInput, deployedTo: string | undefined, at: Place): AwsAttestation {
  checkAccounts(input, deployedTo, at);
  checkRoles(input, at);
  checkCriteria(input, at);
  const { maxHopLimit, maxAttachSkewSeconds, ...instance } = input.instance;
  return {
    ...input,
    accounts: new Map(Object.entries(input.accounts)),
    tags: new Map(Object.entries(input.tags)),
    nodeName: input.nodeName.map((rule, index) => nodeNameRule(rule, at('nodeName', index))),
    instance: {
      ...instance,
      ...(maxHopLimit === 'any' ? {} : { maxHopLimit }),
      ...(maxAttachSkewSeconds === 'any' ? {} : { maxAttachSkewSeconds }),
    },
    certificates: resolveCertificates(input.certificates, at('certificates')),
  };
}

function checkAccounts({ accounts, regions }: AwsAttestationInput, deployedTo: string | undefined, at: Place): void {
  for (const [account, { assumeRole }] of Object.entries(accounts)) {
    const here = at('accounts', account);
    if (assumeRole !== undefined && accountOf(assumeRole) !== account)
      here('assumeRole').error('must be a role of that very account');
    if (assumeRole === undefined && deployedTo !== undefined && deployedTo !== account)
      here.error('is not the account of the stacks: name a role there to look at instances with (assumeRole)');
  }
  if (Object.keys(accounts).length === 0) at('accounts').error('is required and must name an account');
  if (regions.length === 0) at('regions').error('is required and must name a region');
}

/**
 * A principal that may assume a role chooses the session name, so an ordinary role proves an instance only if its trust policy
 * admits EC2 alone. The operator must list those roles. `aws/v2` has no other proof than the session name.
 */
function checkRoles({ requireIdentityRole, acceptV1, roles, accounts }: AwsAttestationInput, at: Place): void {
  if (requireIdentityRole) {
    if (roles.length > 0)
      at('roles').error('is only for requireIdentityRole: false; the instance identity role has no ARN to name');
    return;
  }
  if (roles.length === 0)
    at('roles').error('is required with requireIdentityRole: false: whose sessions prove an instance?');
  at('requireIdentityRole').warning(
    'a principal that may assume one of these roles can impersonate any instance; let their trust policies name ec2.amazonaws.com only',
  );
  roles.forEach((role, index) => {
    if (accounts[accountOf(role)] === undefined)
      at('roles', index).error('is of an account that is not among accounts');
  });
  if (!acceptV1)
    at('acceptV1').error(
      'must not be false with requireIdentityRole: false, where aws/v1 is the only evidence that proves an instance',
    );
}

/** An account alone would admit every instance in it, under any name (docs/attestation/aws.md). */
function checkCriteria(
  { tags, vpcs, subnets, instanceProfiles, roles, nodeName }: AwsAttestationInput,
  at: Place,
): void {
  instanceProfiles.forEach((pattern, index) => {
    if (/^\*+$/.test(pattern)) at('instanceProfiles', index).error('is every instance profile');
  });
  if ([Object.keys(tags), vpcs, subnets, instanceProfiles, roles].every((list) => list.length === 0))
    at.error('an account alone admits any instance in it: name tags, vpcs, subnets, instanceProfiles or roles too');
  if (nodeName.length === 0)
    at('nodeName').error('is required: what may an instance be called? For example [privateDnsName]');
}

function nodeNameRule(text: string, at: Place): NodeNameRule {
  if (text === 'privateDnsName' || text === 'privateDnsLabel' || text === 'instanceId') return { kind: text };
  const value = text.slice(text.indexOf(':') + 1);
  if (text.startsWith('tag:')) return { kind: 'tag', key: value };
  return { kind: 'pattern', pattern: nodeNamePattern(value, at) };
}

function resolveCertificates(input: AwsAttestationInput['certificates'], at: Place): AwsAttestation['certificates'] {
  for (const [region, texts] of Object.entries(input))
    texts.forEach((pem, index) => {
      const problem = certificateProblem(pem);
      if (problem !== undefined) at(region, index).error(problem);
    });
  return new Map(Object.entries(input));
}

function certificateProblem(pem: string): string | undefined {
  const blocks = decodePem(Buffer.from(pem), ['CERTIFICATE']);
  if (!blocks.ok) return `is not one PEM certificate: it ${blocks.problem}`;
  try {
    const { publicKey } = new X509Certificate(blocks.value[0]?.content ?? new Uint8Array());
    // The metadata service signs with this key at its endpoint `rsa2048`, and with RSA-1024 and DSA at the others.
    return publicKey.asymmetricKeyType === 'rsa' && (publicKey.asymmetricKeyDetails?.modulusLength ?? 0) >= 2048
      ? undefined
      : 'must hold an RSA key of 2048 bits: take the certificate for rsa2048';
  } catch {
    return 'is not a certificate';
  }
}

function accountOf(arn: string): string {
  return arn.split(':')[4] ?? '';
}
