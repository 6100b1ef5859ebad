/**
 * A machine joins and renews. kubelet-authenticator runs in processes of its own, called as the kubelet calls it.
 * The signing side, the platform and the front of the API server run in this process.
 */
import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApiFront } from '../../csr-api/api-front.ts';
import type { ApiFront } from '../../csr-api/api-front.ts';
import { checkIssued } from '../certificate-checks.ts';
import type { CertificateCheck } from '../certificate-checks.ts';
import { conditionIn } from '../../csr-api/csr-object.ts';
import { demoCluster } from '../demo-cluster.ts';
import { createNode } from '../node.ts';
import type { DemoNode, PrintedCredential } from '../node.ts';
import { startDemoStack } from '../stack.ts';
import type { DemoStack } from '../stack.ts';
import { DemoFailure } from '../scenario.ts';
import type { DemoWorld, Scenario } from '../scenario.ts';
import { createStandInAws } from '../../aws/stand-in-aws.ts';
import { startStandInImds } from '../../aws/stand-in-imds.ts';
import type { StandInImds } from '../../aws/stand-in-imds.ts';
import { generateBootstrapToken, tokenText } from '../../../core/kubernetes/bootstrap-token.ts';
import type { BootstrapToken } from '../../../core/kubernetes/bootstrap-token.ts';

export const joinScenario: Scenario = {
  name: 'join',
  summary: 'a machine proves its identity and joins: discovery, key, evidence, certificate, cache, renewal',
  proven: 'the machine joined with its own evidence, and renewed with its certificate',
  onRealCluster: false,
  run,
};

const nodeName = 'demo-node-1';
const signerName = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws';
const clusterTag = 'kubernetes.io/cluster/demo';
const names = { commonName: `system:node:${nodeName}`, organization: 'system:nodes' };

async function run(world: DemoWorld): Promise<void> {
  const { terminal } = world;
  const cleanups: (() => unknown)[] = [];
  try {
    // One clock for all parts, which the demo sets forward instead of waiting for a day.
    let ahead = 0;
    const now = (): number => Date.now() + ahead;

    terminal.heading('The machine');
    const aws = createStandInAws(clusterTag);
    const machine = aws.launch(nodeName);
    const imds = await startStandInImds(machine);
    cleanups.push(imds.close);
    terminal.step('platform', `a stand-in for AWS in this process: ${aws.region}, account ${aws.account}`);
    terminal.step(nodeName, `${machine.instanceId}, with its metadata service (IMDSv2) at ${imds.url}`);

    terminal.heading('The cluster');
    const audience = `${aws.account}/${aws.region}/demo`;
    const cluster = demoCluster(yaml(aws.account, aws.region, audience));
    const stack = await startDemoStack(cluster, world, world.wrapAws?.(aws.ports) ?? aws.ports, now);
    cleanups.push(stack.close);
    const token = generateBootstrapToken(randomBytes);
    const clientCa = await stack.trustBundle();
    const front = await startApiFront({ target: stack.server, token, clientCa, now });
    cleanups.push(front.close);
    terminal.step('API', `https://${front.endpoint} (a small stand-in), CA ${front.pin.slice(0, 23)}…`);
    terminal.step('watch-relay', `approves ${signerName}`);
    terminal.step('', 'if the machine proves its identity');
    terminal.step('bootstrap token', `${token.id}.…, as countersign token create makes it`);

    const folder = mkdtempSync(join(tmpdir(), 'countersign-demo-'));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const node = createNode({
      folder,
      environment: { AWS_EC2_METADATA_SERVICE_ENDPOINT: imds.url },
      ahead: () => ahead,
      signal: world.signal,
    });
    const play: Play = { world, stack, front, imds, node, token, clientCa, audience, now };

    await playDiscovery(play);
    const first = await playFirst(play);
    await playCached(play, first);
    const untilRenewal = Date.parse(first.askAgainAt) - now();
    ahead = untilRenewal + 1_000;
    await playRenewal(play, first, untilRenewal);
  } finally {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  }
}

