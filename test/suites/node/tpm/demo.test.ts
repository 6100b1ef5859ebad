/* `npm run demo -- tpm`: it ends well, says which package is missing, and ends badly where a part of it fails. */
import { generateKeyPairSync } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { embeddedSigner } from '../../../../adapters/embedded/signer.ts';
import { main, type DemoOverrides } from '../../../../dev/demo.ts';
import { createTerminal } from '../../../../dev/demo/terminal.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('swtpm');

async function play(overrides: DemoOverrides = {}): Promise<{ code: number; text: string }> {
  let text = '';
  const terminal = createTerminal((more) => (text += more), false);
  return { code: await main(['tpm'], { terminal, patienceMilliseconds: 120_000, ...overrides }), text };
}

afterEach(() => vi.unstubAllEnvs());

describe.skipIf(skip)('the demo of a machine with a TPM', { timeout: 150_000 }, () => {
  test('shows the challenge, its answer, and the refusal of another TPM', async () => {
    const { code, text } = await play();
    expect(text).not.toContain('✗');
    expect(code).toBe(0);
    expect(text).toMatch(/first request +Denied: AttestationChallenge$/m);
    expect(text).toMatch(/second request +Approved: .*tpm#[0-9a-f]{12}…/);
    expect(text).toMatch(/denied +TofuNodeTaken$/m);
    expect(text).not.toMatch(/BEGIN|[a-z0-9]{6}\.[a-z0-9]{16}/);
  });

  test('ends with 1 when the CA signs with another key', async () => {
    const other = embeddedSigner(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey);
    const { code } = await play({
      patienceMilliseconds: 25_000,
      wrapAuthority: (authority) => ({ ...authority, signer: { ...authority.signer, sign: (tbs) => other.sign(tbs) } }),
    });
    expect(code).toBe(1);
  });
});

test('without a TPM in software it names the packages', async () => {
  vi.stubEnv('PATH', '/nonexistent');
  const { code, text } = await play();
  expect(code).toBe(1);
  expect(text).toContain('apt-get install swtpm swtpm-tools tpm2-tools libtss2-tcti-swtpm0');
});
