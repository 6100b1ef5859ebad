/**
 * The provider for EC2 instances (docs/attestation/aws.md). The evidence claims account, region and instance id. It holds a
 * GetCallerIdentity request, signed with the instance's own temporary credentials over the binding digest, which proves that
 * this instance requests a certificate for this key now. Then EC2 describes the instance. `aws/v1` evidence also holds the
 * instance identity document, signed by the region (evidence.ts). Checks without a call to AWS come first.
 */
import type { AwsAttestation } from '../../configuration/model/attestation.ts';
import { violation } from '../../outcome/outcome.ts';
import type { RefusalCode, Violation, Violations } from '../../outcome/outcome.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { ClaimedInstance } from './identity-document.ts';
import type { AwsPorts, StsRequest } from './endpoints.ts';
import { readAwsEvidence } from './evidence.ts';
import type { AwsEvidenceVersion } from './evidence.ts';
import { checkInstance, describeMachine } from './instance.ts';
import type { ExpectedInstance, InstanceDescription } from './instance.ts';
import { instanceOf } from './instance-identity.ts';
import type { NamedInstance } from './instance-identity.ts';
import { pinCertificate } from './cms.ts';
import type { PinnedCertificate } from './cms.ts';
import type { AttestationProvider, Evidence, Examined, Machine, MachineState } from '../evidence/provider.ts';
import { identityRole, readCaller } from './sts-response.ts';
import type { Caller } from './sts-response.ts';
import { rebuildStsRequest, stsSignatureLife } from './sts-token.ts';

interface Aws extends AwsPorts {
  readonly policy: AwsAttestation;
  /** Newest first. */
  readonly versions: readonly [AwsEvidenceVersion, ...AwsEvidenceVersion[]];
  readonly certificates: readonly PinnedCertificate[];
}

/** Throws if a region certificate cannot be read. */
export function awsProvider(policy: AwsAttestation, ports: AwsPorts): AttestationProvider {
  const versions = acceptedVersions(policy);
  // The certificates verify identity documents, which only aws/v1 has.
  const regions = versions.includes('aws/v1') ? [...ports.regionCertificates] : [];
  const certificates = regions.flatMap(([region, ders]) => ders.map((der) => pinCertificate(region, der)));
  const aws: Aws = { ...ports, policy, versions, certificates };
  return {
    name: 'aws',
    versions,
    secure: true,
    ...(policy.allowRestart ? { restartWindow: policy.restartWindowMinutes * 60_000 } : {}),
    examine: (evidence) => examine(aws, evidence),
    describe: (identity) => describe(aws, identity),
  };
}

/**
 * STS confirms the name of a session, which is the instance id. Only EC2 names sessions of the instance identity role, so there
 * the name proves the instance. With any other role a principal can choose the name, so the document (aws/v1) is needed too.
 */
function acceptedVersions({ requireIdentityRole, acceptV1 }: AwsAttestation): Aws['versions'] {
  if (!requireIdentityRole) return ['aws/v1'];
  return acceptV1 ? ['aws/v2', 'aws/v1'] : ['aws/v2'];
}

function examine(aws: Aws, evidence: Evidence): Result<Examined, Violations> {
  const { data, now, clusterName, binding } = evidence;
  const version = aws.versions.find((accepted) => accepted === evidence.version);
  if (version === undefined) return invalid('the attestation data is of a version that is not taken');
  const sent = readAwsEvidence(version, data, aws.certificates, now);
  if (!sent.ok) return invalid(sent.problem);

  // Checked before any call to AWS, because a requester can claim any instance, or send a document of their own account.
  const { instance, sts, nonce } = sent.value;
  const outsider = checkPlace(aws.policy, instance);
  if (outsider !== undefined) return failure([outsider]);

  const header = `csr-attest/v1/${clusterName}/${binding(nonce)}`;
  const proof = rebuildStsRequest(sts, { ...instance, header }, now);
  if (!proof.ok) return invalid(`the STS token ${proof.problem}`);
  const { signature, signedAt, request } = proof.value;
  return success({
    identity: instance.identity,
    once: [{ kind: 'sts', id: signature, expiresAt: signedAt + stsSignatureLife }],
    machines: aws.policy.machines === 'listed' ? [`aws#${instance.instanceId}`] : [],
    verify: () => verifyMachine(aws, instance, request),
  });
}

