/** The story of a CA that is replaced, and that it can end badly. */
import { describe, expect, test } from 'vitest';
import { main } from '../../../../../dev/demo.ts';
import type { DemoOverrides } from '../../../../../dev/demo.ts';
import { createTerminal } from '../../../../../dev/demo/terminal.ts';

async function play(overrides: DemoOverrides = {}): Promise<{ code: number; text: string }> {
  let text = '';
  const terminal = createTerminal((more) => (text += more), false);
  return { code: await main(['rotate'], { terminal, ...overrides }), text };
}

describe('the rotate demo', () => {
  test('goes through each phase, and the node logs in at each', async () => {
    const { code, text } = await play();
    expect(text).toMatch(/\nok: .* \d+\.\d s\n$/);
    expect(code).toBe(0);
    const phases = [...text.matchAll(/^ {2}ca rotate +phase (\w+)$/gm)].map(([, phase]) => phase);
    expect(phases).toEqual(['noSuccessor', 'trust', 'trust', 'switch', 'drain', 'retire', 'retire', 'done']);
    expect(text).toContain('SwitchedBeforeTrusted');
    expect(text.match(/✓ the node logs in/g)).toHaveLength(5);
    expect(text).toContain('✓ a certificate of the old CA is refused');
  });

  test('ends with 1 when the second CA signs wrongly', async () => {
    const { code, text } = await play({
      signal: AbortSignal.timeout(8_000),
      wrapAuthority: (authority) => ({
        ...authority,
        signer: {
          ...authority.signer,
          sign: (tbs) => authority.signer.sign(authority.name === 'nodes' ? tbs : Uint8Array.from(tbs).fill(0)),
        },
      }),
    });
    expect([code, text]).toEqual([1, expect.stringContaining('failed: the request was not answered in time')]);
  });
});
