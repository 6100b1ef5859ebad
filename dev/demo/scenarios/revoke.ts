/**
 * A stolen certificate is revoked with the operator's commands: the API server refuses it with the reason, the CRL has it, and neither
 * its key nor a revoked node gets a new certificate. Another certificate of the same user goes on.
 */
import 'reflect-metadata';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { X509Certificate, X509Crl } from '@peculiar/x509';
import { main as countersign } from '../../../cli/main.ts';
import { processIo } from '../../../cli/world.ts';
import { defaultCluster } from '../../../core/configuration/parse.ts';
import { readBoundedDocument } from '../../../core/encoding/bounded-document.ts';
import { certificateFacts } from '../../../core/x509/read-certificate.ts';
import { systemClock } from '../../../lambdas/watch-relay/runtime/system-clock.ts';
import { createRevokedWebhook, revokedPath } from '../../../lambdas/watch-relay/webhook/revoked.ts';
import { certificatePemIn, nameOf } from '../../csr-api/csr-object.ts';
import { createApiServer } from '../api-server.ts';
import type { ApiServer } from '../api-server.ts';
import { askForCertificate } from '../kubelet.ts';
import type { AskedCertificate, CertificateQuestion } from '../kubelet.ts';
import { approve, failureIn, postRequest, waitFor } from '../requests.ts';
import { DemoFailure } from '../scenario.ts';
import type { DemoWorld, Scenario } from '../scenario.ts';
import { startDemoStack } from '../stack.ts';
import type { DemoStack } from '../stack.ts';

export const revokeScenario: Scenario = {
  name: 'revoke',
  summary: 'a stolen certificate is refused at once and not renewed; another one of the same user goes on',
  proven: 'the revoked certificate is refused, is in the CRL and is not renewed; the other one is not affected',
  onRealCluster: false,
  run,
};

const user: CertificateQuestion = {
  signerName: 'kubernetes.io/kube-apiserver-client',
  commonName: 'alice',
  organization: 'developers',
  usages: ['digital signature', 'client auth'],
};
const node: CertificateQuestion = {
  signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  commonName: 'system:node:demo-node-1',
  organization: 'system:nodes',
  usages: ['digital signature', 'client auth'],
};
const kubeConfigFile = '/etc/kubernetes/countersign-revoked.kubeconfig';

interface Play {
  readonly stack: DemoStack;
  readonly world: DemoWorld;
  readonly server: ApiServer;
  /** Of `cert` commands: the folder of the cluster. */
  readonly data: string;
}

