import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { inBase } from '../../../../deploy/image/base.ts';
import { buildRelay, bundleName, intruders } from '../../../../deploy/image/build.ts';
import { entrypointOf, images, processOf } from '../../../../deploy/image/images.ts';
import type { Script } from '../../../../deploy/bundle.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { startOnFreePort } from '../../../harness/kubernetes/control-plane-servers.ts';
import {
  startProcess,
  patientStopMs,
  temporaryFolder,
  waitUntilReady,
  type RunningProcess,
} from '../../../harness/processes/processes.ts';
import { installRelay, startDevServer, type DevServer } from '../../../harness/stack/stack.ts';
import { approve, createClientRequests, settled } from '../../../harness/stack/requests.ts';
import { projectedToken } from '../../../harness/fake-aws/machine/pod-identity.ts';
import { startFakeSts, type FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import { requireTools, toolPath } from '../../../tools/tools.ts';
import { container, libraries, namespacesMissing, type Container } from './container.ts';
import { example, objects, podTemplate, release, template } from './helm.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'helm');
const root = resolve(import.meta.dirname, '../../../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const manifest = JSON.parse(read('package.json')) as { version: string; devDependencies: Record<string, string> };

const folder = temporaryFolder('relay-image');
let bundle: Script;
beforeAll(async () => {
  bundle = await buildRelay(join(folder.path, 'out'));
});
afterAll(() => folder.remove());

const entrypoint = [...entrypointOf(images.relay, bundleName)];
const settings = processOf(images.relay, bundleName) as {
  readonly User: string;
  readonly ExposedPorts: object;
  readonly Env: readonly string[];
};
const imageEnvironment = Object.fromEntries(settings.Env.map((pair) => pair.split('=') as [string, string]));

describe('the bundle', () => {
  test('holds the relay and nothing of the signer, the tests or development', () => {
    expect(bundle.sources).toContain('lambdas/watch-relay/index.ts');
    expect(intruders(bundle.sources)).toEqual([]);
    const names = [...bundle.packages.keys()].map((name) => name.slice(0, name.lastIndexOf('@')));
    expect(names).toContain('@kubernetes/client-node');
    expect(names.filter((name) => name in manifest.devDependencies)).toEqual([]);
    const licenses = readFileSync(join(folder.path, 'out/licenses.txt'), 'utf8');
    for (const name of bundle.packages.keys()) expect(licenses).toContain(`${name}\n`);
    expect(licenses).not.toContain('licence not stated');
    expect(bundle.bytes).toBeLessThan(4 * 1_048_576);
  });

  test.each([
    'adapters/embedded/signer.ts',
    'adapters/aws/kms-signer.ts',
    'lambdas/sign/handler.ts',
    'dev/serve.ts',
    'core/issue.ts',
  ])('would not be made with %s in it', (source) => {
    expect(intruders([source])).toEqual([source]);
  });
});

describe('the image', () => {
  test('has every library that Node is linked with, and nothing that could run beside Node', () => {
    expect(libraries(process.execPath).filter((path) => !inBase(`usr${path.replace(/^\/usr/, '')}`))).toEqual([]);
    for (const path of ['usr/bin/bash', 'usr/bin/dpkg', 'usr/bin/apt', 'usr/sbin/ldconfig', 'bin', 'sbin'])
      expect(inBase(path)).toBe(false);
  });

  test('fits the chart: user, port, version, and a heap that ends before the memory does', async () => {
    const text = skip ? undefined : await template(example('plain-manifests.yaml'));
    const values = parse(read('deploy/chart/values.yaml')) as {
      metrics: { port: number };
      resources: { limits: { memory: string } };
    };
    const heap = Number(/--max-old-space-size=(\d+)/.exec(entrypoint.join(' '))?.[1]);
    expect(heap).toBeLessThan(Number.parseInt(values.resources.limits.memory, 10));
    expect(settings).toMatchObject({ User: '65532:65532', ExposedPorts: { [`${values.metrics.port}/tcp`]: {} } });
    const chart = parse(read('deploy/chart/Chart.yaml')) as { version: string; appVersion: string };
    expect([chart.version, chart.appVersion]).toEqual([manifest.version, manifest.version]);
    if (text === undefined) return;
    const { spec } = podTemplate(objects(text));
    expect(spec.securityContext).toMatchObject({ runAsUser: 65532, runAsGroup: 65532 });
    expect(spec.containers[0]).not.toHaveProperty('command');
  });
});

test('the flags with which the image starts Node forbid an attacker to write files and start processes and threads', () => {
  const [, ...flags] = entrypoint.slice(0, -1);
  const attempt = (code: string): string =>
    spawnSync(process.execPath, [...flags, '-e', code], { encoding: 'utf8', cwd: folder.path }).stderr;
  const denied = 'ERR_ACCESS_DENIED';
  expect(attempt(`require('node:fs').writeFileSync(${JSON.stringify(join(folder.path, 'x'))}, '')`)).toContain(denied);
  expect(attempt(`require('node:child_process').execFileSync('/bin/true')`)).toContain(denied);
  expect(attempt(`new (require('node:worker_threads').Worker)('1', { eval: true })`)).toContain(denied);
  expect(attempt(`require('node:fs').readFileSync('/etc/hostname')`)).toBe('');
});

function shellBlocks(page: string, heading: string): string[] {
  const section = page.slice(page.indexOf(`\n${heading}\n`)).split(/\n## /)[1] ?? '';
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block!);
}

const noNamespaces = namespacesMissing();

describe.skipIf(skip || noNamespaces)('in a root of nothing but Node, its libraries and the bundle, read-only', () => {
  let plane: ControlPlane;
  let signer: DevServer;
  let relay: RunningProcess | undefined;
  let image: Container;
  const aws = createFakeAws();
  const podRoleArn = 'arn:aws:iam::444455556666:role/prod-watch-relay';
  const callerRoleArn = 'arn:aws:iam::999900001111:role/countersign-prod-caller';
  let sts: FakeSts;
  beforeAll(async () => {
    for (const arn of [podRoleArn, callerRoleArn]) aws.createRole({ arn });
    sts = await startFakeSts({ aws, webIdentityTokens: [projectedToken] });
    signer = await startDevServer();
    plane = await startControlPlane({ clientCaPem: await signer.caPem() });
    const { namespace, name } = await installRelay(plane);
    const token = await plane.kubectl(['create', 'token', name, '-n', namespace, '--duration=1h']);
    const account = '/var/run/secrets/kubernetes.io/serviceaccount';
    image = container({
      root: join(folder.path, 'root'),
      files: { [entrypoint.at(-1)!]: join(folder.path, 'out', bundleName) },
      texts: {
        '/var/run/secrets/countersign/aws/token': projectedToken,
        [`${account}/token`]: token.trim(),
        [`${account}/ca.crt`]: plane.servingCaPem,
      },
    });
  });
  afterAll(async () => {
    await relay?.stop();
    await sts?.close();
    await plane?.stop();
    await signer?.stop();
  });

  test('shows its help', () => {
    const result = spawnSync(image.command, image.args(...entrypoint, '--help'), {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] },
    });
    expect(result.stderr).toBe('');
    expect(result.stdout).toMatch(/^Forwards approved CertificateSigningRequests/m);
    expect(result.status).toBe(0);
  });

  test('relays with the pod’s own login and the chart’s arguments, and keeps within half of its memory', async () => {
    const [pod] = podTemplate(objects(await template(example('web-identity.yaml')))).spec.containers;
    const started = performance.now();
    const { url } = await startOnFreePort([], (port) => {
      relay = startProcess({
        name: 'relay in its image',
        command: image.command,
        args: image.args(
          ...entrypoint,
          ...pod!.args.filter((argument) => !argument.startsWith('--metrics-address=')),
          `--metrics-address=127.0.0.1:${port}`,
        ),
        env: {
          ...imageEnvironment,
          // Where `unshare` is.
          PATH: process.env['PATH'],
          KUBERNETES_SERVICE_HOST: '127.0.0.1',
          KUBERNETES_SERVICE_PORT: new URL(plane.url).port,
          ...Object.fromEntries(pod!.env.map(({ name, value }) => [name, value])),
          COUNTERSIGN_URL: `${signer.url}/v1/clusters/demo`,
          COUNTERSIGN_CLUSTER: 'demo',
          AWS_ENDPOINT_URL_STS: sts.url,
        },
        logPath: join(folder.path, `relay-${port}.log`),
      });
      const server = relay;
      const url = `http://127.0.0.1:${port}`;
      const ready = () => waitUntilReady(server, async () => (await fetch(`${url}/readyz`)).ok);
      return Promise.resolve({ server, url, ready });
    });
    const readyMilliseconds = Math.round(performance.now() - started);

    const posted = await createClientRequests(plane, 'from-the-image', 200);
    const names = posted.map(({ name }) => name);
    await approve(plane, ...names);
    const done = await settled(plane, names).catch((error: unknown) => {
      throw new Error(relay!.logTail(5), { cause: error });
    });
    expect([...done.values()].filter(({ status }) => status.certificate !== undefined)).toHaveLength(200);

    // And what the documentation has an operator do at the end.
    const [ask = '', login = ''] = shellBlocks(read('docs/deploy.md'), '## Verify');
    const kubectl = dirname(await toolPath('kubectl'));
    const said = spawnSync('bash', ['-euo', 'pipefail', '-c', `${ask}\n${login}`], {
      cwd: folder.path,
      encoding: 'utf8',
      env: { PATH: `${kubectl}:${process.env['PATH']}`, HOME: folder.path, KUBECONFIG: plane.adminKubeconfig },
      timeout: 60_000,
    });
    expect(said.stderr).not.toMatch(/error/i);
    expect(said.stdout).toMatch(/^issuer=.*demo/m);
    expect(said.stdout).toMatch(/^Username +countersign-probe@example\.com$/m);
    expect(said.status).toBe(0);

    // The SDK found the projected token, without a home directory and without the right to start anything.
    expect(sts.calls).toMatchObject([
      { action: 'AssumeRoleWithWebIdentity', parameters: { RoleArn: podRoleArn } },
      { action: 'AssumeRole', parameters: { RoleArn: callerRoleArn } },
    ]);
    const assumedBy = aws.credential(sts.calls[1]!.signedBy!)!.principal.arn;
    expect(assumedBy).toMatch(/^arn:aws:sts::444455556666:assumed-role\/prod-watch-relay\//);

    const lease = await plane.kubectl(['get', 'lease', release, '-n', 'countersign-system', '-o', 'json']);
    expect(JSON.parse(lease)).toMatchObject({ spec: { leaseTransitions: 0 } });
    const metrics = await (await fetch(`${url}/metrics`)).text();
    const bytes = Number(/^process_resident_memory_bytes (\S+)$/m.exec(metrics)?.[1]);
    const megabytes = Math.round(bytes / 1_048_576);
    console.info(
      `bundle ${Math.round(bundle.bytes / 1024)} KB, Node ${Math.round(statSync(process.execPath).size / 1_048_576)} MB; ` +
        `ready ${readyMilliseconds} ms after the start; ${megabytes} MB resident after 200 certificates`,
    );
    expect(megabytes).toBeGreaterThan(20);
    expect(megabytes).toBeLessThan(256);

    await relay!.stop('SIGTERM', patientStopMs);
    expect(relay!.ended()).toBe('exit code 0');
  });
});
