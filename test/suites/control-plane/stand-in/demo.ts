import { expect, test } from 'vitest';
import { main } from '../../../../dev/demo.ts';
import { createTerminal } from '../../../../dev/demo/terminal.ts';
import type { ControlPlane } from '../../../harness/kubernetes/control-plane.ts';

/** On a cluster without requests. */
export function demo(plane: () => ControlPlane): void {
  async function play(overrides: Parameters<typeof main>[1] = {}): Promise<{ code: number; text: string }> {
    let text = '';
    const terminal = createTerminal((more) => (text += more), false);
    return { code: await main(['--kubeconfig', plane().adminKubeconfig], { terminal, ...overrides }), text };
  }
  async function leftBehind(): Promise<unknown[]> {
    const list = await plane().admin.expectOk<{ items: unknown[] }>(
      '/apis/certificates.k8s.io/v1/certificatesigningrequests',
    );
    return list.items;
  }

  test('ends well and leaves nothing behind', async () => {
    const { code, text } = await play();
    expect(text).toMatch(/✓ names O=countersign-demo, CN=demo-client-1/);
    expect(text).toMatch(/Failed +\w+/);
    expect(code).toBe(0);
    expect(await leftBehind()).toEqual([]);
  });

  test('ends with 1 when its key signs wrongly, and leaves nothing behind either', async () => {
    const { code, text } = await play({
      patienceMilliseconds: 3_000,
      wrapAuthority: (authority) => ({
        ...authority,
        signer: { ...authority.signer, sign: (tbs) => authority.signer.sign(Uint8Array.from(tbs).fill(0)) },
      }),
    });
    expect(text).toMatch(/failed: the request was not answered in time/);
    expect(code).toBe(1);
    expect(await leftBehind()).toEqual([]);
  });
}
