/** `countersign status` and `doctor` against a real API server with the real relay, its Lease and its Events, and the dev server's endpoint. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { createObject } from '../../../harness/kubernetes/objects.ts';
import {
  startDevServer,
  startRelay,
  writeTokenKubeconfig,
  type DevServer,
  type Relay,
} from '../../../harness/stack/stack.ts';
import { requireTools } from '../../../tools/tools.ts';
import { chart, example, helm, namespace, release } from '../chart/helm.ts';
import { countersign } from '../join/command-line.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'helm');

interface Row {
  readonly id: string;
  readonly check: string;
  readonly result: string;
  readonly seen: string;
  readonly mend?: string;
}

describe.skipIf(skip)('a cluster with the chart’s relay', () => {
  let plane: ControlPlane;
  let server: DevServer;
  let relay: Relay | undefined;
  let limited: string;

  beforeAll(async () => {
    [plane, server] = await Promise.all([startControlPlane(), startDevServer()]);
    await createObject(plane.admin, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    const values = [
      '--values',
      example('plain-manifests.yaml'),
      '--set',
      'namespace.create=false,endpoint.cluster=demo',
    ];
    await helm(['upgrade', '--install', release, chart, '-n', namespace, ...values], {
      KUBECONFIG: plane.adminKubeconfig,
    });
    await createObject(plane.admin, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'limited', namespace: 'default' },
    });
    const token = await plane.kubectl(['create', 'token', 'limited', '-n', 'default', '--duration=1h']);
    limited = writeTokenKubeconfig(plane, token.trim(), join(plane.dir, 'limited.kubeconfig'));
  }, 180_000);
  afterAll(async () => {
    await relay?.stop();
    await server?.stop();
    await plane?.stop();
  });

  const look = async (kubeconfig = plane.adminKubeconfig) => {
    const argv = ['status', '--cluster', 'demo', '--skip-aws', '--url', server.url, '-o', 'json'] as const;
    const { code, out, err } = await countersign(kubeconfig, ...argv);
    expect(err).toBe('');
    const { state, checks } = JSON.parse(out) as { readonly state: string; readonly checks: readonly Row[] };
    return { code, state, row: (id: string) => checks.find((each) => each.id === id) };
  };
  /** No kubelet starts pods here. */
  const ready = (readyReplicas: number): Promise<string> =>
    plane.kubectl([
      'patch',
      'deployment',
      release,
      '-n',
      namespace,
      '--subresource=status',
      '--type=merge',
      '-p',
      JSON.stringify({ status: { replicas: 2, readyReplicas, observedGeneration: 1 } }),
    ]);

  test('without a pod the relay does not work', async () => {
    const { code, row } = await look();
    expect(code).toBe(1);
    expect(row('relay')).toMatchObject({ result: 'fail', seen: '0 of 2 ready, version 0.1.0' });
    expect(row('endpoint')).toMatchObject({ result: 'pass' });
  });

  test('with a replica that has the Lease it works; the endpoint tells its rules and its CA', async () => {
    await ready(1);
    expect((await look()).row('relay')?.seen).toContain('no replica holds its Lease');
    const token = await plane.kubectl(['create', 'token', release, '-n', namespace, '--duration=1h']);
    relay = await startRelay({
      kubeconfig: writeTokenKubeconfig(plane, token.trim(), join(plane.dir, 'relay.kubeconfig')),
      endpoint: server.url,
      args: ['--leader-elect', '--lease-namespace', namespace, '--lease-name', release],
      env: { POD_NAME: 'relay-a' },
    });
    const { code, state, row } = await look();
    expect([code, state]).toEqual([0, 'healthy']);
    expect(row('relay')?.seen).toMatch(/^1 of 2 ready, version 0\.1\.0, relay-a.* leads, renewed \d+ s ago$/);
    expect(row('errors')).toMatchObject({ result: 'pass', seen: 'no Event SigningDelayed' });
    expect(row('rules')).toMatchObject({
      result: 'none',
      seen: expect.stringMatching(/^rules [0-9a-f]{16}; no countersign/) as unknown,
    });
    expect(row('ca')?.seen).toContain('days left');
  });

  test('doctor finds that the set-up can work; without rights it says which it lacks', async () => {
    const examine = async (kubeconfig: string) => {
      const argv = ['doctor', '--cluster', 'demo', '--skip-aws', '--url', server.url, '-o', 'json'] as const;
      const { code, out, err } = await countersign(kubeconfig, ...argv);
      expect(err).toBe('');
      const { checks } = JSON.parse(out) as { readonly checks: readonly Row[] };
      return { code, checks, row: (id: string) => checks.find((each) => each.id === id) };
    };
    const { code, checks, row } = await examine(plane.adminKubeconfig);
    expect(row('cluster')?.seen).toMatch(/^https:\/\/\S+: v1\.36\.\d/);
    expect(row('clock')).toMatchObject({ result: 'pass', seen: expect.stringMatching(/^the same$|^\d+ s/) as unknown });
    expect(row('relay')?.check).toBe(`relay ${namespace}/${release} may work`);
    expect(row('endpoint')).toMatchObject({ result: 'pass' });
    // Nothing reports the condition Available here.
    const others = checks.filter(({ result, id }) => result === 'fail' && id !== 'relay');
    expect([code, others]).toEqual([1, []]);
    const without = await examine(limited);
    expect(without.code).toBe(5);
    expect(without.row('relay')).toMatchObject({ result: 'unknown' });
    expect(without.row('relay')?.seen).toMatch(/cannot list resource/);
    expect(without.row('login')?.seen).toBe('system:serviceaccount:default:limited');
  });

  test('an Event about a request that waits is trouble', async () => {
    // As the relay writes it after ten tries, which take minutes.
    await createObject(plane.admin, {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: 'countersign-uid.delayed', namespace: 'default' },
      eventTime: new Date().toISOString().replace('Z', '000Z'),
      type: 'Warning',
      reason: 'SigningDelayed',
      note: 'Not signed yet, and tried again until it is: the signing endpoint is busy.',
      action: 'Sign',
      reportingController: 'countersign.dev/watch-relay',
      reportingInstance: 'relay-a',
      regarding: { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', name: 'csr-1', uid: 'uid' },
    });
    const { code, row } = await look();
    expect(code).toBe(1);
    expect(row('errors')).toMatchObject({ result: 'fail', mend: 'countersign trace csr-1' });
    expect(row('errors')?.seen).toMatch(
      /^1 waited; \d+ s ago, csr-1: Not signed yet, .* the signing endpoint is busy\.$/,
    );
    await plane.kubectl(['delete', 'events', '-n', 'default', '--all']);
  });

  test('after the relay has ended it gave up the Lease', async () => {
    await relay?.stop();
    relay = undefined;
    expect((await look()).row('relay')).toMatchObject({
      result: 'fail',
      seen: expect.stringContaining('no replica holds its Lease') as unknown,
    });
  });

  test('a login without rights sees the endpoint, and is told which rights it lacks', async () => {
    const { code, state, row } = await look(limited);
    expect([code, state]).toEqual([5, 'notAllSeen']);
    expect(row('relay')).toMatchObject({
      result: 'unknown',
      mend: 'it needs list on deployments (apps) in all namespaces',
    });
    expect(row('errors')).toMatchObject({
      result: 'unknown',
      mend: 'it needs list on events in the namespace default',
    });
    expect(row('endpoint')).toMatchObject({ result: 'pass' });
  });

  test('exactly those rights are enough', async () => {
    const role = async (name: string, kind: string, where: readonly string[], ...rule: readonly string[]) => {
      await plane.kubectl(['create', kind, name, ...where, ...rule]);
      const binding = kind === 'clusterrole' ? 'clusterrolebinding' : 'rolebinding';
      await plane.kubectl(['create', binding, name, ...where, `--${kind}=${name}`, '--serviceaccount=default:limited']);
    };
    await role('see-deployments', 'clusterrole', [], '--verb=list', '--resource=deployments.apps');
    await role('see-lease', 'role', ['-n', namespace], '--verb=get', '--resource=leases.coordination.k8s.io');
    await role('see-events', 'role', ['-n', 'default'], '--verb=list', '--resource=events');
    await expect.poll(async () => (await look(limited)).row('relay')?.result, { timeout: 20_000 }).toBe('fail');
    await expect.poll(async () => (await look(limited)).row('errors')?.result, { timeout: 20_000 }).toBe('pass');
  });
});
