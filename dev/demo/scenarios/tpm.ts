/**
 * A machine without a cloud joins by its TPM, and another machine that wants its name is refused. kubelet-authenticator runs in
 * processes of its own and uses a TPM in software through tpm2-tools; the signing side runs in this process.
 */
import { createHash, createPublicKey, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorMessage } from '../../../core/outcome/error-message.ts';
import { objectOf } from '../../../core/encoding/json-object.ts';
import { generateBootstrapToken, tokenText } from '../../../core/kubernetes/bootstrap-token.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import { startApiFront } from '../../csr-api/api-front.ts';
import { conditionIn } from '../../csr-api/csr-object.ts';
import { missingPackages, startSoftwareTpm } from '../../tpm/software-tpm.ts';
import type { SoftwareTpm } from '../../tpm/software-tpm.ts';
import { demoCluster } from '../demo-cluster.ts';
import { createNode } from '../node.ts';
import type { DemoNode } from '../node.ts';
import { DemoFailure } from '../scenario.ts';
import type { DemoWorld, Scenario } from '../scenario.ts';
import { startDemoStack } from '../stack.ts';
import type { DemoStack } from '../stack.ts';

export const tpmScenario: Scenario = {
  name: 'tpm',
  summary: 'a machine without a cloud joins by its TPM: a denied request, a challenge, its answer (needs swtpm)',
  proven: 'the machine joined with its own TPM, and no other TPM got its name',
  onRealCluster: false,
  run,
};

const nodeName = 'edge-1';
const signerName = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm';
const audience = 'edge/site-1/demo';
const challengeAnnotation = 'countersign.dev/attestation-challenge';
const yaml = JSON.stringify({
  version: 1,
  clusters: {
    demo: {
      cas: { ca: { subject: { commonName: 'Countersign demo CA' } } },
      profiles: { [signerName]: { maxTtl: '1d' } },
      approval: { [signerName]: 'approve' },
      attestation: { audience, tpm: { nodeName: ['pattern:edge-*'] } },
    },
  },
});

async function run(world: DemoWorld): Promise<void> {
  const { terminal, signal } = world;
  const missing = await missingPackages();
  if (missing.length > 0)
    throw new DemoFailure(`this scenario needs a TPM in software: apt-get install ${missing.join(' ')}`);
  const cleanups: (() => unknown)[] = [];
  try {
    const folder = mkdtempSync(join(tmpdir(), 'countersign-demo-'));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const tpmOf = async (name: string): Promise<Machine> => {
      const tpm = await startSoftwareTpm(folder, `tpm-of-${name}`, signal);
      cleanups.push(() => tpm.stop());
      const spki = createPublicKey(await tpm.endorsementKey()).export({ type: 'spki', format: 'der' });
      return { name, tpm, identity: `tpm#${createHash('sha256').update(spki).digest('hex')}` };
    };

    terminal.heading('Two machines');
    const [machine, other] = [await tpmOf('edge-1'), await tpmOf('another')];
    for (const { name, tpm, identity } of [machine, other]) {
      terminal.step(name, `a TPM of its own (${tpm.tcti})`);
      terminal.step('endorsement key', shortened(identity));
    }

    terminal.heading('The cluster');
    const stack = await startDemoStack(demoCluster(yaml), world);
    cleanups.push(stack.close);
    const token = generateBootstrapToken(randomBytes);
    const clientCa = await stack.trustBundle();
    const front = await startApiFront({ target: stack.server, token, clientCa, now: Date.now });
    cleanups.push(front.close);
    terminal.step('watch-relay', `approves ${signerName}`);
    terminal.step('operator', `machines allow ${shortened(machine.identity)} --node ${nodeName}`);
    await stack.allowMachine(machine.identity, nodeName);
    terminal.step('operator', `machines allow ${shortened(other.identity)}`);
    await stack.allowMachine(other.identity);

    const play: Play = { world, stack, join: (node) => joinArgs(node, front), token: tokenText(token), folder };
    await playJoin(play, machine);
    await playOther(play, other);
  } finally {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  }
}

