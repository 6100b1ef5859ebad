/**
 * The proof that an EC2 instance sent the request, which every provider of EC2 needs: a GetCallerIdentity request, signed with the
 * instance's own temporary credentials over the binding digest. STS confirms the claims and EC2 describes the instance. Checks
 * without a call to AWS come first.
 */
import type { AwsAttestation } from '../../configuration/providers/aws.ts';
import { violated, violation } from '../../outcome/outcome.ts';
import type { Violation, Violations } from '../../outcome/outcome.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { evidenceTooOld } from '../evidence/evidence.ts';
import type { Evidence, Examined, Machine, MachineState } from '../evidence/provider.ts';
import type { AwsPorts, InstancePlace, StsRequest } from './endpoints.ts';
import type { AwsEvidence } from './evidence.ts';
import type { ClaimedInstance } from './identity-document.ts';
import { checkInstance, describeMachine } from './instance.ts';
import type { ExpectedInstance, InstanceDescription } from './instance.ts';
import { instanceOf } from './instance-identity.ts';
import type { NamedInstance } from './instance-identity.ts';
import { identityRole, readCaller } from './sts-response.ts';
import type { Caller } from './sts-response.ts';
import { rebuildStsRequest, stsSignatureLife, tooOld } from './sts-token.ts';

/** Which instances may join, and how AWS is asked. */
export interface InstanceRules extends Pick<AwsPorts, 'sts' | 'ec2'> {
  readonly policy: AwsAttestation;
}

export interface ExaminedInstance extends Pick<Examined, 'identity' | 'once' | 'machines'> {
  /** Asks STS and EC2. Throws if one of them cannot answer now. */
  readonly verify: () => Promise<Result<VerifiedInstance, Violations>>;
  /** Asks STS alone, and returns where EC2 describes the instance. Absent if the evidence has an identity document. */
  readonly confirm?: () => Promise<Result<InstancePlace, Violations>>;
}

export interface VerifiedInstance {
  readonly machine: Machine;
  readonly instance: InstanceDescription;
  /** Where EC2 described it. */
  readonly place: InstancePlace;
}

/** All checks that need no network. */
export function examineInstance(
  rules: InstanceRules,
  { instance, sts, nonce }: AwsEvidence,
  { now, clusterName, binding }: Pick<Evidence, 'now' | 'clusterName' | 'binding'>,
): Result<ExaminedInstance, Violations> {
  // Checked before any call to AWS, because a requester can claim any instance, or send a document of their own account.
  const outsider = checkPlace(rules.policy, instance);
  if (outsider !== undefined) return failure([outsider]);

  const header = `csr-attest/v1/${clusterName}/${binding(nonce)}`;
  const proof = rebuildStsRequest(sts, { ...instance, header }, now);
  if (!proof.ok)
    return proof.problem === tooOld ? failure([evidenceTooOld]) : invalid(`the STS token ${proof.problem}`);
  const { signature, signedAt, request } = proof.value;
  let confirmed: Promise<Result<InstancePlace, Violations>> | undefined;
  const confirm = () => (confirmed ??= confirmCaller(rules, instance, request));
  return success({
    identity: instance.identity,
    once: [{ kind: 'sts', id: signature, expiresAt: signedAt + stsSignatureLife }],
    machines: rules.policy.machines === 'listed' ? [`aws#${instance.instanceId}`] : [],
    verify: () => verifyInstance(rules, instance, confirm),
    // A document names a zone and an address, which must agree with a new description.
    ...(instance.availabilityZone === undefined ? { confirm } : {}),
  });
}

function checkPlace(policy: AwsAttestation, { account, region }: NamedInstance): Violation | undefined {
  if (!policy.accounts.has(account))
    return violation('IdentityNotAllowed', `instances of account ${account} may not join`);
  if (!policy.regions.includes(region))
    return violation('IdentityNotAllowed', `instances in region ${region} may not join`);
  return undefined;
}

async function confirmCaller(
  { policy, sts }: InstanceRules,
  claimed: ClaimedInstance,
  request: StsRequest,
): Promise<Result<InstancePlace, Violations>> {
  const answered = readCaller(await sts(request));
  if (!answered.ok) return invalid(`the STS token ${answered.problem}`);
  const disagreement = checkCaller(policy, claimed, answered.value);
  return disagreement === undefined ? success(placeOf(policy, claimed)) : invalid(disagreement);
}

async function verifyInstance(
  rules: InstanceRules,
  claimed: ClaimedInstance,
  confirm: () => Promise<Result<InstancePlace, Violations>>,
): Promise<Result<VerifiedInstance, Violations>> {
  const confirmed = await confirm();
  if (!confirmed.ok) return confirmed;
  const instance = await describeInstance(rules, claimed);
  // Only a running instance has these credentials, so EC2 will soon report it as running. The client tries again until the
  // token is too old.
  if (instance === 'notFound' || instance.state === 'pending')
    throw new Error(`EC2 does not yet know ${claimed.instanceId} as running`);
  // The credentials are valid for hours after the instance stopped.
  if (instance.state !== 'running') return violated('IdentityNotAllowed', `the instance is ${instance.state}`);
  const [first, ...more] = checkInstance(rules.policy, claimed, instance);
  if (first !== undefined) return failure([first, ...more]);
  const machine = describeMachine(rules.policy, claimed, instance);
  return success({ machine, instance, place: confirmed.value });
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

/** The current state of the instance with this identity. Throws if EC2 cannot answer now. */
export async function describeByIdentity(rules: InstanceRules, identity: string): Promise<MachineState> {
  const named = instanceOf(identity);
  // An account or region that is not configured any more is not asked. Its machines may still run, so they keep their names.
  if (named === undefined || checkPlace(rules.policy, named) !== undefined) return { kind: 'stopped' };
  const expected = { identity, ...named };
  const instance = await describeInstance(rules, expected);
  if (instance === 'notFound') return { kind: 'unknown' };
  switch (instance.state) {
    case 'pending':
      throw new Error(`${named.instanceId} is being started`);
    case 'running':
      return {
        kind: 'running',
        machine: describeMachine(rules.policy, expected, instance),
        violations: checkInstance(rules.policy, expected, instance),
      };
    case 'shutting-down':
    case 'stopping':
    case 'stopped':
      return { kind: 'stopped' };
    case 'terminated':
      return { kind: 'gone' };
  }
}

function describeInstance(
  { policy, ec2 }: InstanceRules,
  expected: ExpectedInstance,
): Promise<InstanceDescription | 'notFound'> {
  return ec2.describeInstance(placeOf(policy, expected), expected.instanceId);
}

/** The role comes from countersign.yaml only: a role that the evidence names could be the sender's own. */
function placeOf(policy: AwsAttestation, { account, region }: NamedInstance): InstancePlace {
  return { account, region, ...policy.accounts.get(account) };
}

export function invalid(message: string): Result<never, Violations> {
  return violated('AttestationInvalid', message);
}
