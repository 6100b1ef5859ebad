/** A CA is replaced by another one while a node works. `countersign ca rotate` shows each phase, and what would go wrong. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findEmbeddedCa } from '../../../adapters/embedded/authority.ts';
import { main as commandLine } from '../../../cli/main.ts';
import { processIo } from '../../../cli/world.ts';
import { objectOf } from '../../../core/encoding/json-object.ts';
import type { JsonObject } from '../../../core/encoding/json-object.ts';
import { toPem } from '../../../core/encoding/pem.ts';
import { certificateFacts } from '../../../core/x509/read-certificate.ts';
import { approved, certificatePemIn, conditionIn, nameOf } from '../../csr-api/csr-object.ts';
import { demoCluster } from '../demo-cluster.ts';
import { askForCertificate } from '../kubelet.ts';
import { startLoginServer } from '../login-server.ts';
import type { ClientLogin, LoginServer } from '../login-server.ts';
import { postRequest, present, waitFor } from '../requests.ts';
import { DemoFailure } from '../scenario.ts';
import type { DemoWorld, Scenario } from '../scenario.ts';
import { startDemoStack } from '../stack.ts';
import type { DemoStack } from '../stack.ts';

export const rotateScenario: Scenario = {
  name: 'rotate',
  summary: 'a CA is replaced while a node works: in the right order the node is never refused',
  proven: 'the CA was replaced, no login of the node was refused, and nothing trusts the old CA',
  onRealCluster: false,
  run,
};

const signer = 'kubernetes.io/kube-apiserver-client-kubelet';
const oldCa = 'nodes: {subject: {commonName: nodes}}';
const rules = (cas: string, ca: string): string =>
  `version: 1\nclusters: {demo: {cas: {${cas}}, profiles: {${signer}: {ca: ${ca}, maxTtl: 24h}}}}\n`;
const step = {
  before: rules(oldCa, 'nodes'),
  both: rules(`${oldCa}, nodes-2: {replaces: nodes, subject: {commonName: nodes 2}}`, 'nodes'),
  switched: rules(`${oldCa}, nodes-2: {replaces: nodes, subject: {commonName: nodes 2}}`, 'nodes-2'),
  after: rules('nodes-2: {subject: {commonName: nodes 2}}', 'nodes-2'),
} as const;

interface Play {
  readonly world: DemoWorld;
  readonly stack: DemoStack;
  readonly server: LoginServer;
  /** Of the cluster's CAs and records. */
  readonly data: string;
  readonly config: string;
  readonly kubeconfig: string;
}

async function run(world: DemoWorld): Promise<void> {
  const { terminal } = world;
  const folder = mkdtempSync(join(tmpdir(), 'countersign-demo-rotate-'));
  const cleanups: (() => unknown)[] = [() => rmSync(folder, { recursive: true })];
  try {
    terminal.heading('A node under CA nodes');
    const stack = await startDemoStack(demoCluster(step.before), world, undefined, undefined, folder);
    cleanups.push(stack.close);
    const data = join(folder, 'demo');
    const server = await startLoginServer(await certificateOf('nodes', data));
    cleanups.push(() => server.close());
    const [config, kubeconfig] = [join(folder, 'countersign.yaml'), join(folder, 'kubeconfig')];
    writeFileSync(config, step.before);
    writeFileSync(kubeconfig, server.kubeconfig());
    terminal.step('API server', 'a stand-in: it accepts certificates of its client CA file');
    await playSteps({ world, stack, server, data, config, kubeconfig });
  } finally {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  }
}

async function playSteps(play: Play): Promise<void> {
  const { world, server, data } = play;
  const { terminal } = world;
  const [old, next] = ['nodes', 'nodes-2'];
  const first = await renew(play);
  await logsIn(play, first);
  await isIn(play, 'noSuccessor');

  terminal.heading('A second CA, which signs nothing yet');
  await deploy(play, step.both, `cas: nodes-2: {replaces: nodes}`);
  await isIn(play, 'trust');
  terminal.step('', 'and if the profile switched now:');
  writeFileSync(`${play.config}.early`, step.switched);
  await isIn(play, 'trust', 'SwitchedBeforeTrusted');

  terminal.heading('The API server trusts both');
  server.trust((await certificateOf(old, data)) + (await certificateOf(next, data)));
  await logsIn(play, first);
  await isIn(play, 'switch');

  terminal.heading('The profile names the second CA');
  await deploy(play, step.switched, 'profiles: ca: nodes-2');
  await logsIn(play, first);
  await isIn(play, 'drain');
  const second = await renew(play);
  await logsIn(play, second);

  terminal.heading('The old certificate is revoked before its end');
  const { serial } = certificateFacts(new Uint8Array(derOf(first.certificatePem)));
  const revoked = await countersign(
    'cert',
    'revoke',
    '--data',
    data,
    '--serial',
    serial,
    '--reason',
    'superseded',
    '--note',
    'rotation',
  );
  holds(play, revoked.code === 0, 'cert revoke --reason superseded');
  await isIn(play, 'retire');

  terminal.heading('The old CA goes');
  await deploy(play, step.after, 'cas: without nodes');
  await isIn(play, 'retire');
  server.trust(await certificateOf(next, data));
  await logsIn(play, second);
  holds(play, !(await server.accepts(first)), 'a certificate of the old CA is refused');
  await isIn(play, 'done');
}