interface Machine {
  readonly name: string;
  readonly tpm: SoftwareTpm;
  readonly identity: string;
}

interface Play {
  readonly world: DemoWorld;
  readonly stack: DemoStack;
  readonly join: (node: DemoNode) => readonly string[];
  readonly token: string;
  readonly folder: string;
}

async function playJoin(play: Play, machine: Machine): Promise<void> {
  const { terminal } = play.world;
  terminal.heading('The kubelet of edge-1 calls its credential plugin');
  const node = await installed(play, machine);
  const { certificatePem } = await node.exec();
  const requests = await requestsOf(play.stack);
  const denied = requests.find((request) => conditionIn(request, 'Denied') !== undefined);
  const approved = requests.find((request) => conditionIn(request, 'Approved') !== undefined);
  if (denied === undefined || approved === undefined || requests.length !== 2)
    throw new DemoFailure(`there should be two requests, and there are ${requests.length}`);
  terminal.step('first request', `Denied: ${conditionIn(denied, 'Denied')?.reason ?? ''}`);
  const challenge = annotationsOf(denied)[challengeAnnotation] ?? '';
  terminal.step('its annotation', `${challenge.slice(0, 56)}…`);
  terminal.step('second request', `Approved: ${shortened(conditionIn(approved, 'Approved')?.message ?? '')}`);
  check(play, challenge !== '', 'the challenge reached the node through the API server alone');
  check(play, certificatePem.includes('BEGIN CERTIFICATE'), 'the TPM opened it, and the node has its certificate');
}

async function playOther(play: Play, other: Machine): Promise<void> {
  const { terminal } = play.world;
  terminal.heading('The other machine asks for the same name');
  const node = await installed(play, other);
  const message = await node.exec().then(
    () => 'the other machine got the name',
    (error: unknown) => errorMessage(error),
  );
  const [, reason = '', why = ''] = [...message.matchAll(/was denied \((\w+)\): ([^;\n]*)/g)].at(-1) ?? [];
  terminal.step('denied', reason);
  terminal.step('', shortened(why));
  check(play, reason === 'TofuNodeTaken', 'its TPM is genuine and listed, and the name belongs to another one');
}

/** kubelet-authenticator, joined on that machine. */
async function installed({ world, join: argsOf, token, folder }: Play, { name, tpm }: Machine): Promise<DemoNode> {
  const home = join(folder, name);
  mkdirSync(home);
  const node = createNode({ folder: home, environment: tpm.environment, ahead: () => 0, signal: world.signal });
  writeFileSync(node.tokenFile, token, { mode: 0o600 });
  const joined = await node.start(argsOf(node));
  if (joined.code !== 0) throw new DemoFailure(`join ended with ${joined.code}: ${joined.stderr}`);
  return node;
}

function joinArgs(node: DemoNode, { endpoint, pin }: { readonly endpoint: string; readonly pin: string }) {
  const server = [endpoint, '--token-file', node.tokenFile, '--discovery-token-ca-cert-hash', pin];
  const proof = ['--audience', audience, '--provider', 'tpm', '--endorsement-key', 'p-256'];
  const places = ['--node-name', nodeName, '--directory', node.directory, '--cache-dir', node.cache];
  return ['join', ...server, ...proof, ...places, '--command', node.program];
}

async function requestsOf({ cluster }: DemoStack): Promise<readonly JsonObject[]> {
  const page = await cluster.requests.list({ signerName, limit: 50 }, AbortSignal.timeout(10_000));
  if (!page.ok) throw new DemoFailure(page.problem.message);
  return page.value.items;
}

function annotationsOf(request: JsonObject): Readonly<Record<string, string>> {
  return objectOf(objectOf(request['metadata'])['annotations']) as Readonly<Record<string, string>>;
}

function check({ world }: Play, holds: boolean, what: string): void {
  world.terminal.check(holds, what);
  if (!holds) throw new DemoFailure(`this does not hold: ${what}`);
}

function shortened(text: string): string {
  return text.replace(/([0-9a-f]{12})[0-9a-f]{52}/, '$1…');
}
