/** The npm package of the command line, installed into an empty folder as a user installs it. */
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import { version } from '../../../../core/version.ts';
import { buildCli, buildCliScript, intruders, oldestNode, packCli } from '../../../../deploy/cli/build.ts';
import type { CliPackage } from '../../../../deploy/cli/build.ts';
import { buildExecutable } from '../../../../deploy/executable.ts';
import { onlyDeep } from '../../../harness/determinism/tier.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { requireTools, toolPath } from '../../../tools/tools.ts';

const { skip } = await requireTools('kubectl');
const root = resolve(import.meta.dirname, '../../../..');
const folder = temporaryFolder('cli-package');
const home = join(folder.path, 'user');
const installed = join(home, 'node_modules/countersign');
let made: CliPackage;
let executable: string;

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const places = [join(home, 'node_modules/.bin'), dirname(process.execPath), process.env['PATH'] ?? ''];
  return new Promise((done) => {
    const child = execFile(
      file,
      args,
      { cwd: home, env: { PATH: places.join(delimiter), HOME: home, ...env }, timeout: 60_000 },
      (_, stdout, stderr) => done({ code: child.exitCode, stdout, stderr }),
    );
  });
}

beforeAll(async () => {
  mkdirSync(home);
  made = await buildCli(folder.path);
  const tarball = packCli(made, folder.path);
  const npm = await run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball]);
  if (npm.code !== 0) throw new Error(npm.stderr);
  executable = buildExecutable((await buildCliScript(folder.path)).path, 'x64').path;
});
afterAll(() => folder.remove());