async function run(world: DemoWorld): Promise<void> {
  const { terminal, signal } = world;
  const folder = mkdtempSync(join(tmpdir(), 'countersign-demo-revoke-'));
  const cluster = defaultCluster('demo', { maxTtlSeconds: 86_400 });
  try {
    const stack = await startDemoStack(cluster, world, undefined, undefined, folder);
    try {
      terminal.heading('The cluster');
      const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
      const webhook = createRevokedWebhook({ source: stack.revoked, clock: systemClock, log });
      const server = createApiServer(webhook, revokedPath('demo'), signal);
      terminal.step('API server', 'a stand-in of some lines, which obeys an AuthorizationConfiguration');
      terminal.step('webhook', 'that of the relay; it fetches the list from the sign function');
      await playSteps({ stack, world, server, data: join(folder, 'demo') });
    } finally {
      await stack.close();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function playSteps(play: Play): Promise<void> {
  const { terminal } = play.world;
  terminal.heading('alice has two certificates, each with its own key');
  const stolen = await issue(user, await askForCertificate(user), play);
  const other = await issue(user, await askForCertificate(user), play);
  await isAnswered(play, stolen, 200, 'the first certificate');
  await isAnswered(play, other, 200, 'the second certificate');

  terminal.heading('The first one is stolen, and revoked');
  const why = ['--reason', 'keyCompromise', '--note', 'laptop stolen, ticket 4711'];
  await command(play, ['revoke', '--serial', stolen.serial, ...why]);

  terminal.heading('The API server is told, without a restart');
  const written = await command(play, ['revoked', '--authorization', kubeConfigFile], false);
  const configuration = readBoundedDocument(written);
  if (!configuration.ok) throw new DemoFailure(`the AuthorizationConfiguration ${configuration.problem}`);
  play.server.configure(configuration.value);
  const refused = await isAnswered(play, stolen, 403, 'the first certificate');
  terminal.step('', refused);
  expect(
    /^the client certificate was revoked at .* \(keyCompromise\)$/.test(refused),
    play,
    'with the time and the reason',
  );
  const calls = play.server.calls();
  await isAnswered(play, other, 200, 'the second certificate of the same user');
  expect(play.server.calls() === calls, play, 'for which the webhook was not even called');

  terminal.heading('Who reads CRLs finds it there');
  await playCrl(play, stolen, other);

  terminal.heading('The thief asks for a new certificate with the stolen key');
  await isRefused(play, user, stolen.asked, 'key is locked');

  terminal.heading('A node is taken out of service, with all its certificates');
  await issue(node, await askForCertificate(node), play);
  const gone = ['--reason', 'cessationOfOperation', '--note', 'sold'];
  await command(play, ['revoke', '--node', 'demo-node-1', ...gone]);
  await isRefused(play, node, await askForCertificate(node), 'node "demo-node-1" is locked');

  terminal.heading('What an auditor sees');
  await command(play, ['revoked']);
}

interface Login {
  readonly asked: AskedCertificate;
  readonly serial: string;
  readonly fingerprint: string;
}

async function issue(question: CertificateQuestion, asked: AskedCertificate, { stack, world }: Play): Promise<Login> {
  const object = await postRequest(asked, question, stack.cluster, world);
  await approve(object, stack, world);
  const answered = await waitFor(nameOf(object), (now) => certificatePemIn(now) ?? failureIn(now), stack, world);
  const pem = certificatePemIn(answered);
  if (pem === undefined) throw new DemoFailure(`the request was refused: ${failureIn(answered)}`);
  const { serial, fingerprintSha256 } = certificateFacts(new Uint8Array(new X509Certificate(pem).rawData));
  world.terminal.step('certificate', `serial ${serial}`);
  return { asked, serial, fingerprint: fingerprintSha256 };
}

/** Fails unless the API server gives this answer. Returns its message. */
async function isAnswered({ server, world }: Play, login: Login, expected: number, what: string): Promise<string> {
  const { status, message } = await server.ask(login.fingerprint, 'alice');
  world.terminal.check(status === expected, `${what}: ${status}`);
  if (status !== expected) throw new DemoFailure(`the API server answered ${status} for ${what}`);
  return message;
}

/** Fails unless the request fails with `Locked`, although it is approved. */
async function isRefused(
  play: Play,
  question: CertificateQuestion,
  asked: AskedCertificate,
  says: string,
): Promise<void> {
  const { stack, world } = play;
  const object = await postRequest(asked, question, stack.cluster, world);
  await approve(object, stack, world);
  const answered = await waitFor(nameOf(object), (now) => certificatePemIn(now) ?? failureIn(now), stack, world);
  const failure = failureIn(answered) ?? 'it got a certificate';
  world.terminal.step('Failed', failure);
  expect(failure.startsWith('Locked') && failure.includes(says), play, 'no new certificate, although it was approved');
}

/** The CRL, read and verified by a library that shares no code with the program that signed it. */
async function playCrl(play: Play, revoked: Login, other: Login): Promise<void> {
  const { stack, world } = play;
  const crl = new X509Crl(new Uint8Array(await stack.crl()));
  const ca = new X509Certificate(await stack.trustBundle());
  const serials = new Set(crl.entries.map(({ serialNumber }) => serialNumber.replace(/^00/, '')));
  world.terminal.step('CRL', `${crl.entries.length} entries, until ${crl.nextUpdate?.toISOString()}`);
  expect(await crl.verify({ publicKey: ca }), play, `signed by ${ca.subject}`);
  expect(
    serials.has(revoked.serial) && !serials.has(other.serial),
    play,
    'has the first certificate and not the second',
  );
}

function expect(holds: boolean, { world }: Play, what: string): void {
  world.terminal.check(holds, what);
  if (!holds) throw new DemoFailure(`does not hold: ${what}`);
}

/** Runs the command as an operator does, and prints what it prints. */
async function command({ world, data }: Play, argv: readonly string[], shown = true): Promise<string> {
  const printed = { out: '', err: '' };
  const { terminal } = world;
  terminal.step('operator', `countersign cert ${argv.join(' ')}`);
  const io = {
    ...processIo(),
    out: (text: string) => void (printed.out += text),
    err: (text: string) => void (printed.err += text),
  };
  const code = await countersign(['cert', ...argv, '--data', data], io);
  if (code !== 0) throw new DemoFailure(`the command failed: ${printed.err}`);
  const lines = printed.out.trimEnd().split('\n');
  for (const line of shown ? lines : [`writes ${lines.length} lines`]) terminal.step('', line);
  return printed.out;
}