function checkPlace(policy: AwsAttestation, { account, region }: NamedInstance): Violation | undefined {
  if (!policy.accounts.has(account))
    return violation('IdentityNotAllowed', `instances of account ${account} may not join`);
  if (!policy.regions.includes(region))
    return violation('IdentityNotAllowed', `instances in region ${region} may not join`);
  return undefined;
}

async function verifyMachine(
  aws: Aws,
  claimed: ClaimedInstance,
  request: StsRequest,
): Promise<Result<Machine, Violations>> {
  const answered = readCaller(await aws.sts(request));
  if (!answered.ok) return invalid(`the STS token ${answered.problem}`);
  const disagreement = checkCaller(aws.policy, claimed, answered.value);
  if (disagreement !== undefined) return invalid(disagreement);

  const instance = await describeInstance(aws, claimed);
  // Only a running instance has these credentials, so EC2 will soon report it as running. The client tries again until the
  // token is too old.
  if (instance === 'notFound' || instance.state === 'pending')
    throw new Error(`EC2 does not yet know ${claimed.instanceId} as running`);
  // The credentials are valid for hours after the instance stopped.
  if (instance.state !== 'running') return refuse('IdentityNotAllowed', `the instance is ${instance.state}`);
  const [first, ...more] = checkInstance(aws.policy, claimed, instance);
  if (first !== undefined) return failure([first, ...more]);
  return success(describeMachine(aws.policy, claimed, instance));
}

/** STS confirms the claims: the session of exactly this instance signed the request. */
function checkCaller(policy: AwsAttestation, claimed: ClaimedInstance, caller: Caller): string | undefined {
  if (caller.partition !== claimed.partition.name)
    return 'the STS token is of another partition than the evidence says';
  if (caller.account !== claimed.account) return 'the STS token is of another account than the evidence says';
  if (caller.session !== claimed.instanceId) return 'the STS token is of another instance than the evidence says';
  if (caller.role === identityRole) return undefined;
  // A principal that may assume another role can choose any instance id as session name; only the trust policy prevents that.
  if (policy.requireIdentityRole) return `the STS token is not signed by the instance identity role (${identityRole})`;
  const isNodeRole = policy.roles.some((arn) => isRole(arn, caller));
  return isNodeRole ? undefined : `the STS token is signed by role ${caller.role}, which is no node's`;
}

/** STS omits the role's path. Role names are unique in an account, so the path is not needed. */
function isRole(arn: string, { partition, account, role }: Caller): boolean {
  const [, path] = arn.split(`arn:${partition}:iam::${account}:role/`);
  return path !== undefined && path.slice(path.lastIndexOf('/') + 1) === role;
}

async function describe(aws: Aws, identity: string): Promise<MachineState> {
  const named = instanceOf(identity);
  // An account or region that is not configured any more is not asked. Its machines may still run, so they keep their names.
  if (named === undefined || checkPlace(aws.policy, named) !== undefined) return { kind: 'stopped' };
  const expected = { identity, ...named };
  const instance = await describeInstance(aws, expected);
  if (instance === 'notFound') return { kind: 'unknown' };
  switch (instance.state) {
    case 'pending':
      throw new Error(`${named.instanceId} is being started`);
    case 'running':
      return {
        kind: 'running',
        machine: describeMachine(aws.policy, expected, instance),
        violations: checkInstance(aws.policy, expected, instance),
      };
    case 'shutting-down':
    case 'stopping':
    case 'stopped':
      return { kind: 'stopped' };
    case 'terminated':
      return { kind: 'gone' };
  }
}

function describeInstance(aws: Aws, expected: ExpectedInstance): Promise<InstanceDescription | 'notFound'> {
  const { account, region, instanceId } = expected;
  // The role comes from countersign.yaml only: a role that the evidence names could be the sender's own.
  return aws.ec2.describeInstance({ account, region, ...aws.policy.accounts.get(account) }, instanceId);
}

function invalid(message: string): Result<never, Violations> {
  return refuse('AttestationInvalid', message);
}

function refuse(code: RefusalCode, message: string): Result<never, Violations> {
  return failure([violation(code, message)]);
}
