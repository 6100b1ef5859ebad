/** How the process ends when it is told to: an unreachable API server does not keep it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { byTier } from '../../../harness/determinism/tier.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';

const index = join(import.meta.dirname, '../../../../lambdas/watch-relay/index.ts');
const folder = temporaryFolder('stopping');
afterAll(() => folder.remove());
const kubeconfig = join(folder.path, 'kubeconfig');
writeFileSync(
  kubeconfig,
  JSON.stringify({
    clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:1' } }],
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  }),
);

test.each(byTier<readonly NodeJS.Signals[]>({ default: ['SIGTERM'], deep: ['SIGTERM', 'SIGINT', 'SIGHUP'] }))(
  '%s: in order, with every line of the log',
  async (signal) => {
    const argv = ['--url', 'http://127.0.0.1:1', '--cluster', 'c', '--kubeconfig', kubeconfig];
    const child = spawn(process.execPath, [index, ...argv, '--metrics-address', '127.0.0.1:0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: 60_000,
      killSignal: 'SIGKILL',
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      if (!text.includes('"relay started"') && (text + chunk).includes('"relay started"')) child.kill(signal);
      text += chunk;
    });
    const [code] = (await once(child, 'close')) as [number | null];
    const lines = text.trimEnd().split('\n');
    const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect({ code, messages }).toMatchObject({ code: 0 });
    expect(messages.slice(-3)).toEqual(['stopping', 'draining', 'relay stopped']);
  },
  90_000,
);
