import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { join } from 'node:path';
import { installClusterApi } from '../../../harness/cluster-api/definitions.ts';
import { createCluster } from '../../../harness/cluster-api/machine-life.ts';
import {
  clusterRole,
  clusterRoleBinding,
  createObject,
  deleteObject,
  subject,
  type AnyObject,
} from '../../../harness/kubernetes/objects.ts';
import { untilGranted, untilTaken } from '../../../harness/kubernetes/rights.ts';
import { requireTools } from '../../../tools/tools.ts';
import { countersign } from './command-line.ts';
import { discovery } from './discovery.ts';
import { removeNodeFolders, runJoin, startKubeadmCluster } from './kubeadm-cluster.ts';
import type { KubeadmCluster } from './kubeadm-cluster.ts';
import { startStranger } from './stranger.ts';

const { skip } = await requireTools(
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kubeadm',
  'kubectl',
  'cluster-api',
);

const audience = '123456789012/eu-central-1/prod';
const group = 'system:bootstrappers:kubeadm:default-node-token';
const hour = 3_600_000;

interface Secret {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly data: Record<string, string>;
}

describe.skipIf(skip)('a cluster that kubeadm set up', () => {
  let cluster: KubeadmCluster;
  beforeAll(async () => {
    cluster = await startKubeadmCluster();
    await cluster.waitForSignature('abcdef');
  });
  afterAll(async () => {
    await cluster?.stop();
    removeNodeFolders();
  });

  const token = (...argv: string[]) => countersign(cluster.plane.adminKubeconfig, 'token', ...argv);
  const secretPath = (id: string) => `/api/v1/namespaces/kube-system/secrets/bootstrap-token-${id}`;
  const secret = async (id: string) => cluster.plane.admin.expectOk<Secret>(secretPath(id));
  const value = ({ data }: Secret, key: string) => Buffer.from(data[key] ?? '', 'base64').toString();
  const exists = async (id: string) => (await cluster.plane.admin.request(secretPath(id))).status === 200;

  /** Everything is on this machine, so the flag is needed: cluster-info names a loopback address. */
  const create = (...argv: string[]) => token('create', '--server', cluster.endpoint, ...argv);

  // First: what follows takes away what kubeadm made.
  describe('kubelet-authenticator join', () => {
    discovery(() => cluster);
  });

  describe('countersign token create', () => {
    test('prints a command with which a machine joins, as printed', async () => {
      const made = await create('--audience', audience, '--cluster', 'prod');
      expect(made).toMatchObject({ code: 0 });
      const [program, verb, ...argv] = made.out.trim().split(' ');
      expect([program, verb]).toEqual(['kubelet-authenticator', 'join']);
      expect(argv).toEqual([
        cluster.endpoint,
        '--token',
        expect.stringMatching(/^[a-z0-9]{6}\.[a-z0-9]{16}$/),
        '--discovery-token-ca-cert-hash',
        cluster.pin,
        '--audience',
        audience,
        '--cluster-name',
        'prod',
        '--provider',
        'aws',
      ]);
      // At once: the signature that join looks for was waited for.
      expect(await runJoin(argv)).toMatchObject({ code: 0 });
    });

    test('makes the Secret that kubeadm makes', async () => {
      const theirs = (await cluster.kubeadm(['token', 'create', '--ttl', '2h', '--description', 'rack 7'])).trim();
      const ours = await token(
        'create',
        '--audience',
        audience,
        '--ttl',
        '2h',
        '--description',
        'rack 7',
        '-o',
        'token',
      );
      const [a, b] = await Promise.all([secret(theirs.slice(0, 6)), secret(ours.out.slice(0, 6))]);
      expect(Object.keys(b.data).toSorted()).toEqual(Object.keys(a.data).toSorted());
      for (const key of [
        'description',
        'usage-bootstrap-authentication',
        'usage-bootstrap-signing',
        'auth-extra-groups',
      ])
        expect(value(b, key)).toBe(value(a, key));
      const [first, second] = [a, b].map((each) => Date.parse(value(each, 'expiration')));
      expect(Math.abs(first! - second!)).toBeLessThan(30_000);
      // And kubeadm reads it.
      expect(await cluster.kubeadm(['token', 'list'])).toContain(ours.out.trim());
    });

    test('takes audience and cluster from countersign.yaml', async () => {
      const file = join(import.meta.dirname, '../../../../examples/attestation.yaml');
      const made = await create('--config', file, '--cluster', 'prod');
      expect(made.out).toContain('--audience 999900001111/eu-central-1/prod --cluster-name prod --provider aws');
      expect(made.code).toBe(0);
    });

    test('makes a given token once', async () => {
      expect(await token('create', 'given0.0123456789abcdef', '-o', 'token')).toMatchObject({
        code: 0,
        out: 'given0.0123456789abcdef\n',
      });
      expect(await token('create', 'given0.0123456789abcdef', '-o', 'token')).toMatchObject({
        code: 6,
        err: expect.stringContaining('a token with id "given0" already exists') as unknown,
      });
    });

    test('that never expires has no date', async () => {
      const made = await create('--ttl', '0', '-o', 'json', '--audience', audience);
      const { id, ttl } = { ...(JSON.parse(made.out) as { token: string; ttl: string }), id: '' };
      expect(id).toBe('');
      expect(ttl).toBe('<forever>');
      const { token: text } = JSON.parse(made.out) as { token: string };
      expect((await secret(text.slice(0, 6))).data).not.toHaveProperty('expiration');
    });

    test.each<[string, string[], string]>([
      ['usages', ['--usages', 'signing,sleeping'], 'invalid bootstrap token usage string: sleeping'],
      ['groups', ['--groups', 'system:masters'], 'bootstrap group "system:masters" is invalid'],
      ['a token', ['ABCDEF.0123456789abcdef'], 'the bootstrap token was not of the form'],
      ['a ttl', ['--ttl', 'soon'], 'It must look like 30m, 24h or 1h30m.'],
      ['no audience', [], 'which deployment checks the evidence of machines?'],
      ['a machine and a pool', ['--machine', 'a', '--pool', 'b'], 'cannot be used with'],
      ['an address', ['--audience', audience, '--server', 'https://x'], '--server is <host>:<port>'],
      ['usages', ['--audience', audience, '--usages', 'signing'], 'without the usages signing and authentication'],
    ])('refuses wrong %s, and makes nothing', async (_, argv, words) => {
      const before = (await token('list', '-o', 'json')).out;
      expect(await token('create', ...argv)).toMatchObject({ code: 2, err: expect.stringContaining(words) as unknown });
      expect(JSON.parse((await token('list', '-o', 'json')).out)).toHaveLength(
        (JSON.parse(before) as unknown[]).length,
      );
    });

    test('warns of a group that may not ask, and of one that is approved without evidence', async () => {
      const others = await token('create', '-o', 'token', '--groups', 'system:bootstrappers:others');
      expect(others).toMatchObject({ code: 0, out: expect.stringMatching(/^[a-z0-9.]{23}\n$/) as unknown });
      expect(others.err).toContain('--clusterrole=system:node-bootstrapper --group=system:bootstrappers:others');
      const ours = await create('--audience', audience);
      expect(ours.err).toContain('kube-controller-manager approves requests of this token without evidence');
      const autoapprove = 'kubeadm:node-autoapprove-bootstrap';
      await deleteObject(cluster.plane.admin, clusterRoleBinding(autoapprove, '', {}));
      const right = { verb: 'create', group: 'certificates.k8s.io', resource: 'certificatesigningrequests' };
      const bootstrapper = { user: 'system:bootstrap:aaaaaa', groups: [group] };
      await untilTaken(cluster.plane, bootstrapper, { ...right, subresource: 'nodeclient' });
      const quiet = await create('--audience', audience);
      expect(quiet).toMatchObject({ code: 0, err: expect.stringMatching(/^countersign: server [^\n]*\n$/) as unknown });
    });

    describe('prints a line that works or none, and makes no token for none:', () => {
      const tokens = async () =>
        (JSON.parse((await token('list', '-o', 'json')).out) as { id: string }[]).map(({ id }) => id);
      const attempt = async (...argv: string[]) => {
        const before = await tokens();
        const ran = await token('create', '--audience', audience, ...argv);
        return { ...ran, made: (await tokens()).filter((id) => !before.includes(id)) };
      };
      const none = (code: number, words: string) => ({
        code,
        out: '',
        err: expect.stringContaining(words) as unknown,
        made: [],
      });
      const info = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
      const patch = (path: string, body: object) =>
        cluster.plane.admin.expectOk(path, {
          method: 'PATCH',
          headers: { 'content-type': 'application/merge-patch+json' },
          body: JSON.stringify(body),
        });

      test('a loopback address that no flag asks for', async () => {
        expect(await attempt()).toEqual(none(3, '--server HOST:PORT names where machines find it'));
      });

      test('an address where another server answers', async () => {
        const stranger = await startStranger(cluster.plane.url, {});
        try {
          const refused = await attempt('--server', stranger.endpoint);
          expect(refused).toEqual(none(3, `join would not trust https://${stranger.endpoint}`));
        } finally {
          await stranger.stop();
        }
      });

      test('a group that may not ask for certificates', async () => {
        expect(await attempt('--server', cluster.endpoint, '--groups', 'system:bootstrappers:others')).toEqual(
          none(3, '--clusterrole=system:node-bootstrapper'),
        );
      });

      test('no CA in cluster-info, and no cluster-info', async () => {
        const { kubeconfig = '' } = await cluster.clusterInfo();
        try {
          await patch(info, { data: { kubeconfig: kubeconfig.replace(/certificate-authority-data: \S+/, '') } });
          expect(await attempt('--server', cluster.endpoint)).toEqual(
            none(3, 'is not usable (data does not contain any valid'),
          );
          await patch(info, { data: { kubeconfig: null } });
          expect(await attempt('--server', cluster.endpoint)).toEqual(none(4, 'there is no ConfigMap cluster-info'));
        } finally {
          await patch(info, { data: { kubeconfig } });
        }
      });

      test('cluster-info that strangers may not read', async () => {
        const role =
          '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/rolebindings/kubeadm:bootstrap-signer-clusterinfo';
        const { subjects } = await cluster.plane.admin.expectOk<{ subjects: object[] }>(role);
        try {
          await patch(role, { subjects: [] });
          expect(await attempt('--server', cluster.endpoint)).toEqual(
            none(3, 'does not show cluster-info to a machine without a login (HTTP 403)'),
          );
        } finally {
          await patch(role, { subjects });
        }
      });

      test('an address that cannot be reached from here is a warning: machines may reach it', async () => {
        const made = await token('create', '--audience', audience, '--server', '127.0.0.1:1');
        expect(made).toMatchObject({
          code: 0,
          out: expect.stringContaining('kubelet-authenticator join 127.0.0.1:1 ') as unknown,
          err: expect.stringContaining('https://127.0.0.1:1 cannot be reached from here (ECONNREFUSED)') as unknown,
        });
      });
    });
  });

  test('countersign token list prints everything but the secret', async () => {
    const made = await token(
      'create',
      '--audience',
      audience,
      '--machine',
      'worker-3',
      '--namespace',
      'fleet',
      '-o',
      'token',
    );
    const [id = '', hidden = ''] = made.out.trim().split('.');
    const listed = await token('list');
    expect(listed.out).toMatch(new RegExp(`^${id} .*machine fleet/worker-3`, 'm'));
    const wide = await token('list', '-o', 'wide');
    expect(wide.out).toMatch(new RegExp(`^${id} .*machine fleet/worker-3 .*${group}$`, 'm'));
    const asJson = await token('list', '-o', 'json');
    expect(JSON.parse(asJson.out)).toContainEqual(
      expect.objectContaining({
        id,
        usages: ['authentication', 'signing'],
        groups: [group],
        owner: 'machine fleet/worker-3',
      }),
    );
    for (const { out, err } of [listed, wide, asJson]) expect(out + err).not.toContain(hidden);
  });

  test('countersign token delete takes ids and tokens, and names what is not there', async () => {
    for (const id of ['aaaaaa', 'bbbbbb']) await token('create', `${id}.0123456789abcdef`, '-o', 'token');
    expect(await token('delete', 'aaaaaa', 'bbbbbb.0123456789abcdef')).toEqual({
      code: 0,
      out: 'bootstrap token "aaaaaa" deleted\nbootstrap token "bbbbbb" deleted\n',
      err: expect.stringMatching(/^countersign: server [^\n]*\n$/) as unknown,
    });
    expect(await token('delete', 'aaaaaa')).toMatchObject({
      code: 4,
      err: expect.stringContaining('failed to delete bootstrap token "aaaaaa"') as unknown,
    });
    expect(await token('delete', 'x')).toMatchObject({
      code: 2,
      err: expect.stringContaining("given token didn't match pattern") as unknown,
    });
  });

  describe('countersign token reconcile', () => {
    const made = async (...argv: string[]) =>
      (await token('create', '--audience', audience, '-o', 'token', ...argv)).out.slice(0, 6);
    const reconcile = async (...argv: string[]) => {
      const { code, out, err } = await token('reconcile', '-o', 'json', ...argv);
      expect({ code, err }).toEqual({
        code: 0,
        err: expect.stringMatching(/^countersign: tokens: server [^\n]*\n$/) as unknown,
      });
      return new Map((JSON.parse(out) as { id: string; done: string; why: string }[]).map((each) => [each.id, each]));
    };
    beforeEach(async () => {
      const { out } = await token('list', '-o', 'json');
      for (const { id, owner } of JSON.parse(out) as { id: string; owner?: string }[])
        if (owner !== undefined) await token('delete', id);
    });

    test('leaves everything as it is where there is no Cluster API', async () => {
      const id = await made('--machine', 'a', '--ttl', '10m');
      const before = await secret(id);
      expect((await reconcile()).get(id)).toMatchObject({
        done: 'left',
        why: expect.stringContaining('does not serve machines of cluster.x-k8s.io') as unknown,
      });
      expect((await secret(id)).metadata.resourceVersion).toBe(before.metadata.resourceVersion);
    });

    test('keeps a Machine’s token until its node is Ready, a pool’s for the pool’s life', async () => {
      await installClusterApi(cluster.plane);
      const node = (name: string): AnyObject => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } });
      const fleet = await createCluster(cluster.plane.admin, { name: 'prod' });
      const pool = await fleet.createPool('pool');
      const machines = new Map(
        await Promise.all(
          ['waits', 'registered', 'ready', 'nameless', 'leaves'].map(
            async (name) => [name, await fleet.createMachine(name)] as const,
          ),
        ),
      );
      for (const name of ['n-registered', 'n-ready']) await createObject(cluster.plane.admin, node(name));
      await machines.get('registered')!.provisioned('aws:///a/i-1');
      await machines.get('registered')!.joined('n-registered');
      await machines.get('ready')!.provisioned('aws:///a/i-2');
      await machines.get('ready')!.joined('n-ready');
      await machines.get('nameless')!.joined('n-ready');
      await machines.get('leaves')!.deleting();
      await cluster.plane.admin.expectOk('/api/v1/nodes/n-ready/status', {
        method: 'PATCH',
        headers: { 'content-type': 'application/merge-patch+json' },
        body: JSON.stringify({ status: { conditions: [{ type: 'Ready', status: 'True' }] } }),
      });

      const ids = {
        waits: await made('--machine', 'waits', '--ttl', '10m'),
        registered: await made('--machine', 'registered', '--ttl', '10m'),
        ready: await made('--machine', 'ready', '--ttl', '10m'),
        nameless: await made('--machine', 'nameless', '--ttl', '10m'),
        leaves: await made('--machine', 'leaves', '--ttl', '10m'),
        gone: await made('--machine', 'gone', '--ttl', '10m'),
        pool: await made('--pool', 'pool', '--ttl', '10m'),
        noPool: await made('--pool', 'none', '--ttl', '10m'),
        fresh: await made('--pool', 'pool', '--ttl', '1h'),
        nobodys: await made(),
      };
      const dry = await reconcile('--dry-run');
      for (const id of Object.values(ids)) expect(await exists(id)).toBe(true);

      const done = await reconcile();
      expect([...done.keys()].toSorted()).toEqual([...dry.keys()].toSorted());
      expect(Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, done.get(id)?.done]))).toEqual({
        waits: 'extended',
        registered: 'extended',
        ready: 'deleted',
        nameless: 'extended',
        leaves: 'deleted',
        gone: 'deleted',
        pool: 'extended',
        noPool: 'deleted',
        fresh: 'left',
        nobodys: undefined,
      });
      for (const name of ['waits', 'registered', 'nameless', 'pool'] as const) {
        const left = Date.parse(value(await secret(ids[name]), 'expiration')) - Date.now();
        expect(Math.abs(left - hour)).toBeLessThan(60_000);
      }
      for (const name of ['ready', 'leaves', 'gone', 'noPool'] as const) expect(await exists(ids[name])).toBe(false);
      expect(await exists(ids.nobodys)).toBe(true);

      // The pool goes, and its tokens with it; the Machines are still there.
      await pool.gone();
      const later = await reconcile();
      expect([ids.pool, ids.fresh].map((id) => later.get(id)?.done)).toEqual(['deleted', 'deleted']);
    });

    test('finding 22: deletes nothing where none of the Machines is found', async () => {
      const id = await made('--machine', 'of-another-cluster', '--ttl', '10m');
      const { code, out, err } = await token('reconcile');
      expect({ code, out }).toEqual({
        code: 4,
        out: expect.stringContaining('is it the right management cluster?') as unknown,
      });
      expect(err).toMatch(/^countersign: tokens: server https:/);
      expect(await exists(id)).toBe(true);
    });

    test('changes nothing when it may not look', async () => {
      const id = await made('--machine', 'gone-too', '--ttl', '10m');
      const kubeconfig = await cluster.plane.kubeconfigFor({ user: 'secrets-only' });
      const verbs = ['get', 'list', 'update', 'delete'];
      const { admin } = cluster.plane;
      await createObject(admin, clusterRole('secrets-only', [{ apiGroups: [''], resources: ['secrets'], verbs }]));
      await createObject(admin, clusterRoleBinding('secrets-only', 'secrets-only', subject('User', 'secrets-only')));
      const right = { verb: 'delete', group: '', resource: 'secrets' };
      await untilGranted(cluster.plane, { user: 'secrets-only' }, right);
      const { code, out } = await countersign(kubeconfig, 'token', 'reconcile');
      expect({ code, out }).toEqual({
        code: 3,
        out: expect.stringContaining('failed: machine default/gone-too: HTTP 403') as unknown,
      });
      expect(await exists(id)).toBe(true);
    });
  });
});