test('is installed without the network, without dependencies and without scripts', () => {
  expect(readdirSync(join(home, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['countersign']);
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as object;
  expect(manifest).toMatchObject({ version, license: 'Apache-2.0', engines: { node: `>=${oldestNode}` } });
  for (const absent of ['dependencies', 'scripts', 'private']) expect(manifest).not.toHaveProperty(absent);
  expect(readdirSync(installed).toSorted()).toEqual(['LICENSE', 'README.md', 'bin', 'licenses.txt', 'package.json']);
});

test('holds the command line, and nothing of the functions, the nodes, the deployment and the tests', () => {
  expect(made.sources).toContain('cli/main.ts');
  expect(intruders(made.sources)).toEqual([]);
  for (const source of ['lambdas/ca/main.ts', 'lib/app.ts', 'test/main.ts', 'dev/serve.ts', 'dev/demo/stack.ts'])
    expect(intruders([source])).toEqual([source]);
  const named = readFileSync(join(installed, 'licenses.txt'), 'utf8');
  for (const name of made.packages.keys()) expect(named).toContain(name);
});

test('each of its files can be loaded by itself: nothing was left out of the bundle', async () => {
  const files = readdirSync(join(installed, 'bin')).filter((name) => name.endsWith('.js') && name !== 'program.js');
  const urls = files.map((name) => pathToFileURL(join(installed, 'bin', name)).href);
  const text = `await import('${pathToFileURL(join(installed, 'bin/metadata.js')).href}');
    for (const url of ${JSON.stringify(urls)}) await import(url);`;
  expect(await run('node', ['--input-type=module', '--eval', text])).toMatchObject({ code: 0 });
});

test('--help reads a small part of the package', async () => {
  const hook = `import { registerHooks } from 'node:module';
    registerHooks({ load: (url, context, next) => { if (url.startsWith('file:')) process.stderr.write(url + '\\n'); return next(url, context); } });`;
  const imported = `data:text/javascript,${encodeURIComponent(hook)}`;
  const ran = await run(process.execPath, ['--import', imported, join(installed, 'bin/countersign.mjs'), '--help']);
  const files = ran.stderr
    .trim()
    .split('\n')
    .map((url) => readFileSync(new URL(url), 'utf8'));
  expect([ran.code, files.length > 2]).toEqual([0, true]);
  const all = readdirSync(join(installed, 'bin')).map((name) => readFileSync(join(installed, 'bin', name), 'utf8'));
  const bytes = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0);
  expect(bytes(files) / bytes(all)).toBeLessThan(0.03);
  expect(files.filter((text) => text.includes('@aws-sdk'))).toEqual([]);
});

test('a Node that is too old is named, with the one that is needed', async () => {
  const old = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.18.9' } });";
  const ran = await run('node', [
    '--import',
    `data:text/javascript,${encodeURIComponent(old)}`,
    join(installed, 'bin/countersign.mjs'),
  ]);
  expect(ran).toMatchObject({ code: 3, stdout: '' });
  expect(ran.stderr).toContain(`needs Node ${oldestNode} or newer`);
});

const config = 'countersign.yaml';
const text = `version: 1
clusters:
  demo:
    cas:
      nodes: {kind: imported, subject: {commonName: demo nodes}}
    profiles:
      kubernetes.io/kube-apiserver-client: {}
`;

const program = join(installed, 'bin/countersign.mjs');
type Program = readonly [file: string, ...args: readonly string[]];
const programs: readonly (readonly [label: string, program: () => Promise<Program>])[] = [
  ['the package, on the pinned Node', () => Promise.resolve([process.execPath, program])],
  ...onlyDeep.map(
    () => [`the package, on Node ${oldestNode}`, async (): Promise<Program> => [await oldest(), program]] as const,
  ),
  // Started where no Node is.
  ['the single executable', () => Promise.resolve([executable])],
];
describe.each(programs)('%s', (label, found) => {
  const inPath: Readonly<Record<string, string>> = label.startsWith('the package') ? {} : { PATH: '/nonexistent' };
  const start = (...args: readonly string[]): Promise<Ran> => startWith({}, ...args);
  const startWith = async (env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Ran> => {
    const [file, ...first] = await found();
    return run(file, [...first, ...args], { ...inPath, ...env });
  };

  test('says its version and its commands, and nothing else', async () => {
    expect(await start('--version')).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
    const help = await start('--help');
    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const command of ['config', 'csr', 'ca', 'cert', 'tofu', 'machines', 'token', 'aws'])
      expect(help.stdout).toMatch(new RegExp(`^  ${command} `, 'm'));
  });

  test('reads a configuration, makes a key and a request, and opens the embedded stores', async () => {
    writeFileSync(join(home, config), text);
    expect(await start('config', 'validate', config)).toMatchObject({ code: 0, stderr: '' });
    const asked = await start('ca', 'csr', '--data', 'data', '--config', config, '--name', 'nodes');
    expect(asked).toMatchObject({ code: 0 });
    expect(asked.stdout).toContain('BEGIN CERTIFICATE REQUEST');
    // As the dev server leaves it.
    openEmbeddedAttestations(join(home, 'data/attestations.sqlite')).close();
    expect(await start('tofu', 'list', '--data', 'data')).toMatchObject({ code: 0, stderr: '' });
  });

  test('loads the clients of AWS and of Kubernetes, and says who does not answer', async () => {
    const aws = { AWS_ENDPOINT_URL: 'http://127.0.0.1:9', AWS_REGION: 'eu-central-1' };
    const keys = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', AWS_MAX_ATTEMPTS: '1' };
    const shown = await startWith({ ...aws, ...keys }, 'ca', 'show', '--cluster', 'demo');
    expect(shown).toMatchObject({ code: 5, stdout: '' });
    const kubeconfig = join(home, 'kubeconfig');
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:9' } }],
        users: [{ name: 'u', user: { token: 't' } }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
    );
    const explained = await start('csr', 'explain', 'csr-1', '--kubeconfig', kubeconfig);
    expect(explained).toMatchObject({ code: 5, stdout: '' });
    expect(explained.stderr).toContain('127.0.0.1:9');
  });
});

test('serves clusters with attestation on EC2', async () => {
  const child = spawn(
    process.execPath,
    [join(installed, 'bin/countersign.mjs'), 'dev', '--port', '0', '--config', join(root, 'examples/attestation.yaml')],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { PATH: '', AWS_REGION: 'eu-central-1' } },
  );
  let printed = '';
  for await (const text of child.stdout) {
    printed += String(text);
    if (printed.includes('Stop with Ctrl-C')) child.kill('SIGINT');
  }
  expect(printed).toMatch(/\/v1\/clusters\/prod\/attest\n/);
  expect(printed).toContain('stopping');
});

test.skipIf(skip)('is a plugin of kubectl', async () => {
  const ran = await run(await toolPath('kubectl'), ['countersign', '--version']);
  expect(ran).toMatchObject({ code: 0, stdout: `${version}\n` });
});

test.skipIf(skip)('kubectl completes the plugin', async () => {
  const ran = await run(await toolPath('kubectl'), ['__complete', 'countersign', 'csr', 'list', '--output=j']);
  expect(ran).toMatchObject({ code: 0, stdout: '--output=json\thow to print the result\n:4\n' });
});

test('names the commit that it was built from', async () => {
  const ran = await run('countersign', ['version', '-o', 'json']);
  const commit = expect.stringMatching(/^[0-9a-f]{12}(-dirty)?$/) as string;
  expect(JSON.parse(ran.stdout)).toMatchObject({ version, commit });
});

/** From the registry, as npm has it for `node@22`. */
async function oldest(): Promise<string> {
  const place = join(folder.path, 'node-22');
  const binary = join(place, 'node_modules', `node-linux-${process.arch}`, 'bin/node');
  if (existsSync(binary)) return binary;
  const name = `node-linux-${process.arch}@${oldestNode}`;
  // With the environment of the developer, who may have a proxy or a mirror.
  await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', place, name]);
  return binary;
}
