import { dirname } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { main } from '../../../../dev/demo.ts';
import { createTerminal } from '../../../../dev/demo/terminal.ts';
import { requireTools, toolPath } from '../../../tools/tools.ts';
import { describeControlPlane } from './story.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'kubeadm');

describeControlPlane('kubeadm', { skip, kills: 2 });

afterEach(() => vi.unstubAllEnvs());

async function demo(path: string): Promise<{ readonly code: number; readonly text: string }> {
  vi.stubEnv('PATH', path);
  vi.stubEnv('COUNTERSIGN_TOOLS_CACHE', '/nonexistent');
  let text = '';
  const code = await main(['kubeadm'], { terminal: createTerminal((more) => (text += more), false) });
  return { code, text };
}

test.skipIf(skip)('npm run demo -- kubeadm shows it, and says what it needs where there is no kubeadm', async () => {
  const { code, text } = await demo(dirname(await toolPath('kubeadm')));
  expect([code, text.match(/✓/g)?.length, text.includes('✗')]).toEqual([0, 8, false]);
  expect(text).toContain('admin.conf: SubjectNotPermitted');
  expect(await demo('/nonexistent')).toMatchObject({
    code: 1,
    text: expect.stringContaining('needs kubeadm') as string,
  });
});
