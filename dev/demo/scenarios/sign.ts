/** An approved request gets its certificate, signed with a key that the cluster never sees. A second request is refused with a reason. */
import { failure } from '../../../core/outcome/result.ts';
import { defaultCluster } from '../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../core/configuration/model/cluster.ts';
import { certificatePemIn, conditionIn, nameOf } from '../../csr-api/csr-object.ts';
import { checkIssued } from '../certificate-checks.ts';
import { approve, failureIn, postRequest, waitFor } from '../requests.ts';
import { startDemoStack } from '../stack.ts';
import type { DemoStack } from '../stack.ts';
import { askForCertificate } from '../kubelet.ts';
import type { CertificateQuestion } from '../kubelet.ts';
import { demoCluster } from '../demo-cluster.ts';
import { DemoFailure } from '../scenario.ts';
import type { DemoWorld, Scenario } from '../scenario.ts';

export const signScenario: Scenario = {
  name: 'sign',
  summary: 'an approved request gets its certificate, one that asks for too much gets its reason',
  proven: 'the certificate verifies',
  onRealCluster: true,
  run,
};

/** The policy, a request that it permits, and a request that it refuses. */
interface Play {
  readonly cluster: ClusterConfiguration;
  readonly good: CertificateQuestion;
  readonly greedy: CertificateQuestion;
}

async function run(world: DemoWorld): Promise<void> {
  const { terminal } = world;
  const { cluster, good, greedy } = world.kubeconfig === undefined ? kubeletPlay() : realClusterPlay();

  terminal.heading('The signing side');
  const stack = await startDemoStack(cluster, world);
  const made: string[] = [];
  try {
    terminal.step('CA key and ledger', `${stack.caKeyId.slice(0, 25)}…, in this process only`);
    terminal.step('sign endpoint', stack.signUrl);
    terminal.heading('The cluster');
    terminal.step('API', `${stack.server}${world.kubeconfig === undefined ? ' (a small stand-in)' : ''}`);
    terminal.step('watch-relay', `watches ${good.signerName}; it holds no key`);

    terminal.heading(`${good.commonName} asks for a certificate`);
    await playGood(good, stack, world, made);
    terminal.heading(`${greedy.commonName} asks for more than it may have`);
    await playGreedy(greedy, stack, world, made);
  } finally {
    if (world.kubeconfig !== undefined) await removeAll(made, stack, world);
    await stack.close();
  }
}

async function playGood(
  question: CertificateQuestion,
  stack: DemoStack,
  world: DemoWorld,
  made: string[],
): Promise<void> {
  const { terminal } = world;
  const asked = await askForCertificate(question);
  terminal.step(
    'key',
    `P-256, made ${world.kubeconfig === undefined ? 'on the node' : 'in this process'} and kept there`,
  );
  const object = await postRequest(asked, question, stack.node, world);
  made.push(nameOf(object));
  await approve(object, stack, world);
  const approvedAt = performance.now();
  const answered = await waitFor(nameOf(object), (now) => certificatePemIn(now) ?? failureIn(now), stack, world);
  const pem = certificatePemIn(answered);
  if (pem === undefined) throw new DemoFailure(`the request was refused: ${failureIn(answered)}`);
  terminal.step(
    'certificate',
    `relayed, signed, posted back ${Math.round(performance.now() - approvedAt)} ms after approval`,
  );

  const checks = await checkIssued(pem, await stack.trustBundle(), asked.privateKey, question);
  for (const { holds, what } of checks) terminal.check(holds, what);
  if (!checks.every(({ holds }) => holds)) throw new DemoFailure('the certificate does not verify');
}

async function playGreedy(
  question: CertificateQuestion,
  stack: DemoStack,
  world: DemoWorld,
  made: string[],
): Promise<void> {
  const { terminal } = world;
  const object = await postRequest(await askForCertificate(question), question, stack.node, world);
  made.push(nameOf(object));
  await approve(object, stack, world);
  const answered = await waitFor(nameOf(object), (now) => certificatePemIn(now) ?? failureIn(now), stack, world);
  if (certificatePemIn(answered) !== undefined)
    throw new DemoFailure('a request that should be refused got a certificate');
  const { reason = '', message = '' } = conditionIn(answered, 'Failed') ?? {};
  terminal.step('Failed', reason);
  for (const violation of message.split('; ')) terminal.step('', violation);
}

/** Leaves a real cluster unchanged, also after a failure. */
async function removeAll(names: readonly string[], stack: DemoStack, { terminal }: DemoWorld): Promise<void> {
  for (const name of names) {
    const answer = await stack.cluster
      .remove(name, AbortSignal.timeout(5_000))
      .catch((error: unknown) => failure({ message: String(error) }));
    if (!answer.ok) terminal.line(`  could not delete certificatesigningrequest ${name}: ${answer.problem.message}`);
  }
}

/** One kubelet requests a node's certificate, another one requests a cluster administrator's. */
function kubeletPlay(): Play {
  const kubelet: CertificateQuestion = {
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    commonName: 'system:node:demo-node-1',
    organization: 'system:nodes',
    usages: ['digital signature', 'client auth'],
  };
  return {
    cluster: defaultCluster('demo', { maxTtlSeconds: 86_400 }),
    good: kubelet,
    greedy: { ...kubelet, commonName: 'system:node:demo-node-2', organization: 'system:masters' },
  };
}

/**
 * On a real cluster another controller serves the kubernetes.io signers and could answer first, so the demo uses a signer of its
 * own, whose certificates are not valid as logins.
 */
function realClusterPlay(): Play {
  const good: CertificateQuestion = {
    signerName: 'countersign.dev/demo',
    commonName: 'demo-client-1',
    organization: 'countersign-demo',
    usages: ['digital signature', 'client auth'],
  };
  return {
    cluster: demoCluster(realClusterYaml),
    good,
    greedy: { ...good, commonName: 'demo-client-2', organization: 'system:masters' },
  };
}

const realClusterYaml = `version: 1
clusters:
  demo:
    cas:
      ca: {subject: {commonName: demo ca}}
    profiles:
      countersign.dev/demo:
        maxTtl: 24h
        usages: {allowed: [digital signature, client auth], required: [client auth]}
        subject: {commonNames: [demo-client-*], organizations: [countersign-demo]}
`;