interface Play {
  readonly world: DemoWorld;
  readonly stack: DemoStack;
  readonly front: ApiFront;
  readonly imds: StandInImds;
  readonly node: DemoNode;
  readonly token: BootstrapToken;
  readonly clientCa: string;
  readonly audience: string;
  readonly now: () => number;
}

async function playDiscovery({ world: { terminal }, front, node, token, audience }: Play): Promise<void> {
  const hash = (pin: string): readonly string[] => ['--discovery-token-ca-cert-hash', pin];
  const args = ['join', front.endpoint, '--token-file', node.tokenFile, '--audience', audience, '--provider', 'aws'];
  const places = ['--node-name', nodeName, '--directory', node.directory, '--cache-dir', node.cache];
  const withHash = (pin: string): readonly string[] => [...args, ...hash(pin), ...places, '--command', node.program];
  writeFileSync(node.tokenFile, tokenText(token), { mode: 0o600 });

  terminal.heading('kubelet-authenticator join, with the hash of another CA');
  const refused = await node.start(withHash(`sha256:${'0'.repeat(64)}`));
  const [, message = '', why = ''] = /invalid: (.*) \[(\w+)\]$/m.exec(refused.stderr) ?? [];
  terminal.step(`exit code ${refused.code}`, why);
  terminal.step('', message.replace(/[0-9a-f]{48}(?=")/, '…'));
  if (refused.code !== 1 || why !== 'CaNotPinned') throw new DemoFailure(`it should be refused: ${refused.stderr}`);
  const calls = front.calls.length;

  terminal.heading('kubelet-authenticator join, with the right hash');
  const joined = await node.start(withHash(front.pin));
  if (joined.code !== 0) throw new DemoFailure(`join ended with ${joined.code}: ${joined.stderr}`);
  for (const path of joined.stderr.match(/(?<=wrote ).*/g) ?? [])
    terminal.step('wrote', `${path.slice(node.directory.length + 1)} (${mode(path)})`);
  const kubeconfig = readFileSync(node.kubeconfig, 'utf8');
  check(
    terminal,
    !kubeconfig.includes(token.secret),
    'the token is only in the file of the plugin, not in the kubelet’s kubeconfig',
  );
  const [login, anonymous] = [`POST system:bootstrap:${token.id}`, 'GET anonymous'];
  const inOrder = front.calls.slice(calls).join() === [anonymous, anonymous, login, login].join();
  check(terminal, inOrder, 'join sent the token only to the verified server, and requested no certificate');
}

async function playFirst(play: Play): Promise<PrintedCredential> {
  const { world, imds, node, clientCa, now } = play;
  const { terminal } = world;
  terminal.heading('The kubelet calls its credential plugin');
  const credential = await callPlugin(play);
  for (const [index, path] of [...new Set(imds.answered)].entries())
    terminal.step(index === 0 ? 'evidence from' : '', path);
  await showRequest(play, credential, 'system:bootstrap:');
  const { certificatePem, keyPem } = credential;
  showChecks(terminal, await checkIssued(certificatePem, clientCa, createPrivateKey(keyPem), names, now()));
  terminal.step('stored in', `${node.cache.split('/').at(-1)}/client.pem (${mode(join(node.cache, 'client.pem'))})`);
  terminal.step('next call at', `${credential.askAgainAt}, after ${share(credential, now())} of the lifetime`);
  return credential;
}

async function playCached({ world: { terminal }, front, imds, node }: Play, first: PrintedCredential): Promise<void> {
  terminal.heading('The kubelet restarts, and calls the plugin again');
  const [calls, answered] = [front.calls.length, imds.answered.length];
  const started = performance.now();
  const again = await node.exec();
  terminal.step('answer', `after ${Math.round(performance.now() - started)} ms, including the start of Node`);
  check(terminal, again.text === first.text, 'the same bytes, from the cache');
  check(terminal, front.calls.length === calls && imds.answered.length === answered, 'no service was called');
}

async function playRenewal(play: Play, first: PrintedCredential, untilRenewal: number): Promise<void> {
  const { world, imds, clientCa, now } = play;
  const { terminal } = world;
  terminal.heading(`${(untilRenewal / 3_600_000).toFixed(1)} hours later, by the clock of this demo`);
  const before = imds.answered.length;
  let renewed = await callPlugin(play);
  // With a valid certificate a call waits a few seconds for the next one. On a busy machine a later call gets it, as with a kubelet.
  while (renewed.certificatePem === first.certificatePem) renewed = await callPlugin(play);
  await showRequest(play, renewed, 'system:node:');
  const { certificatePem, keyPem } = renewed;
  showChecks(terminal, await checkIssued(certificatePem, clientCa, createPrivateKey(keyPem), names, now()));
  check(terminal, keyPem !== first.keyPem, 'with a new key');
  check(
    terminal,
    imds.answered.slice(before).some((path) => path.endsWith('security-credentials/ec2-instance')),
    'and new evidence, for that key',
  );
  const left = new X509Certificate(first.certificatePem).validToDate.getTime() - now();
  check(
    terminal,
    left > 0,
    `${(left / 3_600_000).toFixed(1)} h before the first certificate expires: time to repair the signing side`,
  );
}

/** If the plugin gives no certificate, the failure includes the signing side's warnings. */
async function callPlugin({ node, stack }: Play): Promise<PrintedCredential> {
  try {
    return await node.exec();
  } catch (error) {
    if (!(error instanceof DemoFailure)) throw error;
    throw new DemoFailure([error.message.trimEnd(), ...stack.complaints()].join('\n    '));
  }
}

/** Shows the request in the cluster that this certificate came from. */
async function showRequest(
  { world: { terminal, signal }, stack }: Play,
  { certificatePem, stderr }: PrintedCredential,
  expected: string,
): Promise<void> {
  const list = await stack.cluster.requests.list({ signerName, limit: 50 }, signal);
  if (!list.ok) throw new DemoFailure(`the requests cannot be listed: ${list.problem.message}`);
  const found = list.value.items.find((object) => {
    const { certificate } = (object['status'] ?? {}) as { readonly certificate?: string };
    return certificate !== undefined && Buffer.from(certificate, 'base64').toString().trim() === certificatePem.trim();
  });
  if (found === undefined)
    throw new DemoFailure(`no request has this certificate. Standard error of the plugin:\n${stderr}`);
  const { metadata, spec } = found as unknown as { metadata: { name: string }; spec: { username: string } };
  terminal.step('request', `${metadata.name.slice(0, 17)}…, by ${spec.username}`);
  const { reason = '', message = '' } = conditionIn(found, 'Approved') ?? {};
  terminal.step('Approved', reason);
  terminal.step('', message);
  if (!spec.username.startsWith(expected)) throw new DemoFailure(`the request should be ${expected}…'s`);
}

function showChecks(terminal: DemoWorld['terminal'], checks: readonly CertificateCheck[]): void {
  for (const { holds, what } of checks) terminal.check(holds, what);
  if (!checks.every(({ holds }) => holds)) throw new DemoFailure('the certificate does not verify');
}

function check(terminal: DemoWorld['terminal'], holds: boolean, what: string): void {
  terminal.check(holds, what);
  if (!holds) throw new DemoFailure(`this does not hold: ${what}`);
}

function share({ askAgainAt, certificatePem }: PrintedCredential, now: number): string {
  const end = new X509Certificate(certificatePem).validToDate.getTime();
  return `${Math.round(((Date.parse(askAgainAt) - now) / (end - now)) * 100)} %`;
}

function mode(path: string): string {
  return (statSync(path).mode & 0o777).toString(8).padStart(4, '0');
}

const yaml = (account: string, region: string, audience: string): string => `version: 1
clusters:
  demo:
    cas:
      ca: {subject: {commonName: demo ca}}
    profiles:
      ${signerName}: {maxTtl: 24h}
    approval:
      ${signerName}: approve
    attestation:
      audience: ${audience}
      aws:
        accounts: {'${account}': {}}
        regions: [${region}]
        tags: {${clusterTag}: owned}
        nodeName: ['tag:Name']
`;
