import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../harness/processes.ts';
import { kubernetesMinor } from '../../tools/pins.ts';
import { toolNames } from '../../tools/tools.ts';

/*
 * The installer as a process of its own, with a compiler of ours: what it does when there is none, when two want the
 * same tool at once and when a build is killed. The real compilers are exercised by whoever runs the other suites.
 */
const INSTALLER = join(import.meta.dirname, '../../tools/install.ts');

let folder: { path: string; remove: () => void };
beforeEach(() => {
  folder = temporaryFolder('tools');
  for (const name of ['bin', 'assets', 'cache']) mkdirSync(join(folder.path, name));
});
afterEach(() => folder.remove());

describe('a tool that nothing provides', () => {
  test('is named with what to install', async () => {
    const { code, stderr } = await install(['kube-apiserver'], { PATH: '' });
    expect(stderr).toContain('missing  kube-apiserver: to be built, it needs Go 1.26 or newer (no `go` on PATH)');
    expect(code).toBe(1);
  });

  test('is reported and no error for a whole run, except in CI', async () => {
    const outside = await install([], { PATH: '', CI: '' });
    expect(outside).toMatchObject({ code: 0 });
    expect(outside.stderr.match(/^missing /gm)).toHaveLength(toolNames.length);
    expect(await install([], { PATH: '', CI: 'true' })).toMatchObject({ code: 1 });
  });

  test('is not built by a Go that is too old', async () => {
    writeProgram('bin/go', 'echo go1.25.9');
    const { stderr } = await install(['etcd'], { PATH: join(folder.path, 'bin') });
    expect(stderr).toContain('(found go1.25.9)');
  });
});

describe('KUBEBUILDER_ASSETS', () => {
  test('is used if it is of the minor version under test, whatever the patch', async () => {
    writeProgram('assets/kube-apiserver', `echo Kubernetes v${kubernetesMinor}.99`);
    const { stdout } = await install(['kube-apiserver'], { PATH: '' });
    expect(stdout).toContain(join(folder.path, 'assets/kube-apiserver'));
  });

  test('is passed over, and this said, if it is of another', async () => {
    writeProgram('assets/kube-apiserver', 'echo Kubernetes v1.34.1');
    const { code, stderr } = await install(['kube-apiserver'], { PATH: '' });
    expect(stderr).toContain(`KUBEBUILDER_ASSETS has Kubernetes v1.34.1, need v${kubernetesMinor}.*`);
    expect(code).toBe(1);
  });
});

describe('the cache', () => {
  const builds = () => readFileSync(join(folder.path, 'builds'), 'utf8').trim().split('\n').length;

  test('has one build when two want the same tool, and both get it', async () => {
    const bothAreThere = join(folder.path, 'both');
    writeCompiler(`for i in $(seq 600); do [ -e ${bothAreThere} ] && break; sleep 0.1; done`);
    const both = [start(['etcd']), start(['etcd'])];
    for (const { stderr } of both)
      stderr?.on('data', (text: Buffer) => {
        if (text.includes('another process is building')) writeFileSync(bothAreThere, '');
      });
    const results = await Promise.all(both.map(ended));
    expect(results.map(({ code }) => code)).toEqual([0, 0]);
    expect(results[0]?.stdout).toBe(results[1]?.stdout);
    expect(builds()).toBe(1);
    expect(results.map(({ stderr }) => stderr).join('')).toContain('another process is building');
  });

  test('has nothing of a build that was killed, and the next one is not in its way', async () => {
    writeCompiler('sleep 2');
    const killed = start(['etcd']);
    while (!existsSync(join(folder.path, 'builds'))) await sleep(20);
    killed.kill('SIGKILL');
    await once(killed, 'exit');

    writeCompiler('');
    const { code, stdout } = await install(['etcd']);
    expect(code).toBe(0);
    expect(existsSync(stdout.trim().split('  ').at(-1) ?? '')).toBe(true);
    expect(builds()).toBe(2);
  });

  test('has nothing of a build that failed, and the end of its output is shown', async () => {
    writeProgram('bin/go', `[ "$1" != env ] || { echo go1.26.0; exit; }\necho undefined: sense >&2\nexit 1`);
    expect((await install(['etcd'])).stderr).toContain('undefined: sense');
    writeCompiler('');
    expect((await install(['etcd'])).code).toBe(0);
  });
});

function writeProgram(name: string, script: string): void {
  writeFileSync(join(folder.path, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

/** A Go that counts its builds and makes an empty program at the place named by -o. */
function writeCompiler(meanwhile: string): void {
  const script = `
    [ "$1" != env ] || { echo go1.26.0; exit; }
    echo build >> ${folder.path}/builds
    while [ "$1" != -o ]; do shift; done
    ${meanwhile}
    : > "$2"
  `;
  writeProgram('bin/go', script);
}

function start(names: string[], environment: Record<string, string> = {}): ChildProcess {
  return spawn(process.execPath, [INSTALLER, ...names], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: `${folder.path}/bin:/usr/bin:/bin`,
      HOME: folder.path, // where pyenv is looked for
      KUBEBUILDER_ASSETS: join(folder.path, 'assets'),
      COUNTERSIGN_TOOLS_CACHE: join(folder.path, 'cache'),
      ...environment,
    },
  });
}

const install = (names: string[], environment: Record<string, string> = {}) => ended(start(names, environment));

async function ended(child: ChildProcess) {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}