/** The node makes a new key and gets a certificate, which an administrator approves. */
async function renew({ world, stack }: Play): Promise<ClientLogin> {
  const question = {
    signerName: signer,
    commonName: 'system:node:demo-node-1',
    organization: 'system:nodes',
    usages: ['digital signature', 'client auth'],
  };
  const asked = await askForCertificate(question);
  const object = await postRequest(asked, question, stack.node, world);
  present(
    await stack.cluster.requests.updateApproval(approved(object), world.signal),
    'the request could not be approved',
  );
  const answered = await waitFor(
    nameOf(object),
    (now) => certificatePemIn(now) ?? conditionIn(now, 'Failed'),
    stack,
    world,
  );
  const certificatePem = certificatePemIn(answered);
  if (certificatePem === undefined)
    throw new DemoFailure(`the request was refused: ${conditionIn(answered, 'Failed')?.message}`);
  world.terminal.step('certificate', `issued by ${certificateFacts(new Uint8Array(derOf(certificatePem))).issuer}`);
  return { certificatePem, privateKey: asked.privateKey };
}

async function logsIn(play: Play, login: ClientLogin): Promise<void> {
  holds(play, await play.server.accepts(login), 'the node logs in');
}

async function deploy({ world, stack, config }: Play, text: string, what: string): Promise<void> {
  writeFileSync(config, text);
  await stack.deploy(demoCluster(text));
  world.terminal.step('deployed', what);
}

/** Runs the command as an operator does. With a finding: for a countersign.yaml that is not deployed. */
async function isIn(play: Play, phase: string, finding?: string): Promise<void> {
  const { world, data, kubeconfig } = play;
  const config = finding === undefined ? play.config : `${play.config}.early`;
  const place = ['--data', data, '--config', config, '--kubeconfig', kubeconfig];
  const { code, out, err } = await countersign('ca', 'rotate', '--name', 'nodes', ...place, '-o', 'json');
  const shown = out === '' ? {} : (JSON.parse(out) as JsonObject);
  const [found] = Array.isArray(shown['findings']) ? (shown['findings'] as readonly unknown[]).map(objectOf) : [];
  world.terminal.step('ca rotate', `phase ${String(shown['phase'])}`);
  if (found !== undefined) world.terminal.step('', `${String(found['code'])}: ${String(found['message'])}`);
  const expected =
    finding === undefined ? code === 0 && found === undefined : code === 1 && found?.['code'] === finding;
  if (shown['phase'] !== phase || !expected)
    throw new DemoFailure(
      `countersign ca rotate: expected phase ${phase}, found ${String(shown['phase'])}, exit code ${code} ${err}`,
    );
}

async function countersign(...argv: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  const printed = { out: '', err: '' };
  const io = processIo();
  const code = await commandLine(argv, {
    ...io,
    out: (text) => void (printed.out += text),
    err: (text) => void (printed.err += text),
  });
  return { code, ...printed };
}

function holds({ world }: Play, holding: boolean, what: string): void {
  world.terminal.check(holding, what);
  if (!holding) throw new DemoFailure(`this does not hold: ${what}`);
}

async function certificateOf(ca: string, folder: string): Promise<string> {
  const found = await findEmbeddedCa(folder, ca);
  if (found === undefined) throw new DemoFailure(`there is no CA ${ca} in ${folder}`);
  return toPem('CERTIFICATE', found.authority.certificate);
}

function derOf(pem: string): Buffer {
  const [, base64 = ''] = /-----BEGIN CERTIFICATE-----([^-]+)/.exec(pem) ?? [];
  return Buffer.from(base64, 'base64');
}
