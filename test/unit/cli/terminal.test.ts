/** Nothing that a requester, an object of a cluster or a server's message holds steers the terminal of who runs a command. */
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { json, formatOutput } from '../../../cli/output/output.ts';
import { printable, printableUpTo, escapeHidden } from '../../../core/outcome/printable-text.ts';
import { makeRequest } from '../../harness/x509/requests.ts';
import { audited, newFolder, recordOf, used } from './register.ts';
import { run } from './run.ts';

/** Colours, the window's title, clear screen by a C1 control, bidi override, separators, an invisible letter, a carriage return. */
const hostile =
  'a\u001b[31mb\u001b]0;owned\u0007\u009b2J\u202ec\u200b\u2028\u2029\u3164\ufe0f\u00a0\u007f\r\b\t\ud800"\\ünd\u0301€𝄞';
const long = `${hostile}${'y'.repeat(20_000)}`;

/** Independent of core/outcome/printable-text.ts: all that a terminal may obey, reorder or hide. */
function expectPlain(text: string): void {
  const inLines = text.replaceAll('\n', '');
  expect(inLines).not.toMatch(/\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\p{Cs}|\u00a0|\u3164|\ufe0f/u);
}

let server: Server;
let forbids = false;
let folder: string;
let kubeconfig: string;

/** Any object of any kind: hostile wherever a command might look. */
function anyObject(): object {
  const nested = { kind: 'Group', name: long, namespace: long };
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    type: 'bootstrap.kubernetes.io/token',
    metadata: {
      name: 'kube-controller-manager-\u001b[31m\u202e',
      namespace: hostile,
      uid: 'uid-1',
      resourceVersion: '1',
      labels: { 'countersign.dev/owner': 'machine', component: 'kube-controller-manager' },
    },
    roleRef: { name: 'system:certificates.k8s.io:certificatesigningrequests:nodeclient' },
    subjects: [nested],
    data: {
      'token-id': Buffer.from('abcdef').toString('base64'),
      description: Buffer.from(hostile).toString('base64'),
      ClusterConfiguration: JSON.stringify({ controllerManager: { extraArgs: { controllers: long } } }),
      kubeconfig: long,
    },
    spec: {
      signerName: 'kubernetes.io/kubelet-serving\u001b[31m',
      request: makeRequest({ subject: { O: 'a\u001b[31m', CN: 'b\u202e' } }).bytes.toString('base64'),
      usages: [hostile],
      username: hostile,
      groups: [long],
      containers: [{ command: ['kube-controller-manager', `--controllers=${long}`] }],
      template: { spec: { serviceAccountName: hostile } },
    },
    status: {
      allowed: true,
      readyReplicas: 1,
      conditions: [{ type: hostile, status: 'True', reason: hostile, message: long }],
    },
  };
}

beforeAll(async () => {
  server = createServer((incoming, outgoing) => {
    incoming.resume();
    const list = /\/(secrets|clusterrolebindings|pods|deployments|nodes)(\?|$)/.test(incoming.url ?? '');
    const found = anyObject();
    // Names of tokens must fit their Secrets for the command to go on.
    const token = { ...found, metadata: { name: 'bootstrap-token-abcdef', labels: {} } };
    const items = [found, (incoming.url ?? '').includes('secrets') ? token : found];
    outgoing.writeHead(forbids ? 403 : incoming.method === 'POST' ? 201 : 200, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify(forbids ? { kind: 'Status', message: long } : list ? { items, metadata: {} } : found));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  folder = mkdtempSync(join(tmpdir(), 'countersign-terminal-'));
  kubeconfig = join(folder, 'kubeconfig');
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } }],
      users: [{ name: 'u\u001b[31m', user: {} }],
      contexts: [{ name: 'x\u202e', context: { cluster: 'c', user: 'u\u001b[31m' } }],
      'current-context': 'x\u202e',
    }),
  );
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

const commands: readonly (readonly string[])[] = [
  ['csr', 'explain', 'n1'],
  ['csr', 'explain', 'n1', '-o', 'json'],
  ['csr', 'explain', 'n1', '-o', 'yaml'],
  ['token', 'list'],
  ['token', 'list', '-o', 'json'],
  ['token', 'create', '--audience', 'a', '-o', 'json'],
  ['token', 'delete', 'abcdef'],
  ['token', 'reconcile'],
  ['token', 'reconcile', '-o', 'json'],
  ['cluster', 'harden'],
  ['cluster', 'harden', '-o', 'json'],
  ['cluster', 'harden', '--yes'],
  ['report', '--data', '/nonexistent\u001b[31m'],
];

