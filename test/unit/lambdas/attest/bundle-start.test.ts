/** What the attest function loads when it starts, and what with the first request that needs it: bundled as it is deployed. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleAttestation, bundleCallers } from '../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { bundle } from '../../../../lib/bundle.ts';
import { entries } from '../../../../lib/functions.ts';
import { calledBy, contextIn, iamAuthorizer, sessionArn } from '../../../harness/lambda/callers.ts';
import { readAll } from '../../../harness/processes/forwarding.ts';
import { eventFixture } from '../sign/stack.ts';
import { attestPath } from './endpoint.ts';
import { requestOf } from './world.ts';

const signerName = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm';
const parsed = parseConfiguration(
  JSON.stringify({
    version: 1,
    clusters: {
      demo: {
        cas: { ca: { subject: { commonName: 'ca' } } },
        profiles: { [signerName]: {} },
        attestation: { audience: 'demo', tpm: { machines: 'listed' } },
      },
    },
  }),
  'countersign.yaml',
);
if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
const cluster = parsed.value.configuration.clusters.get('demo')!;

let folder: string;
let empty: Server;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-bundle-'));
  const { files } = bundle({
    root: resolve(import.meta.dirname, '../../../..'),
    entry: entries.attest,
    constants: {
      __COUNTERSIGN_CLUSTER__: bundleAttestation(cluster),
      __COUNTERSIGN_REGION_CERTIFICATES__: '{}',
      __COUNTERSIGN_CALLERS__: bundleCallers({ cluster: 'demo', role: 'countersign-demo-caller' }),
      __COUNTERSIGN_EMULATED_AWS__: 'by a test',
    },
  });
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
  // A table without items: what is stored is not what this is about.
  empty = createServer((incoming, outgoing) => {
    void readAll(incoming).then(() => outgoing.end('{"Responses":{}}'));
  });
  await new Promise<void>((done) => empty.listen(0, '127.0.0.1', done));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await new Promise((done) => empty.close(done));
});

/** `reflect-metadata`, which @peculiar/x509 needs, adds functions to the global object Reflect. */
const script = `
  const { handler } = require('./index.js');
  const loaded = () => typeof Reflect.getMetadata === 'function';
  const said = [loaded()];
  (async () => {
    for (const event of JSON.parse(process.argv[1])) {
      const { statusCode, body } = await handler(event, ${JSON.stringify(contextIn())});
      const { decision, reason } = JSON.parse(body);
      said.push([statusCode, decision, reason, loaded()]);
    }
    console.log('SAID' + JSON.stringify(said));
  })();`;

function eventOf(request: object): unknown {
  const event = eventFixture({
    method: 'POST',
    path: attestPath,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ request }),
  });
  return calledBy(event, iamAuthorizer(sessionArn('countersign-demo-caller')));
}

async function saidTo(events: readonly unknown[]): Promise<unknown> {
  const child = spawn(process.execPath, ['-e', script, JSON.stringify(events)], {
    cwd: folder,
    env: {
      PATH: '',
      AWS_REGION: 'eu-central-1',
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_ENDPOINT_URL_DYNAMODB: `http://127.0.0.1:${(empty.address() as AddressInfo).port}`,
      COUNTERSIGN_CLUSTER: 'demo',
      COUNTERSIGN_ATTESTATIONS_TABLE: 'attestations',
      COUNTERSIGN_CHALLENGE_KEY: 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 30_000,
  });
  const out = await text(child.stdout);
  return JSON.parse(out.split('SAID')[1] ?? `"${out}"`);
}

test('the verifier of certificate chains is loaded with the first evidence of a TPM, and not before', async () => {
  const ask = (version: string): unknown => eventOf(requestOf({ signerName, evidence: {} as never, version }));
  expect(await saidTo([ask('aws/v2'), ask('tpm/v1')])).toEqual([
    false,
    [200, 'deny', 'AttestationVersion', false],
    [200, 'deny', 'AttestationInvalid', true],
  ]);
});
