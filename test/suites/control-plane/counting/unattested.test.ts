import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import { clientSigner, postNodeRequest } from '../../../harness/stack/approval.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import { onFreePort } from '../../../harness/processes/processes.ts';
import { sharedKey } from '../../../harness/x509/requests.ts';
import { startRelay, type Relay } from '../../../harness/stack/stack.ts';
import {
  approve,
  certificatePemOf,
  createClientRequests,
  createRequest,
  readRequest,
  settled,
  type Asked,
} from '../../../harness/stack/requests.ts';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/x509/test-certificates.ts';
import { requireTools } from '../../../tools/tools.ts';
import { postAsWebhookClient } from '../relay/webhook-client.ts';
import { callsOf } from './budget.ts';
import { startCountedWorld, type CountedWorld } from './counted-world.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'ministack');

const fresh = 'example.com/fresh';
const configuration = {
  version: 1,
  clusters: {
    demo: {
      cas: { ca: { subject: { commonName: 'counted CA' } } },
      profiles: {
        'kubernetes.io/kube-apiserver-client': {},
        [clientSigner]: {},
        [fresh]: { freshKeys: true, usages: { allowed: ['client auth'] }, subject: { commonNames: ['*'] } },
      },
      approval: { [clientSigner]: 'approve' },
    },
  },
};
const signers = Object.keys(configuration.clusters.demo.profiles).length;
const many = 100;
const nodeclient = 'system:certificates.k8s.io:certificatesigningrequests:nodeclient';
const selfnodeclient = 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient';

/** Every call on the way from a request to its certificate, without attestation. */
describe.skipIf(skip)('calls for a certificate, nothing attested', () => {
  let emulator: Emulator;
  let world: CountedWorld;
  let relay: Relay;
  let token: ApiClient;

  beforeAll(async () => {
    emulator = await startMiniStack({ auth: false });
    world = await startCountedWorld(emulator, configuration);
    await world.stack.bind(nodeclient, 'system:bootstrappers');
    await world.stack.bind(selfnodeclient, 'system:nodes');
    token = await world.stack.bootstrap('abcdef');
  });
  afterAll(async () => {
    await world?.stop();
    await emulator?.stop();
  });

  const ask = (name: string, more: Partial<Asked> = {}) =>
    createRequest(world.stack.plane.admin, {
      name,
      signer: 'kube-apiserver-client',
      request: { subject: { CN: 'jane' } },
      ...more,
    });
  async function askApproved(name: string, more: Partial<Asked> = {}, state = 'Approved, issued'): Promise<void> {
    await ask(name, more);
    await approve(world.stack.plane, name);
    await world.reaches(name, state);
  }

  test('the relay starts: a list and a watch for each signer', async () => {
    const calls = await world.during(async () => {
      // Fewer at once than usual: an emulator that is pressed may fail calls, which are then asked again.
      relay = await world.relay('--leader-elect', '--concurrency', '8');
    });
    expect(calls).toEqual(callsOf(['start', signers]));
  });

  test('the first certificate of a new environment, and the next one', async () => {
    world.startAnew();
    expect(await world.during(() => askApproved('cold'))).toEqual(callsOf('cold', 'approved'));
    expect(await world.during(() => askApproved('warm'))).toEqual(callsOf('approved'));
  });

  test('with a fresh key', async () => {
    expect(await world.during(() => askApproved('fresh', { signer: fresh }))).toEqual(callsOf('freshKey'));
  });

  test('refused', async () => {
    const refused = () => askApproved('refused', { usages: ['server auth'] }, 'Approved, Failed');
    expect(await world.during(refused)).toEqual(callsOf('refused'));
  });

  test('delivered again', async () => {
    const again = async () => expect(await world.deliver('warm')).toBe(200);
    expect(await world.during(again)).toEqual(callsOf('again'));
  });

  test('approved by the relay: a node that joins, and one that renews', async () => {
    let keyPem = '';
    const join = async () => {
      ({ keyPem } = (await postNodeRequest(token, 'joins', 'n1')).made);
      await world.reaches('joins', 'Approved, issued');
    };
    expect(await world.during(join)).toEqual(callsOf('pending'));
    const certificatePem = certificatePemOf(await readRequest(world.stack.plane, 'joins'));
    const node = await world.stack.plane.client({ certificatePem, keyPem });
    try {
      const renew = async () => {
        await postNodeRequest(node, 'renews', 'n1');
        await world.reaches('renews', 'Approved, issued');
      };
      expect(await world.during(renew)).toEqual(callsOf('pending'));
    } finally {
      node.close();
    }
  });

  test('denied by the relay', async () => {
    const denied = async () => {
      await postNodeRequest(token, 'denied', 'n2', { spec: { key: sharedKey('RSA-1024') } });
      await world.reaches('denied', 'Denied');
    };
    expect(await world.during(denied)).toEqual(callsOf('denied'));
  });

  test(`${many} at once, approved by another approver: nothing but ${many} times the same`, async () => {
    const burst = async () => {
      const posted = await createClientRequests(world.stack.plane, 'burst', many);
      await approve(world.stack.plane, ...posted.map(({ name }) => name));
      await settled(
        world.stack.plane,
        posted.map(({ name }) => name),
      );
    };
    expect(await world.during(burst)).toEqual(callsOf(['approved', many]));
  });

  test(`${many} at once, approved by the relay: nothing but ${many} times the same`, async () => {
    const names = Array.from({ length: many }, (_, i) => `node-${i}`);
    const burst = async () => {
      await Promise.all(names.map((name) => postNodeRequest(token, name, name)));
      await settled(world.stack.plane, names);
    };
    expect(await world.during(burst)).toEqual(callsOf(['pending', many]));
  });

  test('by webhook clients: straight, and through the relay’s proxy', async () => {
    await relay.stop();
    await ask('webhook');
    await approve(world.stack.plane, 'webhook');
    const straight = async () => expect(await world.deliver('webhook')).toBe(200);
    expect(await world.during(straight)).toEqual(callsOf('webhook'));

    await ask('proxied');
    await approve(world.stack.plane, 'proxied');
    const stored = await readRequest(world.stack.plane, 'proxied');
    const { proxy, post } = await startWebhookProxy();
    try {
      const proxied = async () => expect((await post(stored)).outcome).toBe('issued');
      expect(await world.during(proxied)).toEqual(callsOf('webhookProxy'));
    } finally {
      await proxy.stop();
    }
  });

  /** Before the same endpoint, with no signer of its own to look after. */
  async function startWebhookProxy() {
    const { dir } = world.stack.plane;
    const servers = await createTestAuthority('webhook servers');
    const serving = await servers.issue({ subject: [{ CN: ['w'] }], extensions: loopbackServerExtensions() });
    const secret = '0123456789abcdef0123456789abcdef';
    const files = {
      'webhook-cert': serving.certificatePem,
      'webhook-key': serving.keyPem,
      'webhook-token-file': secret,
    };
    const args = Object.entries(files).flatMap(([flag, content]) => {
      writeFileSync(join(dir, flag), content);
      return [`--${flag}`, join(dir, flag)];
    });
    const { proxy, port } = await onFreePort(async (port) => ({
      port,
      proxy: await startRelay({
        kubeconfig: world.stack.identity.kubeconfig(),
        endpoint: world.url,
        args: [...args, `--webhook-proxy=127.0.0.1:${port}`, '--signer-name=example.com/none'],
      }),
    }));
    const post = (object: unknown) =>
      postAsWebhookClient({ port, caPem: servers.certificatePem, login: { token: secret } }, object);
    return { proxy, post };
  }
});
