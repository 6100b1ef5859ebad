import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../harness/processes/processes.ts';

/*
 * Installers as processes, with a compiler of the test: two processes that want the same tool at once, and a build that is
 * killed. test/unit/tools has the rest. The other suites exercise the real compilers.
 */
const INSTALLER = join(import.meta.dirname, '../../../tools/install.ts');

let folder: { path: string; remove: () => void };
beforeEach(() => {
  folder = temporaryFolder('tools');
  for (const name of ['bin', 'cache']) mkdirSync(join(folder.path, name));
});
afterEach(() => folder.remove());

describe('the cache', () => {
  const builds = () => readFileSync(join(folder.path, 'builds'), 'utf8').trim().split('\n').length;

  test('has one build when two want the same tool, and both get it', async () => {
    const bothAreThere = join(folder.path, 'both');
    writeCompiler(`for i in $(seq 600); do [ -e ${bothAreThere} ] && break; sleep 0.1; done`);
    const both = [start(['etcd']), start(['etcd'])];
    for (const { stderr } of both)
      stderr?.on('data', (text: Buffer) => {
        if (text.includes('waiting for another process')) writeFileSync(bothAreThere, '');
      });
    const results = await Promise.all(both.map(ended));
    expect(results.map(({ code }) => code)).toEqual([0, 0]);
    expect(results[0]?.stdout).toBe(results[1]?.stdout);
    expect(builds()).toBe(1);
    expect(results.map(({ stderr }) => stderr).join('')).toContain('waiting for another process');
  });

  test('has nothing of a build that was killed, and the next one is not in its way', async () => {
    writeCompiler('sleep 2');
    const killed = start(['etcd']);
    while (!existsSync(join(folder.path, 'builds'))) await sleep(20);
    killed.kill('SIGKILL');
    await once(killed, 'exit');

    writeCompiler('');
    const { code, stdout } = await ended(start(['etcd']));
    expect(code).toBe(0);
    expect(existsSync(stdout.trim().split('  ').at(-1) ?? '')).toBe(true);
    expect(builds()).toBe(2);
  });
});

function writeProgram(name: string, script: string): void {
  writeFileSync(join(folder.path, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

/** A Go that counts its builds and makes an empty etcd in the folder named by -o. */
function writeCompiler(meanwhile: string): void {
  const script = `
    [ "$1" != env ] || { echo go1.26.0; exit; }
    echo build >> ${folder.path}/builds
    while [ "$1" != -o ]; do shift; done
    ${meanwhile}
    : > "$2"server
  `;
  writeProgram('bin/go', script);
}

function start(names: string[]): ChildProcess {
  return spawn(process.execPath, [INSTALLER, ...names], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: `${folder.path}/bin:/usr/bin:/bin`,
      HOME: folder.path, // where pyenv is looked for
      COUNTERSIGN_TOOLS_CACHE: join(folder.path, 'cache'),
    },
  });
}

async function ended(child: ChildProcess) {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}
