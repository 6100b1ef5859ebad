/**
 * EC2 instances (docs/attestation/aws.md). The evidence claims which instance asks: account, region, instance id. A
 * GetCallerIdentity request, signed with the instance's own temporary credentials over the binding digest, proves that this
 * instance asks for this key, now. Then EC2 describes the instance and what belongs to it. `aws/v1` also carries the
 * instance identity document, signed by the region (evidence.ts). Cheap and local checks come first.
 */
import type { AwsAttestation } from '../../configuration/model/attestation.ts';
import { violation } from '../../outcome/outcome.ts';
import type { RefusalCode, Violation, Violations } from '../../outcome/outcome.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { ClaimedInstance } from './identity-document.ts';
import type { AwsPorts } from './endpoints.ts';
import { readAwsEvidence } from './evidence.ts';
import type { AwsEvidenceVersion } from './evidence.ts';
import { checkInstance, describeMachine } from './instance.ts';
import type { ExpectedInstance, InstanceDescription } from './instance.ts';
import { pinCertificate } from './cms.ts';
import type { PinnedCertificate } from './cms.ts';
import type { AttestationProvider, Evidence, Examined, Machine, MachineState } from '../evidence/provider.ts';
import { identityRole, readCaller } from './sts-response.ts';
import type { Caller } from './sts-response.ts';
import { rebuildStsRequest, stsSignatureLife } from './sts-token.ts';
import type { StsProof } from './sts-token.ts';

interface Aws extends AwsPorts {
  readonly policy: AwsAttestation;
  /** Newest first. */
  readonly versions: readonly [AwsEvidenceVersion, ...AwsEvidenceVersion[]];
  readonly certificates: readonly PinnedCertificate[];
}

/** Throws for a region certificate that cannot be one. */
export function awsProvider(policy: AwsAttestation, ports: AwsPorts): AttestationProvider {
  const versions = acceptedVersions(policy);
  // They verify identity documents, which only aws/v1 has.
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
 * The instance id that STS confirms is the name of a session. Only EC2 names the sessions of the instance identity role, so
 * that name alone proves the instance. Of any other role the session's name can be chosen, and the document must say it too.
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
  if ('problem' in sent) return invalid(sent.problem);

  // Anyone can claim an instance, or has a document of an account of their own: this comes before any call to AWS.
  const { instance } = sent;
  const outsider = checkPlace(aws.policy, instance);
  if (outsider !== undefined) return failure([outsider]);

  const header = `csr-attest/v1/${clusterName}/${binding(sent.nonce)}`;
  const proof = rebuildStsRequest(sent.sts, { ...instance, header }, now);
  if ('problem' in proof) return invalid(`the STS token ${proof.problem}`);

  const expected = expectedInstance(instance);
  return success({
    identity: expected.identity,
    once: [{ kind: 'sts', id: proof.signature, expiresAt: proof.signedAt + stsSignatureLife }],
    machines: aws.policy.machines === 'listed' ? [`aws#${instance.instanceId}`] : [],
    verify: () => verifyMachine(aws, instance, proof, expected),
  });
}

function checkPlace(policy: AwsAttestation, { accountId, region }: ClaimedInstance): Violation | undefined {
  if (!policy.accounts.has(accountId))
    return violation('IdentityNotAllowed', `instances of account ${accountId} may not join`);
  if (!policy.regions.includes(region))
    return violation('IdentityNotAllowed', `instances in region ${region} may not join`);
  return undefined;
}

function expectedInstance(claimed: ClaimedInstance): ExpectedInstance {
  const { partition, accountId: account, region, instanceId, availabilityZone, privateIp } = claimed;
  return {
    identity: `aws#${partition.name}/${account}/${region}/${instanceId}`,
    account,
    region,
    instanceId,
    ...(availabilityZone === undefined ? {} : { availabilityZone }),
    ...(privateIp === undefined ? {} : { privateIp }),
  };
}

async function verifyMachine(
  aws: Aws,
  claimed: ClaimedInstance,
  proof: StsProof,
  expected: ExpectedInstance,
): Promise<Result<Machine, Violations>> {
  const answered = readCaller(await aws.sts(proof.request));
  if ('problem' in answered) return invalid(`the STS token ${answered.problem}`);
  const stranger = checkCaller(aws.policy, claimed, answered.caller);
  if (stranger !== undefined) return invalid(stranger);

  const instance = await describeInstance(aws, expected);
  // It has just signed with credentials that only a running instance is given, so EC2 will know it shortly. The token
  // is soon too old, so this does not go on for long.
  if (instance === 'notFound' || instance.state === 'pending')
    throw new Error(`EC2 does not yet know ${expected.instanceId} as running`);
  // Its credentials outlive it by hours.
  if (instance.state !== 'running') return refuse('IdentityNotAllowed', `the instance is ${instance.state}`);
  const [first, ...more] = checkInstance(aws.policy, expected, instance);
  if (first !== undefined) return failure([first, ...more]);
  return success(describeMachine(aws.policy, expected, instance));
}

/** STS confirms the claims: the session of exactly this instance signed the request. */
function checkCaller(policy: AwsAttestation, claimed: ClaimedInstance, caller: Caller): string | undefined {
  if (caller.partition !== claimed.partition.name)
    return 'the STS token is of another partition than the evidence says';
  if (caller.account !== claimed.accountId) return 'the STS token is of another account than the evidence says';
  if (caller.session !== claimed.instanceId) return 'the STS token is of another instance than the evidence says';
  if (caller.role === identityRole) return undefined;
  // Whoever may assume a role may call the session by an instance's id: only its trust policy stands against that.
  if (policy.requireIdentityRole) return `the STS token is not signed by the instance identity role (${identityRole})`;
  const isNodeRole = policy.roles.some((arn) => isRole(arn, caller));
  return isNodeRole ? undefined : `the STS token is signed by role ${caller.role}, which is no node's`;
}

/** STS leaves out the role's path, which names no other role: names are unique in an account. */
function isRole(arn: string, { partition, account, role }: Caller): boolean {
  const [, path] = arn.split(`arn:${partition}:iam::${account}:role/`);
  return path !== undefined && path.slice(path.lastIndexOf('/') + 1) === role;
}

/** `aws#<partition>/<account>/<region>/<instance id>` as recorded. */
async function describe(aws: Aws, identity: string): Promise<MachineState> {
  const [, , account = '', region = '', instanceId = ''] =
    /^aws#([a-z-]+)\/([0-9]{12})\/([a-z0-9-]+)\/(i-[0-9a-f]+)$/.exec(identity) ?? [];
  // Nothing is asked about a place that is configured no more. Its machines may well run: their names stay theirs.
  if (!aws.policy.accounts.has(account) || !aws.policy.regions.includes(region)) return { kind: 'stopped' };
  const expected = { identity, account, region, instanceId };
  const instance = await describeInstance(aws, expected);
  if (instance === 'notFound') return { kind: 'unknown' };
  switch (instance.state) {
    case 'pending':
      throw new Error(`${instanceId} is being started`);
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
  // Only ever from countersign.yaml: a role named after the account in the evidence could be the sender's own.
  const assumeRole = aws.policy.accounts.get(account)?.assumeRole;
  return aws.ec2.describeInstance({ account, region, ...(assumeRole === undefined ? {} : { assumeRole }) }, instanceId);
}

function invalid(message: string): Result<never, Violations> {
  return refuse('AttestationInvalid', message);
}

function refuse(code: RefusalCode, message: string): Result<never, Violations> {
  return failure([violation(code, message)]);
}
