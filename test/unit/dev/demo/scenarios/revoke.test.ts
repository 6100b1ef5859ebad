/** The story of the stolen certificate, and what the stand-in for the API server obeys. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createApiServer } from '../../../../../dev/demo/api-server.ts';
import { main } from '../../../../../dev/demo.ts';
import { createTerminal } from '../../../../../dev/demo/terminal.ts';
import { authorizationConfiguration } from '../../../../../core/revocation/authorization-configuration.ts';

async function play(): Promise<{ code: number; text: string }> {
  let text = '';
  const terminal = createTerminal((more) => (text += more), false);
  return { code: await main(['revoke'], { terminal }), text };
}

test('the revoked certificate is refused and not renewed, and the other one goes on', async () => {
  const { code, text } = await play();
  expect([code, text.match(/✗/g)]).toEqual([0, null]);
  expect(text.match(/✓ /g)).toHaveLength(10);
  expect(text).toMatch(/✓ the first certificate: 403\n +the client certificate was revoked at \S+ \(keyCompromise\)\n/);
  expect(text).toContain('this key is locked by an operator');
  expect(text).toContain('node "demo-node-1" is locked by an operator');
});

test('the stand-in obeys a denial, refuses what gets no answer, and asks about nothing that is not listed', async () => {
  const [listed, other] = [randomBytes(32), randomBytes(32)].map((bytes) => bytes.toString('hex')) as [string, string];
  const answers: (readonly [number, string])[] = [
    [200, JSON.stringify({ status: { allowed: false, denied: true, reason: 'revoked' } })],
    [200, JSON.stringify({ status: { allowed: false } })],
    [503, '{}'],
  ];
  const webhook = async () => {
    const [statusCode, body] = answers.shift()!;
    return { statusCode, headers: {}, body };
  };
  const server = createApiServer(webhook, '/revoked', AbortSignal.timeout(5_000));
  expect(await server.ask(listed, 'alice')).toMatchObject({ status: 200 });
  const configuration = authorizationConfiguration({ fingerprints: [listed], kubeConfigFile: '/x' }, undefined);
  server.configure(configuration.ok && configuration.value);
  expect(await server.ask(other, 'alice')).toMatchObject({ status: 200 });
  expect(server.calls()).toBe(0);
  expect(await server.ask(listed, 'alice')).toEqual({ status: 403, message: 'revoked' });
  expect(await server.ask(listed, 'alice')).toMatchObject({ status: 200 });
  expect(await server.ask(listed, 'alice')).toMatchObject({ status: 500 });
  expect(server.calls()).toBe(3);
});
