/**
 * Two machines and one bootstrap token. With kubeadm alone the token is enough to become any node. Here each machine gets only
 * its own name, even if it copies the evidence of the other machine.
 */
import { X509Certificate } from 'node:crypto';
import { certificatePemIn, conditionIn, nameOf } from '../../csr-api/csr-object.ts';
import { checkIssued } from '../certificate-checks.ts';
import type { ClusterConfiguration } from '../../../core/configuration/model/cluster.ts';
import { bindingDigest } from '../../../core/attestation/evidence/binding-digest.ts';
import { evidenceLabels } from '../../../core/attestation/evidence/evidence.ts';
import type { RefusalCode } from '../../../core/outcome/outcome.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import { postRequest, waitFor } from '../requests.ts';
import { bootstrapUser, startDemoStack } from '../stack.ts';
import type { DemoStack } from '../stack.ts';
import { askForCertificate } from '../kubelet.ts';
import type { AskedCertificate, CertificateQuestion, NodeProof } from '../kubelet.ts';
import { demoCluster } from '../demo-cluster.ts';
import { DemoFailure } from '../scenario.ts';
import type { DemoWorld, Scenario } from '../scenario.ts';
import { createStandInAws } from '../../aws/stand-in-aws.ts';
import type { StandInAws, StandInMachine } from '../../aws/stand-in-aws.ts';

export const hijackScenario: Scenario = {
  name: 'hijack',
  summary: 'a bootstrap token gives no machine the name of another: each gets a certificate only for its own name',
  proven: 'one token, two machines, and each got a certificate only for its own name',
  onRealCluster: false,
  run: (world) => playHijack(world),
};

const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
const clusterTag = 'kubernetes.io/cluster/demo';
const [first, second] = ['demo-node-1', 'demo-node-2'];

/** `dataFolder`: keeps the records and the CA there. Absent: in memory. */
export async function playHijack(world: DemoWorld, dataFolder?: string): Promise<void> {
  const { terminal } = world;
  terminal.heading('The machines');
  const aws = createStandInAws(clusterTag);
  const [honest, attacker] = [aws.launch(first), aws.launch(second)];
  terminal.step('platform', `a stand-in for AWS in this process: ${aws.region}, account ${aws.account}`);
  terminal.step(first, honest.instanceId);
  terminal.step(second, `${attacker.instanceId}, taken over by an attacker`);

  terminal.heading('The cluster');
  const cluster = demoCluster(yaml(aws.account, aws.region));
  const stack = await startDemoStack(cluster, world, world.wrapAws?.(aws.ports) ?? aws.ports, undefined, dataFolder);
  const play: Play = { aws, cluster, stack, world };
  try {
    terminal.step('CA, first uses', `${stack.caKeyId.slice(0, 25)}…, in this process only`);
    terminal.step('watch-relay', `approves ${signerName}`);
    terminal.step('', 'if the machine proves its identity');
    terminal.step('bootstrap token', `${bootstrapUser}, known to both machines`);
    await playSteps(play, honest, attacker);
  } finally {
    await stack.close();
  }
}

interface Play {
  readonly aws: StandInAws;
  readonly cluster: ClusterConfiguration;
  readonly stack: DemoStack;
  readonly world: DemoWorld;
}

async function playSteps(play: Play, honest: StandInMachine, attacker: StandInMachine): Promise<void> {
  const { terminal } = play.world;
  const fromToken = play.stack.node;

  terminal.heading(`${second} copies the evidence of ${first}, and sends it first`);
  const asked = await askForCertificate(questionFor(first), proofOf(honest, first, play));
  const copied = { ...proofOf(honest, first, play), evidence: copyEvidence(asked) };
  terminal.step('evidence', 'bound to one key, one name and one cluster');
  await isDenied(play, first, copied, 'AttestationInvalid');

  terminal.heading(`${first} joins`);
  await isIssued(play, first, asked, fromToken);

  terminal.heading(`${second} requests the name ${first} with its own evidence`);
  await isDenied(play, first, proofOf(attacker, first, play), 'IdentityNotAllowed');

  terminal.heading(`An attacker who may tag instances gives ${second} the name ${first} too`);
  play.aws.rename(attacker.instanceId, first);
  await isDenied(play, first, proofOf(attacker, first, play), 'TofuNodeTaken');
  play.aws.rename(attacker.instanceId, second);

  terminal.heading(`${second} sends the evidence of ${first} again`);
  await isDenied(play, first, copied, 'AttestationInvalid');

  terminal.heading(`${second} requests a certificate for its own name`);
  const own = await askForCertificate(questionFor(second), proofOf(attacker, second, play));
  await isIssued(play, second, own, fromToken, 'the certificate verifies: this machine may have this name');

  terminal.heading(`${first} renews with its certificate and a new key`);
  const renewal = await askForCertificate(questionFor(first), proofOf(honest, first, play));
  const itself = play.stack.as(`system:node:${first}`);
  await isIssued(play, first, renewal, itself, 'the certificate verifies: the same machine, the same name');
}

