/** What a server that nobody vouches for can make of discovery. The real cluster is in test/suites/join/discovery.test.ts. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { detachedSignature } from '../../../../core/kubernetes/bootstrap-token.ts';
import { caCertificates } from '../../../../core/kubernetes/cluster-info.ts';
import { discoverByToken } from '../../../../kubelet-authenticator/join/discovery.ts';
import { maxAnswerBytes } from '../../../../kubelet-authenticator/join/server-calls.ts';
import type { DiscoveryCall } from '../../../../kubelet-authenticator/join/server-calls.ts';
import { processDependencies } from '../../../../kubelet-authenticator/join/join.ts';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/test-certificates.ts';
import type { TestAuthority } from '../../../harness/test-certificates.ts';

const token = { id: 'abcdef', secret: '0123456789abcdef' };
const patience = { reachMilliseconds: 0, signatureMilliseconds: 0, intervalMilliseconds: 1 };

let ours: TestAuthority;
let pin: string;
beforeAll(async () => {
  ours = await createTestAuthority('ours');
  const certificates = caCertificates(ours.certificatePem);
  pin = 'problem' in certificates ? '' : (certificates[0]?.pin ?? '');
});

/** A server that answers every call with this cluster-info, signed or not. */
async function discover(kubeconfig: string, { signed = false, pins = [pin] } = {}) {
  const calls: (DiscoveryCall & { readonly trusted: boolean })[] = [];
  const signature = signed ? { 'jws-kubeconfig-abcdef': detachedSignature(kubeconfig, token) } : {};
  const world = {
    call: (_: string, caPem: string | undefined, call: DiscoveryCall) => {
      calls.push({ ...call, trusted: caPem !== undefined });
      return Promise.resolve({ status: 200, text: JSON.stringify({ data: { kubeconfig, ...signature } }) });
    },
    log: () => {},
    sleep: () => Promise.resolve(),
    monotonic: () => 0,
  };
  const wanted = { endpoint: '10.0.0.1:6443', discoveryToken: token, loginToken: token, pins };
  return { found: await discoverByToken(wanted, world, patience), calls };
}

const manyKeys = (count: number) => Array.from({ length: count }, (_, index) => `k${index}: v\n`).join('');
const entry = (server = 'https://10.0.0.1:6443') =>
  `clusters:\n- name: ""\n  cluster:\n    server: ${server}\n    certificate-authority-data: ${Buffer.from(ours.certificatePem).toString('base64')}\n`;

describe('finding 16: before the server is trusted', () => {
  test('a cluster-info of 150 000 keys is refused by its length', async () => {
    const { found, calls } = await discover(manyKeys(150_000));
    expect(found).toMatchObject({
      ok: false,
      why: 'ClusterInfoMalformed',
      message: expect.stringContaining('65536') as unknown,
    });
    expect(calls).toHaveLength(1);
  });

  test('pins are compared before anything is parsed: what is no kubeconfig at all has another CA first', async () => {
    const other = await createTestAuthority('other');
    const text = `{{{ certificate-authority-data: ${Buffer.from(other.certificatePem).toString('base64')}\n`;
    expect((await discover(text)).found).toMatchObject({ why: 'CaNotPinned' });
    // Signed by whoever knows the token: the same.
    expect((await discover(text, { signed: true })).found).toMatchObject({ why: 'CaNotPinned' });
  });

  test('it is parsed only when the server has shown a certificate of a pinned CA', async () => {
    const { found, calls } = await discover(`{{{ ${entry()}`, { signed: true });
    expect(found).toMatchObject({
      why: 'ClusterInfoMalformed',
      message: expect.stringContaining('JSON nor YAML') as unknown,
    });
    expect(calls.map(({ trusted }) => trusted)).toEqual([false, true]);
  });

  test('the CA of another entry than the chosen one does not count', async () => {
    const other = await createTestAuthority('other');
    const stranger = Buffer.from(other.certificatePem).toString('base64');
    const text = `${entry().replace('name: ""', 'name: aside')}- name: ""\n  cluster: {server: "https://x", certificate-authority-data: ${stranger}}\n`;
    const { found, calls } = await discover(text, { signed: true });
    expect(found).toMatchObject({ why: 'CaNotPinned' });
    expect(calls.some(({ bearer }) => bearer !== undefined)).toBe(false);
  });

  test.each([
    ['YAML', () => entry()],
    [
      'JSON',
      () =>
        JSON.stringify({
          clusters: [
            {
              name: '',
              cluster: {
                server: 'https://10.0.0.1:6443',
                'certificate-authority-data': Buffer.from(ours.certificatePem).toString('base64'),
              },
            },
          ],
        }),
    ],
  ])('an honest one in %s is found, and the token is shown', async (_, text) => {
    const { found, calls } = await discover(text(), { signed: true });
    // This server knows no token.
    expect(found).toMatchObject({ why: 'TokenCannotLogIn' });
    expect(calls.map(({ method, bearer }) => [method, bearer !== undefined])).toEqual([
      ['GET', false],
      ['GET', false],
      ['POST', true],
    ]);
  });
});

describe('finding 16: an answer without an end', () => {
  let sent = 0;
  let server: ReturnType<typeof createServer>;
  let port: number;
  beforeAll(async () => {
    const own = await ours.issue({ subject: [{ CN: ['kube-apiserver'] }], extensions: loopbackServerExtensions() });
    const chunk = Buffer.alloc(65_536, '{"a":');
    server = createServer({ key: own.keyPem, cert: own.certificatePem }, (_, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      const more = (): void => {
        while (!outgoing.destroyed) {
          sent += chunk.length;
          if (!outgoing.write(chunk)) return void outgoing.once('drain', more);
        }
      };
      more();
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test('is read to the cap and refused', async () => {
    const wanted = { endpoint: `127.0.0.1:${port}`, discoveryToken: token, loginToken: token, pins: [pin] };
    const found = await discoverByToken(wanted, { ...processDependencies(), log: () => {} }, patience);
    expect(found).toMatchObject({
      why: 'ClusterInfoMalformed',
      message: expect.stringContaining(`${maxAnswerBytes} bytes`) as unknown,
    });
    // What waits in the buffers of two sockets is a few MiB.
    expect(sent).toBeLessThan(maxAnswerBytes + 16 * 1_048_576);
  });
});
