import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { detachedSignature, secretOfToken } from '../../../../core/kubernetes/bootstrap-token.ts';
import { caCertificates } from '../../../../core/kubernetes/cluster-info.ts';
import type { DiscoveryRefusal } from '../../../../kubelet-authenticator/join/discovery-result.ts';
import { resolveSettings } from '../../../../kubelet-authenticator/settings/settings.ts';
import { firstToken, nodeFolder, runJoin } from './kubeadm-cluster.ts';
import type { KubeadmCluster } from './kubeadm-cluster.ts';
import { startStranger } from './stranger.ts';
import type { Stranger, Trick } from './stranger.ts';

const audience = '123456789012/eu-central-1/prod';
const group = 'system:bootstrappers:kubeadm:default-node-token';

/** `kubelet-authenticator join` against what kubeadm and kube-controller-manager made. */
export function discovery(running: () => KubeadmCluster): void {
  let cluster: KubeadmCluster;
  let args: string[];
  beforeAll(() => {
    cluster = running();
    args = [
      cluster.endpoint,
      '--token',
      firstToken,
      '--discovery-token-ca-cert-hash',
      cluster.pin,
      '--audience',
      audience,
    ];
  });

  /** The same arguments with one of them changed. */
  const changed = (flag: string, value: string) => args.map((text, index) => (args[index - 1] === flag ? value : text));
  /** Nothing of a refused node is on its disk. */
  const untouched = (directory: string) => expect(readdirSync(directory)).toEqual([]);

  test('writes what the kubelet and the plugin need, and nothing else', async () => {
    const { code, out, err, directory } = await runJoin(args);
    expect({ code, err }).toMatchObject({ code: 0 });
    const files = [
      'kubelet-authenticator/bootstrap-credentials.json',
      'pki/ca.crt',
      'kubelet-authenticator/settings.json',
      'kubelet.conf.d/50-countersign.conf',
      'kubelet.conf',
    ];
    const mode = (file: string) => (statSync(join(directory, file)).mode & 0o777).toString(8);
    expect(files.map(mode)).toEqual(['600', '644', '600', '644', '600']);
    const read = (file: string) => readFileSync(join(directory, file), 'utf8');

    // The token is in one file only, and neither on the terminal nor in what other programs read.
    expect(JSON.parse(read(files[0]!))).toEqual({ token: firstToken });
    for (const text of [out, err, ...files.slice(1).map(read)]) expect(text).not.toContain('0123456789abcdef');

    expect(caCertificates(read('pki/ca.crt'))).toMatchObject({ value: [{ pin: cluster.pin }] });
    expect(resolveSettings(read(files[2]!))).toMatchObject({
      ok: true,
      value: {
        nodeName: 'worker-1',
        clusterName: 'prod',
        audience,
        provider: 'aws',
        server: cluster.plane.url,
        signerName: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws',
        certificateAuthorityFile: join(directory, 'pki/ca.crt'),
        bootstrapCredentialsFile: join(directory, files[0]!),
      },
    });
    expect(parse(read(files[3]!))).toEqual({
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      rotateCertificates: false,
      serverTLSBootstrap: true,
      authentication: { x509: { clientCAFile: join(directory, 'pki/ca.crt') } },
    });
    const kubeconfig = join(directory, 'kubelet.conf');
    const viewed = JSON.parse(await cluster.plane.kubectl(['config', 'view', '-o', 'json'], { kubeconfig })) as {
      users: { user: unknown }[];
    };
    expect(viewed.users.map(({ user }) => user)).toEqual([
      {
        exec: {
          apiVersion: 'client.authentication.k8s.io/v1',
          command: '/usr/local/bin/kubelet-authenticator',
          args: ['exec', '--settings', join(directory, files[2]!)],
          env: null,
          interactiveMode: 'Never',
          provideClusterInfo: false,
          installHint: expect.any(String) as unknown,
        },
      },
    ]);
    expect(out).toContain('without --bootstrap-kubeconfig');
    expect(out).toContain(`--kubeconfig=${kubeconfig}`);
  });

  test('joins again without a change, and overwrites another cluster’s files only with --force', async () => {
    const { directory } = await runJoin(args);
    expect(await runJoin(args, directory)).toMatchObject({ code: 0 });
    const settings = join(directory, 'kubelet-authenticator/settings.json');
    const before = readFileSync(settings, 'utf8');
    const other = await runJoin(changed('--audience', 'another/one/here'), directory);
    expect(other).toMatchObject({ code: 6, err: expect.stringContaining(settings) as unknown });
    expect(readFileSync(settings, 'utf8')).toBe(before);
    expect(await runJoin([...changed('--audience', 'another/one/here'), '--force'], directory)).toMatchObject({
      code: 0,
    });
    expect(readFileSync(settings, 'utf8')).toContain('another/one/here');
  });

  test('with --dry-run shows all of it but the token, and writes nothing', async () => {
    const { code, out, directory } = await runJoin([...args, '--dry-run', '--serving', 'attested']);
    expect(code).toBe(0);
    expect(out).toContain('"rotateCertificates": false');
    expect(out).toContain('"tlsCertFile": "/var/lib/kubelet/pki/authenticator/serving.pem"');
    expect(out).toContain('cluster.x-k8s.io/kubelet-serving-aws');
    expect(out).not.toContain('0123456789abcdef');
    untouched(directory);
  });

  test('takes the token from a file, and one of several hashes', async () => {
    const folder = nodeFolder();
    const file = join(folder, 'token');
    writeFileSync(file, `${firstToken}\n`);
    const other = `sha256:${'0'.repeat(64)}`;
    const { code } = await runJoin([
      cluster.endpoint,
      '--token-file',
      file,
      `--discovery-token-ca-cert-hash=${other}`,
      `--discovery-token-ca-cert-hash=${cluster.pin.toUpperCase().replace('SHA256', 'sha256')}`,
      `--audience=${audience}`,
    ]);
    expect(code).toBe(0);
  });

  test('takes a discovery file, whose CA alone is trusted', async () => {
    const file = join(nodeFolder(), 'cluster.conf');
    writeFileSync(file, (await cluster.clusterInfo())['kubeconfig'] ?? '');
    const joined = await runJoin(['--discovery-file', file, '--token', firstToken, '--audience', audience]);
    expect(joined).toMatchObject({ code: 0 });
    const stranger = await startStranger(cluster.plane.url, {});
    try {
      writeFileSync(file, readFileSync(file, 'utf8').replace(cluster.endpoint, stranger.endpoint));
      const refused = await runJoin(['--discovery-file', file, '--token', firstToken, '--audience', audience]);
      expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('[ServerNotTrusted]') as unknown });
      expect(stranger.seen).toEqual([]);
      untouched(refused.directory);
    } finally {
      await stranger.stop();
    }
  });

  describe('refuses with the reason:', () => {
    const refusal = async (given: readonly string[]) => {
      const { code, err, directory } = await runJoin(given);
      expect(err).not.toMatch(/[a-z0-9]{6}\.[a-z0-9]{16}\b/);
      untouched(directory);
      return { code, why: /\[([A-Za-z]+)\]/.exec(err)?.[1], err };
    };
    const refusedAs = (why: DiscoveryRefusal, words: string) => ({
      code: why === 'Unreachable' ? 5 : 1,
      why,
      err: expect.stringContaining(words) as unknown,
    });
    const create = async (...flags: string[]): Promise<string> => {
      const token = (await cluster.kubeadm(['token', 'create', ...flags])).trim();
      return token;
    };

    test('a token of another secret', async () => {
      expect(await refusal(changed('--token', 'abcdef.fedcba9876543210'))).toEqual(
        refusedAs('SignatureInvalid', 'failed to verify JWS signature of received cluster info object'),
      );
    });

    test('a token that this cluster does not know', async () => {
      expect(await refusal(changed('--token', 'zzzzzz.0123456789abcdef'))).toEqual(
        refusedAs('TokenUnknown', 'token id "zzzzzz" is invalid for this cluster or it has expired'),
      );
    });

    test('an expired token', async () => {
      const token = await create('--ttl', '1h');
      const id = token.slice(0, 6);
      await cluster.waitForSignature(id);
      // Its end comes when its signature has been seen, however long that took. The token has not been shown to the API
      // server before: that remembers a login for ten seconds.
      await cluster.plane.admin.expectOk(`/api/v1/namespaces/kube-system/secrets/bootstrap-token-${id}`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/merge-patch+json' },
        body: { stringData: { expiration: new Date(Date.now() - 1_000).toISOString().replace(/\.\d+Z$/, 'Z') } },
      });
      await cluster.waitForSignature(id, false);
      expect(await refusal(changed('--token', token))).toEqual(
        refusedAs('TokenUnknown', `token id "${id}" is invalid for this cluster or it has expired`),
      );
    });

    test('a token without signing usage', async () => {
      const token = await create('--usages', 'authentication', '--groups', group);
      expect(await refusal(changed('--token', token))).toEqual(refusedAs('TokenCannotSign', 'usage-bootstrap-signing'));
    });

    test('a token without authentication usage', async () => {
      // kubeadm refuses to make one.
      const token = 'signer.0123456789abcdef';
      const record = {
        token: { id: 'signer', secret: '0123456789abcdef' },
        description: '',
        usages: ['signing'],
        groups: [],
      };
      await cluster.plane.admin.expectOk('/api/v1/namespaces/kube-system/secrets', {
        method: 'POST',
        body: secretOfToken(record),
      });
      await cluster.waitForSignature(token.slice(0, 6));
      expect(await refusal(changed('--token', token))).toEqual(
        refusedAs('TokenCannotLogIn', 'usage-bootstrap-authentication'),
      );
    });

    test('another hash', async () => {
      expect(await refusal(changed('--discovery-token-ca-cert-hash', `sha256:${'0'.repeat(64)}`))).toEqual(
        refusedAs('CaNotPinned', `none of the public keys "${cluster.pin}" are pinned`),
      );
    });

    test('an address where nothing listens', async () => {
      expect(await refusal(['127.0.0.1:1', ...args.slice(1)])).toEqual(
        refusedAs('Unreachable', 'https://127.0.0.1:1 did not answer'),
      );
    });

    test('a cluster that does not publish itself', async () => {
      const role =
        '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/rolebindings/kubeadm:bootstrap-signer-clusterinfo';
      const { roleRef, subjects } = await cluster.plane.admin.expectOk<Record<string, unknown>>(role);
      await cluster.plane.admin.expectOk(role, { method: 'DELETE' });
      try {
        expect(await refusal(args)).toEqual(
          refusedAs('NotSetUp', 'failed to request the cluster-info ConfigMap: HTTP 403'),
        );
      } finally {
        await cluster.plane.admin.expectOk(role.replace(/\/[^/]+$/, ''), {
          method: 'POST',
          body: {
            apiVersion: 'rbac.authorization.k8s.io/v1',
            kind: 'RoleBinding',
            metadata: { name: 'kubeadm:bootstrap-signer-clusterinfo' },
            roleRef,
            subjects,
          },
        });
      }
    });

    test('and warns of a token that may not ask for certificates', async () => {
      const token = await create('--groups', 'system:bootstrappers:others');
      await cluster.waitForSignature(token.slice(0, 6));
      const joined = await runJoin(changed('--token', token));
      expect(joined).toMatchObject({
        code: 0,
        err: expect.stringContaining('may not create CertificateSigningRequests') as unknown,
      });
    });
  });

  describe('a stranger between the node and the cluster', () => {
    let stranger: Stranger | undefined;
    afterEach(async () => {
      await stranger?.stop();
      stranger = undefined;
    });
    const through = async (trick: Trick, more: readonly string[] = args.slice(1)) => {
      stranger = await startStranger(cluster.plane.url, trick);
      const joined = await runJoin([stranger.endpoint, ...more]);
      return { ...joined, stranger };
    };
    const [id = '', secret = ''] = firstToken.split('.');
    const ca = (kubeconfig: string, pem: (real: string) => string) =>
      kubeconfig.replace(/(certificate-authority-data: )(\S+)/, (_, key: string, data: string) => {
        const real = Buffer.from(data, 'base64').toString();
        return `${key}${Buffer.from(pem(real)).toString('base64')}`;
      });
    const signed = (kubeconfig: string) => ({
      kubeconfig,
      'jws-kubeconfig-abcdef': detachedSignature(kubeconfig, { id, secret }),
    });

    test.each<[string, Trick, string]>([
      ['who passes everything on unchanged', {}, 'ServerNotTrusted'],
      [
        'who offers his own CA, without the token',
        {
          clusterInfo: (data, own) => ({ ...data, kubeconfig: ca(data['kubeconfig'] ?? '', () => own.certificatePem) }),
        },
        'SignatureInvalid',
      ],
      [
        'who offers his own CA and knows the token',
        { clusterInfo: (data, own) => signed(ca(data['kubeconfig'] ?? '', () => own.certificatePem)) },
        'CaNotPinned',
      ],
      [
        // kubeadm takes this one: it trusts the whole bundle as soon as one of it is pinned.
        'who puts his own CA beside the real one and knows the token',
        { clusterInfo: (data, own) => signed(ca(data['kubeconfig'] ?? '', (real) => real + own.certificatePem)) },
        'ServerNotTrusted',
      ],
      [
        'who sends the node to another server, knows the token, and lets the second reading through',
        {
          onlyFirst: true,
          clusterInfo: (data) =>
            signed((data['kubeconfig'] ?? '').replace(/server: .*/, 'server: https://192.0.2.1:6443')),
        },
        'ClusterInfoChanged',
      ],
      ['who leaves the signature out', { clusterInfo: ({ kubeconfig = '' }) => ({ kubeconfig }) }, 'ServerNotTrusted'],
      ['who sends garbage', { clusterInfo: () => signed('{[') }, 'ClusterInfoMalformed'],
      ['who sends nothing', { clusterInfo: () => ({}) }, 'NotSetUp'],
    ])('%s gets nowhere', async (_, trick, why) => {
      const { code, err, directory, stranger } = await through(trick);
      expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(`[${why}]`) as unknown });
      // The program asked the stranger only for the public ConfigMap, and sent no token.
      expect(new Set(stranger.seen.map(({ call }) => call))).toEqual(
        new Set(['GET /api/v1/namespaces/kube-public/configmaps/cluster-info']),
      );
      expect(stranger.seen.some(({ bearer }) => bearer)).toBe(false);
      untouched(directory);
    });

    test('is the cluster for a node that checks no hash: the name of the flag calls it unsafe', async () => {
      const more = ['--token', firstToken, '--audience', audience, '--discovery-token-unsafe-skip-ca-verification'];
      const fooled: Trick = {
        clusterInfo: (data, own) => signed(ca(data['kubeconfig'] ?? '', () => own.certificatePem)),
      };
      const { err, stranger } = await through(fooled, more);
      expect(stranger.seen.some(({ bearer }) => bearer)).toBe(true);
      // The stranger passes our token on without it, so the real server does not know us.
      expect(err).toContain('[TokenCannotLogIn]');
      expect((await runJoin([cluster.endpoint, ...more])).code).toBe(0);
    });
  });

  describe('the command line', () => {
    test.each<[string, (given: string[]) => string[], string]>([
      ['no token', (given) => [given[0]!, ...given.slice(3)], 'the bootstrap token is missing'],
      [
        'a token of another form',
        (given) => given.map((text) => (text === firstToken ? 'abc.def' : text)),
        'the bootstrap token was not of the form',
      ],
      [
        'no hash',
        (given) => [...given.slice(0, 3), ...given.slice(5)],
        'without --discovery-token-ca-cert-hash can be unsafe',
      ],
      [
        'a hash of another form',
        (given) => given.map((text) => (text.startsWith('sha256:') ? 'sha256:00' : text)),
        'expected a 32 byte SHA-256 hash, found 1 bytes',
      ],
      ['no audience', (given) => given.slice(0, -2), '--audience is missing'],
      ['no address', (given) => given.slice(1), 'which cluster?'],
      ['an invalid address', (given) => ['https://x', ...given.slice(1)], 'the address is <host>:<port>'],
      ['a provider there is not', (given) => [...given, '--provider', 'vsphere'], 'provider'],
      ['a node name there is not', (given) => [...given, '--node-name', 'Node_1'], 'nodeName'],
      [
        'attested serving without attestation',
        (given) => [...given, '--serving', 'attested', '--provider', 'insecure'],
        'insecure does not',
      ],
      ['an unknown flag', (given) => [...given, '--no-such-flag'], 'no-such-flag'],
    ])('with %s makes no call', async (_, change, words) => {
      const given = change([
        '192.0.2.1:6443',
        '--token',
        firstToken,
        '--discovery-token-ca-cert-hash',
        `sha256:${'0'.repeat(64)}`,
        '--audience',
        audience,
      ]);
      const { code, err } = await runJoin(given);
      expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(words) as unknown });
      expect(err).not.toContain('0123456789abcdef');
    });

    test('helps', async () => {
      const { code, out } = await runJoin(['--help']);
      expect(code).toBe(0);
      expect(out).toContain('Examples:');
    });

    test('leaves no kubeconfig where it cannot write everything', async () => {
      const directory = nodeFolder();
      mkdirSync(join(directory, 'kubelet.conf.d', '50-countersign.conf'), { recursive: true });
      const { code, err } = await runJoin([...args, '--force'], directory);
      expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining('cannot write') as unknown });
      expect(existsSync(join(directory, 'kubelet.conf'))).toBe(false);
    });
  });
}