/** Fails unless the relay approved the request and the certificate is what a node needs. */
async function isIssued(
  { stack, world }: Play,
  nodeName: string,
  asked: AskedCertificate,
  api: DemoStack['node'],
  shortResult?: string,
): Promise<void> {
  const { terminal } = world;
  const question = questionFor(nodeName);
  const object = await postRequest(asked, question, api, world);
  const answered = await waitFor(nameOf(object), (now) => certificatePemIn(now) ?? refusalIn(now), stack, world);
  const pem = certificatePemIn(answered);
  if (pem === undefined) throw new DemoFailure(`the request was refused: ${refusalIn(answered)}`);
  const { reason = '', message = '' } = conditionIn(answered, 'Approved') ?? {};
  terminal.step('Approved', reason);
  terminal.step('', message);
  terminal.step('certificate', `serial ${new X509Certificate(pem).serialNumber.toLowerCase()}`);
  const checks = await checkIssued(pem, await stack.trustBundle(), asked.privateKey, question);
  const verifies = checks.every(({ holds }) => holds);
  if (verifies && shortResult !== undefined) terminal.check(true, shortResult);
  else for (const { holds, what } of checks) terminal.check(holds, what);
  if (!verifies) throw new DemoFailure('the certificate does not verify');
}

/** Fails unless the relay denied the request for this reason and the sign endpoint refuses it too. */
async function isDenied(
  { stack, world }: Play,
  nodeName: string,
  proof: NodeProof,
  expected: RefusalCode,
): Promise<void> {
  const { terminal, signal } = world;
  const question = questionFor(nodeName);
  const object = await postRequest(await askForCertificate(question, proof), question, stack.node, world);
  const answered = await waitFor(nameOf(object), (now) => certificatePemIn(now) ?? refusalIn(now), stack, world);
  if (certificatePemIn(answered) !== undefined)
    throw new DemoFailure(`a request that should be denied (${expected}) got a certificate`);
  const { reason = '', message = '' } = conditionIn(answered, 'Denied') ?? {};
  terminal.step('Denied', reason);
  for (const violation of message.split('; ')) terminal.step('', violation);
  if (reason !== expected)
    throw new DemoFailure(`the request should be denied for ${expected}: ${refusalIn(answered)}`);

  const { status, codes } = await signAnyway(object, stack, signal);
  const refused = status === 422 && codes.includes(expected);
  terminal.check(refused, 'no certificate, and none from the sign endpoint even after a forged approval');
  if (!refused) throw new DemoFailure(`the sign endpoint answered ${status} (${codes.join(', ')})`);
}

/** Posts a forged approval to the sign endpoint, as an attacker with the relay's credentials could. */
async function signAnyway(
  object: JsonObject,
  { signUrl }: DemoStack,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly codes: readonly string[] }> {
  const conditions = [{ type: 'Approved', status: 'True', reason: 'Forged', message: 'by an attacker' }];
  const response = await fetch(signUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...object, status: { conditions } }),
    signal,
  });
  const body = (await response.json()) as { details?: { causes?: readonly { reason: string }[] } };
  return { status: response.status, codes: (body.details?.causes ?? []).map(({ reason }) => reason) };
}

function refusalIn(object: JsonObject): string | undefined {
  const condition = conditionIn(object, 'Denied') ?? conditionIn(object, 'Failed');
  return condition === undefined ? undefined : `${condition.reason ?? ''}: ${condition.message ?? ''}`;
}

// ── The machines' side ──────────────────────────────────────────────────────────────────────────────────────────────

function questionFor(nodeName: string): CertificateQuestion {
  return {
    signerName,
    commonName: `system:node:${nodeName}`,
    organization: 'system:nodes',
    usages: ['digital signature', 'client auth'],
  };
}

/** Every process on the machine can make such evidence, for any key and name (docs/attestation.md). */
function proofOf(machine: StandInMachine, nodeName: string, { aws, cluster }: Play): NodeProof {
  const { account, region } = aws;
  const { name, attestation } = cluster;
  const audience = attestation?.audience ?? '';
  return {
    providerId: machine.providerId,
    version: 'aws/v2',
    evidence: (spki) => {
      const digest = bindingDigest({ audience, signerName, nodeName, nonce: '', spki });
      const sts = machine.signToken(`csr-attest/v1/${name}/${digest}`);
      return JSON.stringify({ v: 2, account, region, instance: machine.instanceId, sts });
    },
  };
}

/** Copies the evidence of another request, to use it for another key. */
function copyEvidence({ object }: AskedCertificate): NodeProof['evidence'] {
  const { request } = object['spec'] as { readonly request: string };
  const [, block = ''] = Buffer.from(request, 'base64')
    .toString('latin1')
    .split(`-----BEGIN ${evidenceLabels.data}-----`);
  const data = Buffer.from(block.split('-----END')[0] ?? '', 'base64').toString('utf8');
  return () => data;
}

const yaml = (account: string, region: string): string => `version: 1
clusters:
  demo:
    cas:
      ca: {subject: {commonName: demo ca}}
    profiles:
      ${signerName}: {maxTtl: 24h, attestation: {providers: [aws]}}
    approval:
      ${signerName}: approve
    attestation:
      audience: demo
      aws:
        accounts: {'${account}': {}}
        regions: [${region}]
        tags: {${clusterTag}: owned}
        nodeName: ['tag:Name']
`;