describe('finding 23: a hostile cluster', () => {
  test.each(commands.map((words) => ({ words, line: words.join(' ') })))('$line', async ({ words }) => {
    for (forbids of [false, true]) {
      const flags = words[0] === 'report' ? [] : ['--kubeconfig', kubeconfig];
      const { out, err } = await run([...words, ...flags]);
      expect(out + err).not.toBe('');
      expectPlain(out);
      expectPlain(err);
      const machine = words.includes('json') || words.includes('yaml');
      if (!machine) for (const line of `${out}\n${err}`.split('\n')) expect(line.length).toBeLessThan(2_500);
    }
    forbids = false;
  });
});

describe('finding 23: a hostile object in a file', () => {
  test('its name, up to what an API server takes, is shown escaped and cut', async () => {
    const object = { ...anyObject(), metadata: { name: `${hostile}${'y'.repeat(900)}`, uid: 'u' } };
    const files = { '-': JSON.stringify(object) };
    const { out } = await run(['csr', 'explain', '-'], { files });
    expectPlain(out);
    expect(out.split('\n')[0]).toMatch(/^a\\u\{1b\}\[31mb.*… for /);
    expect(out.split('\n')[0]?.length).toBeLessThan(600);
    const asJson = await run(['csr', 'explain', '-', '-o', 'json'], { files });
    expect((JSON.parse(asJson.out) as { name: string }).name).toBe(object.metadata.name);
  });

  test.each([
    ['a file name', ['csr', 'explain', 'x\u001b[31m.json']],
    ['an argument', ['csr', 'explain\u001b[31m']],
    ['invalid YAML', ['csr', 'explain', '-']],
    ['a configuration', ['config', 'validate', '-']],
  ])('%s', async (_, argv) => {
    const { out, err } = await run(argv, { files: { '-': `version: "${hostile}\n  \u001b[31m: [` } });
    expect(out + err).not.toBe('');
    expectPlain(out + err);
  });
});

test('finding 23: a hostile record of the register', async () => {
  const open = await newFolder();
  await used(open, recordOf('n\u001b[31m\u202e', '1', { providerId: hostile, lastUid: hostile, addresses: [hostile] }));
  for (const argv of [
    ['tofu', 'list', '-o', 'wide'],
    ['tofu', 'list', '-o', 'yaml'],
    ['tofu', 'show', '--node', 'n\u001b[31m\u202e'],
    ['tofu', 'reset', '--node', 'n\u001b[31m\u202e', '--reason', 'because'],
    ['machines', 'list'],
    ['report'],
  ]) {
    const { out, err } = await run([...argv, '--data', open.path]);
    expect(out + err).not.toBe('');
    expectPlain(out + err);
  }
  expect(await audited(open)).not.toEqual([]);
});

describe('what is printed', () => {
  test('JSON and YAML hold the same value, escaped', () => {
    const value = { name: hostile, list: [`x${hostile}`], plain: 'ünd €', [`k\u202e`]: 1 };
    const yaml = (each: unknown) => formatOutput('yaml', each, () => '');
    for (const text of [json(value), yaml(value)]) expectPlain(text);
    expect(JSON.parse(json(value))).toEqual(value);
    expect(parse(yaml(value))).toEqual(value);
    expect(yaml({ plain: 'ünd €' })).toBe('plain: ünd €\n');
  });

  test('lines of the program keep their form', () => {
    expect(escapeHidden('✓  “a”  ünd\n   → €\n')).toBe('✓  “a”  ünd\n   → €\n');
    expect(escapeHidden('a\r\nb\u202e')).toBe('a\\u{d}\nb\\u{202e}');
  });

  test('a value is cut after 80 characters, or after a given number', () => {
    expect(printable('x'.repeat(81))).toBe(`${'x'.repeat(80)}…`);
    expect(printableUpTo(100, 'x'.repeat(81))).toBe('x'.repeat(81));
    expect(printable('\u3164\ufe0f\u034f')).toBe('\\u{3164}\\u{fe0f}\\u{34f}');
  });
});
