/** The dev server of a cluster whose nodes prove themselves: real ways to AWS, led to a strict stand-in by the environment. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { account, machineRules, nodeRequest, nodeSigner, startMachines } from '../../harness/lambda/machines.ts';
import type { Machines } from '../../harness/lambda/machines.ts';
import { emulatedRegion } from '../../harness/aws/emulator.ts';
import { serveHere } from './serve-here.ts';

const credentials = { accessKeyId: 'AKIADEVSERVER0000000', secretAccessKey: 'secret' };
const folder = mkdtempSync(join(tmpdir(), 'countersign-dev-attest-'));
const file = join(folder, 'countersign.json');
writeFileSync(
  file,
  JSON.stringify({
    version: 1,
    clusters: {
      demo: {
        cas: { ca: { subject: { commonName: 'demo ca' } } },
        profiles: { [nodeSigner]: { attestation: { providers: ['aws'] } } },
        aws: { account, region: emulatedRegion },
        attestation: machineRules('demo'),
      },
    },
  }),
);

let machines: Machines;
const running: ChildProcess[] = [];
beforeAll(async () => {
  machines = await startMachines(credentials);
});
afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
  vi.unstubAllEnvs();
});
afterAll(async () => {
  await machines.stop();
  rmSync(folder, { recursive: true });
});

const environment = (): Readonly<Record<string, string>> => ({
  AWS_ACCESS_KEY_ID: credentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  ...machines.environment,
});

/** The program itself, and nothing of our environment. */
async function serve() {
  const program = join(import.meta.dirname, '../../../dev/serve.ts');
  const child = spawn(process.execPath, [program, '--port', '0', '--config', file, '--data', join(folder, 'data')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: '', ...environment() },
  });
  running.push(child);
  let [output, errors] = ['', ''];
  child.stdout.on('data', (text) => (output += String(text)));
  child.stderr.on('data', (text) => (errors += String(text)));
  const exited = once(child, 'close');
  while (!output.includes('Stop with Ctrl-C')) {
    if (child.exitCode !== null) throw new Error(`serve ended: ${errors}`);
    await Promise.race([once(child.stdout, 'data'), exited]);
  }
  return {
    post: posting(output),
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
      return linesOf(errors);
    },
  };
}

/** Posts to the server that printed this. */
function posting(output: string) {
  const base = /attest +(\S+)\/attest/.exec(output)?.[1] ?? '';
  return async (path: string, body: object) => {
    const answer = await fetch(`${base}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const json = (await answer.json()) as { status?: { certificate?: string } } & Record<string, unknown>;
    return { outcome: `${answer.status} ${answer.headers.get('x-countersign-outcome')}`, json };
  };
}

function linesOf(log: string): readonly Record<string, unknown>[] {
  return log
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const approved = (object: object) => ({
  ...object,
  status: { conditions: [{ type: 'Approved', status: 'True', reason: 'x', message: 'x' }] },
});

test('a machine is judged, its certificate made, and a restart still knows it', async () => {
  const first = await serve();
  const { object, nodeName, identity } = nodeRequest('demo');
  const judged = await first.post('attest', { request: object });
  expect(judged).toMatchObject({ outcome: '200 verdict', json: { decision: 'approve', reason: 'Attested' } });
  expect(await first.stop()).toMatchObject([{ outcome: 'verdict', decision: 'approve', identity }]);

  const second = await serve();
  expect((await second.post('attest', { request: object })).json).toEqual(judged.json);
  const issued = await second.post('sign', approved(object));
  expect(issued.outcome).toBe('200 issued');
  const certificate = Buffer.from(issued.json.status?.certificate ?? '', 'base64');
  expect(new X509Certificate(certificate).subject).toBe(`O=system:nodes\nCN=system:node:${nodeName}`);
  expect(await second.stop()).toMatchObject([{ outcome: 'verdict', repeat: true }, { outcome: 'issued' }]);
});

test('a client that only knows /sign gets its answer from /sign', async () => {
  for (const [name, value] of Object.entries(environment())) vi.stubEnv(name, value);
  const { output, errors, stop } = await serveHere('--config', file);
  const post = posting(output());
  const { object } = nodeRequest('demo');
  expect((await post('sign', approved(object))).outcome).toBe('200 issued');
  const { object: wrong } = nodeRequest('demo', { audience: 'another deployment' });
  const refused = await post('sign', approved(wrong));
  expect(refused.outcome).toBe('422 refused');
  expect(JSON.stringify(refused.json)).toContain('AttestationInvalid');
  await stop();
  expect(linesOf(errors())).toMatchObject([
    { outcome: 'verdict', decision: 'approve' },
    { outcome: 'issued' },
    { outcome: 'verdict', decision: 'deny', codes: ['AttestationInvalid'] },
    { outcome: 'refused', codes: ['AttestationInvalid'] },
  ]);
});
