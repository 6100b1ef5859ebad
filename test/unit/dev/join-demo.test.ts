/** The story of the machine that joins, and that it can end badly: with each part of the platform and of ours failing. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { embeddedSigner } from '../../../adapters/embedded/signer.ts';
import { main } from '../../../dev/demo.ts';
import type { DemoOverrides } from '../../../dev/demo.ts';
import { createTerminal } from '../../../dev/demo/terminal.ts';
import { createStandInAws } from '../../../dev/aws/stand-in-aws.ts';
import { startStandInImds } from '../../../dev/aws/stand-in-imds.ts';
import { connectImds } from '../../../adapters/aws/imds.ts';
import { byTier } from '../../harness/determinism/tier.ts';
import { patienceFor } from './demo/patience.ts';

/** A key that is not the CA's; after its second try, which shows why, patience ends. */
function otherCaKey(): DemoOverrides {
  const otherKey = embeddedSigner(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey);
  const { signal, spend } = patienceFor(2);
  return {
    wrapAuthority: (authority) => ({
      ...authority,
      signer: {
        ...authority.signer,
        sign(tbs) {
          spend();
          return otherKey.sign(tbs);
        },
      },
    }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(80_000)]),
  };
}

async function play(overrides: DemoOverrides = {}): Promise<{ code: number; text: string }> {
  let text = '';
  const terminal = createTerminal((more) => (text += more), false);
  // The programs are started from their sources: on a machine with other work that takes its time.
  return { code: await main(['join'], { terminal, patienceMilliseconds: 60_000, ...overrides }), text };
}

describe('the join demo', { timeout: 90_000 }, () => {
  test('shows discovery, evidence, certificate, the cached call and renewal, and ends well', async () => {
    const { code, text } = await play();
    expect(text).not.toContain('✗');
    expect(code, text).toBe(0);
    expect(text).toMatch(/exit code 1 +CaNotPinned$/m);
    expect(text.match(/^ {2}Approved +AutoApproved$/gm)).toHaveLength(2);
    expect(text.match(/✓ signed by CN=demo ca, the CA of the trust bundle/g)).toHaveLength(2);
    expect([...text.matchAll(/request +node-csr-\S+, by (\S+)$/gm)].map(([, user]) => user)).toEqual([
      expect.stringMatching(/^system:bootstrap:[a-z0-9]{6}$/),
      'system:node:demo-node-1',
    ]);
    expect(text).toContain('✓ the same bytes, from the cache');
    expect(text).toMatch(/next call at +\S+Z, after (70|7\d|80) % of the lifetime$/m);
    expect(text).toContain('meta-data/identity-credentials/ec2/security-credentials/ec2-instance');
    expect(text).not.toContain('instance-identity');
    expect(text).toMatch(/\nok: the machine joined with its own evidence, .* \d+\.\d s\n$/);
    expect(Math.max(...text.split('\n').map(({ length }) => length))).toBeLessThan(140);
    expect(text).not.toMatch(/k8s-aws-v1|X-Amz|BEGIN|[a-z0-9]{6}\.[a-z0-9]{16}/);
  });

  const failing: readonly [string, () => DemoOverrides, RegExp][] = [
    [
      'with a key that is not the CA’s',
      // Made when its test begins: its patience has an end.
      otherCaKey,
      /failed: kubelet-authenticator did not answer in time.*\n(.*\n)*.*(sign function|relay): /,
    ],
    [
      'with a machine that was named otherwise by who may tag it',
      () => ({
        wrapAws: (aws) => ({
          ...aws,
          ec2: {
            async describeInstance(place, id) {
              const found = await aws.ec2.describeInstance(place, id);
              return found === 'notFound' ? found : { ...found, tags: new Map(found.tags).set('Name', 'demo-node-2') };
            },
          },
        }),
      }),
      /failed: the plugin ended with 1:\n(.*\n)*.*\(IdentityNotAllowed\)/,
    ],
    [
      'with a platform that takes the proof for another machine’s',
      () => ({
        wrapAws: (aws) => ({
          ...aws,
          async sts(request) {
            const answer = await aws.sts(request);
            return { ...answer, body: answer.body.replaceAll(/i-[0-9a-f]{17}/g, 'i-00000000000000000') };
          },
        }),
      }),
      /failed: the plugin ended with 1:/,
    ],
  ];
  // Each starts five processes.
  test.concurrent.each(byTier({ default: failing.slice(0, 2), deep: failing }))(
    '%s ends with 1 and says why',
    async (_, overrides, reason) => {
      const { code, text } = await play(overrides());
      expect(text).toMatch(reason);
      expect(code).toBe(1);
      expect(text).not.toContain('\nok');
      expect(text).not.toContain('✓ signed by');
    },
  );
});

test('on a busy machine the failure names the likely cause', async () => {
  const { code, text } = await play({ signal: AbortSignal.timeout(1) });
  expect(code).toBe(1);
  expect(text).toMatch(
    /\nfailed: kubelet-authenticator did not answer in time: a busy machine\? Run it again\. Its standard error:\n/,
  );
});

describe('the stand-in’s metadata service', () => {
  test('answers nothing without a token of its own', async () => {
    const aws = createStandInAws('kubernetes.io/cluster/demo');
    const machine = aws.launch('n1');
    const imds = await startStandInImds(machine);
    try {
      const path = `${imds.url}/latest/meta-data/instance-id`;
      expect((await fetch(path)).status).toBe(401);
      expect((await fetch(path, { headers: { 'x-aws-ec2-metadata-token': 'guessed' } })).status).toBe(401);
      expect((await fetch(`${imds.url}/latest/api/token`)).status).toBe(401);
      expect(imds.answered).toEqual([]);
      const client = connectImds({ endpoint: imds.url });
      expect(await client.read('meta-data/instance-id')).toBe(machine.instanceId);
      expect(await client.read('meta-data/unknown')).toBeUndefined();
    } finally {
      await imds.close();
    }
  });
});
