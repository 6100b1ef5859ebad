import { spawn } from 'node:child_process';
import { createPrivateKey, generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { embeddedSigner } from '../../../adapters/embedded/signer.ts';
import type { Authority } from '../../../core/x509/leaf-certificate.ts';
import { checkIssued } from '../../../dev/demo/certificate-checks.ts';
import { main } from '../../../dev/demo.ts';
import type { DemoOverrides } from '../../../dev/demo.ts';
import { createTerminal } from '../../../dev/demo/terminal.ts';
import { makeRequest } from '../../harness/x509/requests.ts';
import { certificatesIn, csrFixture, startStack } from '../lambdas/sign/stack.ts';
import { patienceFor } from './demo/patience.ts';

async function play(argv: readonly string[], overrides: DemoOverrides = {}): Promise<{ code: number; text: string }> {
  let text = '';
  const terminal = createTerminal((more) => (text += more), false);
  return { code: await main(argv, { terminal, ...overrides }), text };
}

describe('the demo', () => {
  test('shows each step, ends well, and is plain text without a terminal', async () => {
    const { code, text } = await play([]);
    expect(code).toBe(0);
    for (const step of ['CA key', 'sign endpoint', 'watch-relay', 'request', 'approved', 'certificate', 'Failed'])
      expect(text).toMatch(new RegExp(`^  ${step} `, 'm'));
    expect(text.match(/✓/g)).toHaveLength(5);
    expect(text).not.toContain('✗');
    expect(text).toContain('SignerValidationFailure');
    expect(text).toContain('subject organization is not system:nodes');
    expect(text).toMatch(/\nok: .* \d+\.\d s\n$/);
    expect(text).not.toContain('\u001B');
  });

  test('as the program it is: exit code 0', async () => {
    const child = spawn(process.execPath, [join(import.meta.dirname, '../../../dev/demo.ts')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (more) => (text += String(more)));
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(text).toContain('✓ for exactly the key that stayed on the node');
  });

  /** Patience ends at the second try, which shows why, or at the first of a key that never answers. */
  function withSign(change: (authority: Authority) => Authority['signer']['sign'], tries = 2): DemoOverrides {
    const { signal, spend } = patienceFor(tries);
    const wrapAuthority = (authority: Authority): Authority => {
      const changed = change(authority);
      const sign: typeof changed = (tbs) => {
        spend();
        return changed(tbs);
      };
      return { ...authority, signer: { ...authority.signer, sign } };
    };
    return { wrapAuthority, signal: AbortSignal.any([signal, AbortSignal.timeout(50_000)]) };
  }
  const otherKey = embeddedSigner(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey);

  test.concurrent.each<[string, DemoOverrides, RegExp?]>([
    [
      'signs other bytes',
      withSign(
        ({ signer }) =>
          (tbs) =>
            signer.sign(Uint8Array.from(tbs).toReversed()),
      ),
    ],
    ['signs with another key', withSign(() => (tbs) => otherKey.sign(tbs))],
    ['gives noise', withSign(() => async () => ({ bytes: new Uint8Array(randomBytes(70)) }))],
    ['gives nothing', withSign(() => async () => ({ bytes: new Uint8Array() }))],
    [
      'fails',
      withSign(() => async () => Promise.reject(new Error('the key is disabled'))),
      /sign function: Unavailable, Error the key is disabled/,
    ],
    ['never answers', withSign(() => () => new Promise(() => {}), 1)],
  ])('with a key that %s ends with 1 and says why', async (_, overrides, warning = /./) => {
    const { code, text } = await play([], overrides);
    expect(code).toBe(1);
    expect(text).toMatch(warning);
    expect(text).toMatch(/\nfailed: the request was not answered in time/);
    expect(text).not.toContain('✓');
    expect(text).not.toContain('\nok');
  });

  test.each([
    [['--list'], 0, /sign +an approved request/],
    [['--list'], 0, /hijack +a bootstrap token/],
    [['--help'], 0, /Examples:/],
    [['nothing'], 2, /no scenario "nothing"/],
    [['sign', 'sign'], 2, /no scenario/],
    [['--colour'], 2, /^demo: there is no option --colour$/m],
    [['--kubeconfig', '/nonexistent'], 3, /no file \/nonexistent/],
  ] as const)('%j ends with %d', async (argv, code, text) => {
    const played = await play(argv);
    expect(played.code).toBe(code);
    expect(played.text).toMatch(text);
  });

  test('colours only add to the text', () => {
    let [plain, coloured] = ['', ''];
    for (const [terminal, text] of [
      [createTerminal((more) => (plain += more), false), 'x'],
      [createTerminal((more) => (coloured += more), true), 'x'],
    ] as const) {
      terminal.heading(text);
      terminal.check(true, text);
      terminal.check(false, text);
    }
    expect(coloured).toContain('\u001B[31m✗');
    // eslint-disable-next-line no-control-regex
    expect(coloured.replaceAll(/\u001B\[\d+m/g, '')).toBe(plain);
  });
});

describe('the checks of the demo', () => {
  const names = { commonName: 'system:node:n1', organization: 'system:nodes' };
  const question = { ...names, signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages: [] };

  async function issue() {
    const stack = await startStack();
    const { keyPem } = makeRequest({ subject: { O: 'system:nodes', CN: 'system:node:n1' } });
    const [leaf] = certificatesIn(await stack.post(csrFixture()));
    stack.close();
    return { pem: leaf?.toString() ?? '', caPem: stack.caPem, key: createPrivateKey(keyPem) };
  }
  const failed = async (checks: ReturnType<typeof checkIssued>) =>
    (await checks).flatMap(({ holds }, i) => (holds ? [] : [i]));

  test('hold for a good certificate, and each fails by itself for a bad one', async () => {
    const [one, other] = [await issue(), await issue()];
    expect(await failed(checkIssued(one.pem, one.caPem, one.key, question))).toEqual([]);
    expect(await failed(checkIssued(one.pem, other.caPem, one.key, question))).toContain(0);
    const foreignKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    expect(await failed(checkIssued(one.pem, one.caPem, foreignKey, question))).toEqual([1]);
    expect(
      await failed(checkIssued(one.pem, one.caPem, one.key, { ...question, commonName: 'system:node:n2' })),
    ).toEqual([2]);
    expect(await failed(checkIssued(one.caPem, one.caPem, one.key, question))).toEqual(
      expect.arrayContaining([1, 2, 4]),
    );
    expect(new X509Certificate(one.pem).ca).toBe(false);
  });
});
