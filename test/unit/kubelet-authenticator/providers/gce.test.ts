/** What a node makes with its metadata server, judged by the approver's own provider. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connectMetadata } from '../../../../adapters/google/metadata.ts';
import { gceProvider as approver } from '../../../../core/attestation/gce/provider.ts';
import { gceProvider } from '../../../../kubelet-authenticator/providers/gce.ts';
import { evidenceOf, portsOf } from '../../../corpus/attestation/gce/judge.ts';
import * as world from '../../../corpus/attestation/gce/machine.ts';
import { startFakeMetadata } from '../../../harness/fake-google/metadata.ts';
import type { FakeMetadata } from '../../../harness/fake-google/metadata.ts';

let server: FakeMetadata;
beforeAll(async () => {
  server = await startFakeMetadata({ vm: world.vm, key: world.keys.google, now: () => world.now });
});
afterEach(() => void (server.vm = world.vm));
afterAll(() => server.close());

const node = () => gceProvider(connectMetadata({ host: server.host, timeoutMilliseconds: 10_000 }));
const { binding, nonce, now } = world;
const question = { version: 'gce/v1', clusterName: 'blue', binding, nonce, now };

describe('evidence', () => {
  test('is accepted: a token for this request, and for no other', async () => {
    const { data, staleAt } = await node().makeEvidence(question);
    expect(Object.keys(JSON.parse(data) as object)).toEqual(['v', 'token', 'nonce']);
    const examined = await approver(world.policy, portsOf({}, [])).examine(evidenceOf(Buffer.from(data)));
    expect(examined.ok && (await examined.value.verify())).toMatchObject({
      ok: true,
      value: { identity: world.identity },
    });
    expect(server.audiences.at(-1)).toBe(world.audience());
    expect(staleAt).toBe(now + 4 * world.minute);

    const other = await node().makeEvidence({ ...question, binding: () => 'ab'.repeat(32) });
    const refused = await approver(world.policy, portsOf({}, [])).examine(evidenceOf(Buffer.from(other.data)));
    expect(refused).toMatchObject({ ok: false, problem: [{ message: 'the token was not made for this request' }] });
  });

  test('needs a service account, and says so', async () => {
    server.vm = { ...world.vm, serviceAccount: false };
    await expect(node().makeEvidence(question)).rejects.toThrow('this VM has no service account');
  });
});

describe('the machine', () => {
  test("calls itself as Google's cloud provider does, by its own address and name", async () => {
    expect(await node().describe()).toEqual({
      providerId: 'gce://my-nodes/europe-west3-b/worker-1',
      names: ['10.156.0.7', 'worker-1.europe-west3-b.c.my-nodes.internal'],
    });
    server.vm = { ...world.vm, hostname: 'worker-1.c.my-nodes.internal' };
    expect((await node().describe()).names).toEqual(['10.156.0.7', 'worker-1.c.my-nodes.internal']);
  });

  test('does not ask for a host name that its owner chose', async () => {
    server.vm = { ...world.vm, hostname: 'db.example.com' };
    expect((await node().describe()).names).toEqual(['10.156.0.7']);
  });

  test('has a name, or waits for it', async () => {
    server.vm = { ...world.vm, name: '' };
    await expect(node().describe()).rejects.toThrow('the metadata server has no instance/name');
  });
});
