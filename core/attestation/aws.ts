/**
 * EC2 instances. Two proofs (Cluster API's proposal: a second, limited in time, where the first has no nonce or time):
 * the instance identity document, signed by the region, says which machine; a GetCallerIdentity request, signed with the
 * machine's own temporary credentials over the binding digest, says that this machine asks for this key, now. Then EC2
 * tells what the machine is and what belongs to it. docs/attestation/aws.md; cheap and local checks first.
 */
import type { AwsAttestation } from '../attestation-configuration.ts';
import type { Problem } from '../der.ts';
import { violation } from '../outcome.ts';
import type { RefusalCode, Violation } from '../outcome.ts';
import { readIdentityDocument } from './aws-document.ts';
import type { IdentityDocument } from './aws-document.ts';
import type { AwsPorts } from './aws-endpoints.ts';
import { checkInstance, describeMachine } from './aws-instance.ts';
import type { ExpectedInstance, InstanceDescription } from './aws-instance.ts';
import { pinCertificate, verifySignedData } from './cms.ts';
import type { PinnedCertificate } from './cms.ts';
import type { AttestationProvider, Evidence, Examined, Machine, MachineState, Refused } from './provider.ts';
import { readEvidence } from './strict-json.ts';
import { identityRole, readCaller } from './sts-response.ts';
import type { Caller } from './sts-response.ts';
import { rebuildStsRequest, stsSignatureLife } from './sts-token.ts';
import type { StsProof } from './sts-token.ts';

interface Aws extends AwsPorts {
  readonly policy: AwsAttestation;
  readonly certificates: readonly PinnedCertificate[];
}

/** Throws for a region certificate that cannot be one. */
export function awsProvider(policy: AwsAttestation, ports: AwsPorts): AttestationProvider {
  const certificates = [...ports.regionCertificates].flatMap(([region, ders]) =>
    ders.map((der) => pinCertificate(region, der)),
  );
  const aws: Aws = { ...ports, policy, certificates };
  return {
    name: 'aws',
    versions: ['aws/v1'],
    secure: true,
    allowRestart: policy.allowRestart,
    examine: (evidence) => examine(aws, evidence),
    describe: (identity) => describe(aws, identity),
  };
}

function examine(aws: Aws, evidence: Evidence): Examined | Refused {
  const { now, clusterName, binding } = evidence;
  const sent = readFields(evidence.data);
  if ('problem' in sent) return invalid(`the attestation data ${sent.problem}`);

  const signed = verifySignedData(sent.rsa2048, aws.certificates, now);
  if ('problem' in signed) return invalid(`the instance identity document ${signed.problem}`);
  const read = readIdentityDocument(signed.content, signed.signer.region, now);
  if ('problem' in read) return invalid(`the instance identity document ${read.problem}`);
  const { document } = read;

  // Anybody can have a genuine document, of an account of their own: this comes before any question to AWS.
  const outsider = checkPlace(aws.policy, document);
  if (outsider !== undefined) return { violations: [outsider] };

  const header = `csr-attest/v1/${clusterName}/${binding(sent.nonce)}`;
  const proof = rebuildStsRequest(sent.sts, { ...document, header }, now);
  if ('problem' in proof) return invalid(`the STS token ${proof.problem}`);

  const instance = expectedInstance(document);
  return {
    identity: instance.identity,
    once: [{ kind: 'sts', id: proof.signature, expiresAt: proof.signedAt + stsSignatureLife }],
    machines: aws.policy.machines === 'listed' ? [`aws#${document.instanceId}`] : [],
    verify: () => verifyMachine(aws, document, proof, instance),
  };
}

interface Fields {
  readonly rsa2048: Uint8Array;
  readonly sts: string;
  readonly nonce: string;
}

/** aws/v1 (docs/attestation/aws.md). There is no field for the document: it is inside what the region signed. */
function readFields(data: Uint8Array): Fields | Problem {
  const read = readEvidence(data, { required: ['v', 'rsa2048', 'sts'], optional: ['nonce'] });
  if ('problem' in read) return read;
  const { v, rsa2048, sts, nonce = '' } = read.fields;
  if (v !== 1) return { problem: 'is not of aws/v1' };
  if (typeof rsa2048 !== 'string' || typeof sts !== 'string') return { problem: 'has a proof that is not text' };
  if (typeof nonce !== 'string' || !/^[A-Za-z0-9_-]{0,128}$/.test(nonce))
    return { problem: 'has a nonce that is none' };
  // As the instance's metadata gives it: base64 in lines.
  const base64 = rsa2048.replace(/\r?\n/g, '');
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64) return { problem: 'has an rsa2048 that is not base64' };
  return { rsa2048: bytes, sts, nonce };
}

function checkPlace(policy: AwsAttestation, { accountId, region }: IdentityDocument): Violation | undefined {
  if (!policy.accounts.has(accountId))
    return violation('IdentityNotAllowed', `instances of account ${accountId} may not join`);
  if (!policy.regions.includes(region))
    return violation('IdentityNotAllowed', `instances in region ${region} may not join`);
  return undefined;
}

function expectedInstance(document: IdentityDocument): ExpectedInstance {
  const { partition, accountId: account, region, instanceId, availabilityZone, privateIp } = document;
  return {
    identity: `aws#${partition.name}/${account}/${region}/${instanceId}`,
    account,
    region,
    instanceId,
    availabilityZone,
    ...(privateIp === undefined ? {} : { privateIp }),
  };
}

async function verifyMachine(
  aws: Aws,
  document: IdentityDocument,
  proof: StsProof,
  expected: ExpectedInstance,
): Promise<Machine | Refused> {
  const answered = readCaller(await aws.sts(proof.request));
  if ('problem' in answered) return invalid(`the STS token ${answered.problem}`);
  const stranger = checkCaller(aws.policy, document, answered.caller);
  if (stranger !== undefined) return invalid(stranger);

  const instance = await describeInstance(aws, expected);
  // It has just signed with credentials that only a running instance is given, so EC2 will know it shortly. The token
  // is soon too old, so this does not go on for long.
  if (instance === 'notFound' || instance.state === 'pending')
    throw new Error(`EC2 does not yet know ${expected.instanceId} as running`);
  // Its credentials outlive it by hours, its document for good.
  if (instance.state !== 'running') return refuse('IdentityNotAllowed', `the instance is ${instance.state}`);
  const [first, ...more] = checkInstance(aws.policy, expected, instance);
  if (first !== undefined) return { violations: [first, ...more] };
  return describeMachine(aws.policy.nodeName, expected, instance);
}

/** The two proofs are of one machine. */
function checkCaller(policy: AwsAttestation, document: IdentityDocument, caller: Caller): string | undefined {
  if (caller.partition !== document.partition.name) return 'the STS token is of another partition than the document';
  if (caller.account !== document.accountId) return 'the STS token is of another account than the document';
  if (caller.session !== document.instanceId) return 'the STS token is of another instance than the document';
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
        machine: describeMachine(aws.policy.nodeName, expected, instance),
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
  // Only ever from countersign.yaml: a role named after the account in the document could be the sender's own.
  const assumeRole = aws.policy.accounts.get(account)?.assumeRole;
  return aws.ec2.describeInstance({ account, region, ...(assumeRole === undefined ? {} : { assumeRole }) }, instanceId);
}

function invalid(message: string): Refused {
  return refuse('AttestationInvalid', message);
}

function refuse(code: RefusalCode, message: string): Refused {
  return { violations: [violation(code, message)] };
}
