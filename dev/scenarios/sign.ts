/** The main job: an approved request gets its certificate, with a key the cluster never sees; another gets its reason. */
import { setTimeout as sleep } from 'node:timers/promises';
import { defaultCluster, parseConfiguration } from '../../core/configuration.ts';
import type { ClusterConfiguration } from '../../core/configuration.ts';
import type { ApiAnswer, JsonObject } from '../../core/ports.ts';
import { approved, certificatePemIn, conditionIn, nameOf } from '../csr-object.ts';
import { checkIssued } from '../certificate-checks.ts';
import { startDemoStack } from '../demo-stack.ts';
import type { DemoStack } from '../demo-stack.ts';
import { askForCertificate } from '../kubelet.ts';
import type { AskedCertificate, CertificateQuestion } from '../kubelet.ts';
import { DemoFailure } from '../scenario.ts';
import type { DemoWorld, Scenario } from '../scenario.ts';

export const signScenario: Scenario = {
  name: 'sign',
  summary: 'an approved request gets its certificate, one that asks for too much gets its reason',
  run,
};

/** What is played: who may be named how, who asks rightly, who asks for too much. */
interface Play {
  readonly cluster: ClusterConfiguration;
  readonly good: CertificateQuestion;
  readonly greedy: CertificateQuestion;
}

async function run(world: DemoWorld): Promise<void> {
  const { terminal } = world;
  const { cluster, good, greedy } = world.kubeconfig === undefined ? kubeletPlay() : realClusterPlay();

  terminal.heading('The signing side');
  const stack = await startDemoStack(cluster, [good.signerName], world);
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
  const asked = askForCertificate(question);
  terminal.step('key', 'P-256, made on the node and kept there');
  const object = await post(asked, question, stack, world, made);
  await approve(object, stack, world);
  const approvedAt = performance.now();
  const answered = await waitFor(nameOf(object), (now) => certificatePemIn(now) ?? failureIn(now), stack, world);
  const pem = certificatePemIn(answered);
  if (pem === undefined) throw new DemoFailure(`the request was refused: ${failureIn(answered)}`);
  terminal.step(
    'certificate',
    `relayed, signed, posted back ${Math.round(performance.now() - approvedAt)} ms after approval`,
  );

  const checks = checkIssued(pem, await stack.trustBundle(), asked.privateKey, question);
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
  const object = await post(askForCertificate(question), question, stack, world, made);
  await approve(object, stack, world);
  const answered = await waitFor(nameOf(object), (now) => certificatePemIn(now) ?? failureIn(now), stack, world);
  if (certificatePemIn(answered) !== undefined)
    throw new DemoFailure('a request that should be refused got a certificate');
  const { reason = '', message = '' } = conditionIn(answered, 'Failed') ?? {};
  terminal.step('Failed', reason);
  for (const violation of message.split('; ')) terminal.step('', violation);
}

async function post(
  asked: AskedCertificate,
  { organization, commonName }: CertificateQuestion,
  stack: DemoStack,
  { terminal, signal }: DemoWorld,
  made: string[],
): Promise<JsonObject> {
  const object = present(await stack.node.requester.create(asked.object, signal), 'the request could not be created');
  made.push(nameOf(object));
  const { username } = object['spec'] as { username: string };
  terminal.step('request', `${nameOf(object)}, by ${username}`);
  terminal.step('', `O=${organization}, CN=${commonName}`);
  return object;
}

async function approve(object: JsonObject, stack: DemoStack, { terminal, signal }: DemoWorld): Promise<void> {
  const answer = await stack.cluster.requester.updateApproval(approved(object), signal);
  present(answer, 'the request could not be approved');
  terminal.step('approved', `as \`kubectl certificate approve ${nameOf(object)}\` does it`);
}

/** Looks again and again until there is something to see, or the demo's patience is over. */
async function waitFor(
  name: string,
  look: (object: JsonObject) => unknown,
  stack: DemoStack,
  { signal }: DemoWorld,
): Promise<JsonObject> {
  try {
    for (;;) {
      const object = present(await stack.cluster.requests.get(name, signal), 'the request cannot be read');
      if (look(object) !== undefined) return object;
      await sleep(20, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  throw new DemoFailure(
    ['the request was not answered in time. What was said last:', ...stack.complaints()].join('\n    '),
  );
}

function failureIn(object: JsonObject): string | undefined {
  const failed = conditionIn(object, 'Failed');
  return failed === undefined ? undefined : `${failed.reason ?? ''}: ${failed.message ?? ''}`;
}

function present(answer: ApiAnswer<JsonObject>, otherwise: string): JsonObject {
  if (answer.ok) return answer.value;
  throw new DemoFailure(`${otherwise}: ${answer.why}, ${answer.message}`);
}

/** Somebody's cluster is left as it was found, however the demo went. */
async function removeAll(names: readonly string[], stack: DemoStack, { terminal }: DemoWorld): Promise<void> {
  for (const name of names) {
    const answer = await stack.cluster.requester
      .remove(name, AbortSignal.timeout(5_000))
      .catch((error: unknown) => ({ ok: false as const, message: String(error) }));
    if (!answer.ok) terminal.line(`  could not delete certificatesigningrequest ${name}: ${answer.message}`);
  }
}

/** A node joins, as kubelets do it (seed 002), and another one wants to be a cluster administrator. */
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
 * On a cluster of somebody's the kubernetes.io signers have an owner, whose certificate might come first. So a signer of
 * our own, whose certificates log nobody in.
 */
function realClusterPlay(): Play {
  const parsed = parseConfiguration(realClusterYaml, 'demo');
  const cluster = parsed.ok ? parsed.configuration.clusters.get('demo') : undefined;
  if (cluster === undefined) throw new Error(`the demo's own configuration is wrong: ${JSON.stringify(parsed)}`);
  const good: CertificateQuestion = {
    signerName: 'countersign.dev/demo',
    commonName: 'demo-client-1',
    organization: 'countersign-demo',
    usages: ['digital signature', 'client auth'],
  };
  return { cluster, good, greedy: { ...good, commonName: 'demo-client-2', organization: 'system:masters' } };
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
