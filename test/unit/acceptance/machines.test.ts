/** What the instances of the acceptance run do: their user data, executed, and what their console is read for. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { newestText, toLines } from '../../../acceptance/probe/console-lines.ts';
import { userData, userDataBytes } from '../../../acceptance/resources/machines.ts';
import { decodeEvidence } from '../../../core/attestation/evidence/evidence.ts';
import { decodeRequest } from '../../../core/x509/certificate-request.ts';
import { startFakeImds } from '../../harness/fake-aws/machine/imds.ts';
import { createFakeAws } from '../../harness/fake-aws/world.ts';
import { temporaryFolder } from '../../harness/processes/processes.ts';

const [account, region, run] = ['444455556666', 'eu-central-1', 'accept-0123abcd'];
const task = {
  run,
  nodeName: `${run}-node`,
  clusterName: run,
  audience: `${account}/${region}/${run}`,
  signerName: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws',
  rounds: 2,
  pauseSeconds: 0,
};

/** Runs the user data as cloud-init does, with another console. */
async function boot(data: Uint8Array, imds: string): Promise<string> {
  const folder = temporaryFolder('machine');
  onTestFinished(() => folder.remove());
  const [script, console] = [join(folder.path, 'user-data'), join(folder.path, 'console')];
  writeFileSync(script, gunzipSync(data));
  await promisify(execFile)('bash', [script], {
    timeout: 30_000,
    env: {
      PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
      TMPDIR: folder.path,
      AWS_EC2_METADATA_SERVICE_ENDPOINT: imds,
      COUNTERSIGN_CONSOLE: console,
    },
  });
  return readFileSync(console, 'utf8');
}

test('the user data fits into EC2’s limit, and writes requests with fresh evidence to the console', async () => {
  const aws = createFakeAws();
  const { instanceId } = aws.launch({ account, region });
  const imds = await startFakeImds({ aws, instanceId });
  onTestFinished(() => imds.close());
  const data = userData(task);
  expect(data.length).toBeLessThanOrEqual(userDataBytes);
  const console = await boot(data, imds.url);
  const [first, second] = [
    newestText(console.slice(0, console.indexOf(`${run} 2 `)), run, 0),
    newestText(console, run, 1),
  ];
  expect([first?.round, second?.round]).toEqual([1, 2]);
  const texts = [first?.text ?? '', second?.text ?? ''];
  for (const text of texts) {
    const request = decodeRequest(Buffer.from(text));
    if (!request.ok) throw new Error(request.problem[0].message);
    expect(request.value.subject.commonName).toBe(`system:node:${task.nodeName}`);
    const evidence = decodeEvidence(request.value.evidence);
    expect(evidence.ok && evidence.value?.version).toBe('aws/v2');
  }
  expect(new Set(texts).size).toBe(2);
  // A role's credentials reach the console as a signature only.
  expect(console).not.toMatch(/SecretAccessKey/);
});

test('a metadata service that is silent is named on the console', async () => {
  const console = await boot(userData({ ...task, rounds: 1 }), 'http://127.0.0.1:9');
  expect(newestText(console, run, 0)).toBeUndefined();
  expect(console).toContain(`${run}: the metadata service cannot be reached`);
});

test('a program that does not fit is an error here, and not of EC2', () => {
  // What does not compress.
  const nodeName = Array.from({ length: 9_000 }, (_, index) => Math.imul(index, 2_654_435_761).toString(36)).join('');
  expect(() => userData({ ...task, nodeName })).toThrow(/at most 16384/);
});

const text = 'a request of several lines\n'.repeat(40);

test('lines of others between ours do not matter, and of the complete rounds the newest counts', () => {
  const lines = `${toLines(run, 1, text)}${toLines(run, 2, `${text}2`)}`.replaceAll(
    '\n',
    '\r\n[   12.3] kernel: noise\r\n',
  );
  expect(newestText(lines, run, 0)).toEqual({ round: 2, text: `${text}2` });
  expect(newestText(lines, run, 2)).toBeUndefined();
  expect(newestText(lines, 'accept-ffffffff', 0)).toBeUndefined();
});

test.each([
  ['a line is missing', (lines: string) => lines.replace(/^.* 3\/.*\n/m, '')],
  ['a line is cut by another', (lines: string) => lines.replace(/( 3\/\d+ .{9})/, '$1\n[ 1] kernel: noise\n')],
  ['the end is not there yet', (lines: string) => lines.slice(0, -40)],
])('an earlier round is taken if of the last one %s', (_, damage) => {
  const console = `${toLines(run, 1, text)}${damage(toLines(run, 2, text))}`;
  expect(newestText(console, run, 0)).toEqual({ round: 1, text });
});
