/** Resolves which EC2 instances may join. At least one criterion besides the account is required. */
import { X509Certificate } from 'node:crypto';
import type { AwsAttestation, NodeNameRule } from '../model/attestation.ts';
import type { AwsAttestationInput } from '../schema/attestation.ts';
import type { Path, Report } from '../model/report.ts';
import { isSubdomain } from '../../policy/patterns.ts';
import { decodePem } from '../../encoding/pem.ts';

/** `deployedTo`: the account of the stacks, where it is written down. */
export function resolveAws(
  input: AwsAttestationInput,
  deployedTo: string | undefined,
  at: Path,
  report: Report,
): AwsAttestation {
  const accounts = new Map(Object.entries(input.accounts ?? {}));
  for (const [account, { assumeRole }] of accounts) {
    const place = [...at, 'accounts', account];
    if (assumeRole !== undefined && accountOf(assumeRole) !== account)
      report('error', [...place, 'assumeRole'], 'must be a role of that very account');
    if (assumeRole === undefined && deployedTo !== undefined && deployedTo !== account)
      report(
        'error',
        place,
        'is not the account of the stacks: name a role there to look at instances with (assumeRole)',
      );
  }
  if (accounts.size === 0) report('error', [...at, 'accounts'], 'is required and must name an account');
  if ((input.regions ?? []).length === 0) report('error', [...at, 'regions'], 'is required and must name a region');
  checkRoles(input, at, report);
  checkVersions(input, at, report);
  checkNarrowed(input, at, report);
  return {
    accounts: new Map(
      [...accounts].map(([account, { assumeRole }]) => [account, assumeRole === undefined ? {} : { assumeRole }]),
    ),
    regions: input.regions ?? [],
    vpcs: input.vpcs ?? [],
    subnets: input.subnets ?? [],
    tags: new Map(Object.entries(input.tags ?? {})),
    instanceProfiles: input.instanceProfiles ?? [],
    roles: input.roles ?? [],
    nodeName: (input.nodeName ?? []).map((rule, index) => nodeNameRule(rule, [...at, 'nodeName', index], report)),
    requireIdentityRole: input.requireIdentityRole ?? true,
    acceptV1: input.acceptV1 ?? true,
    machines: input.machines ?? 'any',
    allowRestart: input.allowRestart ?? false,
    restartWindowMinutes: input.restartWindowMinutes ?? 15,
    instance: {
      httpTokensRequired: input.instance?.httpTokensRequired ?? true,
      ...atMost('maxHopLimit', input.instance?.maxHopLimit ?? 1),
      ...atMost('maxAttachSkewSeconds', input.instance?.maxAttachSkewSeconds ?? 60),
      addresses: input.instance?.addresses ?? 'primary',
    },
    certificates: resolveCertificates(input.certificates ?? {}, [...at, 'certificates'], report),
  };
}

function atMost<K extends string>(key: K, value: number | 'any'): { readonly [_ in K]?: number } {
  return value === 'any' ? {} : ({ [key]: value } as { readonly [_ in K]?: number });
}

/**
 * A principal that may assume a role chooses the session name, so an ordinary role proves an instance only if its trust policy
 * admits EC2 alone. The operator must list those roles.
 */
function checkRoles(
  { requireIdentityRole = true, roles = [], accounts = {} }: AwsAttestationInput,
  at: Path,
  report: Report,
): void {
  if (requireIdentityRole && roles.length > 0)
    report(
      'error',
      [...at, 'roles'],
      'is only for requireIdentityRole: false; the instance identity role has no ARN to name',
    );
  if (requireIdentityRole) return;
  if (roles.length === 0)
    report('error', [...at, 'roles'], 'is required with requireIdentityRole: false: whose sessions prove an instance?');
  report(
    'warning',
    [...at, 'requireIdentityRole'],
    'a principal that may assume one of these roles can impersonate any instance; let their trust policies name ec2.amazonaws.com only',
  );
  roles.forEach((role, index) => {
    if (accounts[accountOf(role)] === undefined)
      report('error', [...at, 'roles', index], 'is of an account that is not among accounts');
  });
}

/** aws/v2 relies on the session name, which can be chosen for every role except the instance identity role. */
function checkVersions(
  { requireIdentityRole = true, acceptV1 = true }: AwsAttestationInput,
  at: Path,
  report: Report,
): void {
  if (!requireIdentityRole && !acceptV1)
    report(
      'error',
      [...at, 'acceptV1'],
      'must not be false with requireIdentityRole: false, where aws/v1 is the only evidence that proves an instance',
    );
}

/** An account alone would admit every instance in it, under any name (docs/attestation/aws.md). */
function checkNarrowed(input: AwsAttestationInput, at: Path, report: Report): void {
  (input.instanceProfiles ?? []).forEach((pattern, index) => {
    if (/^\*+$/.test(pattern)) report('error', [...at, 'instanceProfiles', index], 'is every instance profile');
  });
  const narrowing = [Object.keys(input.tags ?? {}), input.vpcs, input.subnets, input.instanceProfiles, input.roles];
  if (narrowing.every((list = []) => list.length === 0))
    report(
      'error',
      at,
      'an account alone admits any instance in it: name tags, vpcs, subnets, instanceProfiles or roles too',
    );
  if ((input.nodeName ?? []).length === 0)
    report('error', [...at, 'nodeName'], 'is required: what may an instance be called? For example [privateDnsName]');
}

function nodeNameRule(text: string, at: Path, report: Report): NodeNameRule {
  if (text === 'privateDnsName' || text === 'privateDnsLabel' || text === 'instanceId') return { kind: text };
  const value = text.slice(text.indexOf(':') + 1);
  if (text.startsWith('tag:')) return { kind: 'tag', key: value };
  // `*` may stand for any run, so a letter in its place must make a name a Node can have.
  if (!isSubdomain(value.replaceAll('*', 'x'))) report('error', at, 'is not the name of a node or a pattern of one');
  else if (/^\*+$/.test(value))
    report('warning', at, 'any machine that may join can take any node name that is not yet taken');
  return { kind: 'pattern', pattern: value };
}

function resolveCertificates(
  input: NonNullable<AwsAttestationInput['certificates']>,
  at: Path,
  report: Report,
): AwsAttestation['certificates'] {
  for (const [region, texts] of Object.entries(input))
    texts.forEach((pem, index) => {
      const wrong = certificateProblem(pem);
      if (wrong !== undefined) report('error', [...at, region, index], wrong);
    });
  return new Map(Object.entries(input));
}

function certificateProblem(pem: string): string | undefined {
  const blocks = decodePem(Buffer.from(pem), ['CERTIFICATE']);
  if (!blocks.ok) return `is not one PEM certificate: it ${blocks.problem}`;
  try {
    const { publicKey } = new X509Certificate(blocks.value[0]?.content ?? new Uint8Array());
    // The endpoint `rsa2048` of the metadata service; the others sign with RSA-1024 and DSA.
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
