/**
 * A relay with `machines: clusterApi` against the real API server with the real definitions of Cluster API, as the chart's service account:
 * what it tells attest, when it waits, its hints, its rights both ways, and the signers in the InfraCluster. Attest is a server that records
 * calls; what attest makes of them is tested with the function itself.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { providerIdType } from '../../../../core/x509/certificate-request.ts';
import { installClusterApi } from '../../../harness/cluster-api/definitions.ts';
import { createCluster } from '../../../harness/cluster-api/machine-life.ts';
import type { ManagedCluster } from '../../../harness/cluster-api/machine-life.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { createObject, deleteObject } from '../../../harness/kubernetes/objects.ts';
import { isAllowed, untilGranted, untilTaken } from '../../../harness/kubernetes/rights.ts';
import { createRequest, eventually } from '../../../harness/stack/requests.ts';
import {
  installRelay,
  manifestObjects,
  startRelay,
  type Relay,
  type RelayIdentity,
} from '../../../harness/stack/stack.ts';
import { requireTools } from '../../../tools/tools.ts';
import { example, template } from '../chart/helm.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'helm', 'cluster-api');

const provider = (instance: string) => `aws:///eu-central-1a/${instance}`;
const group = 'cluster.x-k8s.io';
const infrastructure = 'infrastructure.cluster.x-k8s.io';
const annotation = (kind: 'client' | 'serving') => `${group}/kubelet-${kind}-certificate-signer`;
const signers = { client: 'kubernetes.io/kube-apiserver-client-kubelet', serving: 'kubernetes.io/kubelet-serving' };

interface Context {
  readonly machines: readonly Record<string, unknown>[];
  readonly cluster?: object;
}

/** Records the context of each request, by its name, and the names of nodes in hints. */
async function startAttest() {
  const contexts = new Map<string, Context | undefined>();
  const hints: string[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (piece: string) => (text += piece));
    request.on('end', () => {
      const body = JSON.parse(text) as {
        request: { metadata: { name: string } };
        context?: { clusterApi?: Context };
        nodeNames: string[];
      };
      if (request.url?.endsWith('/attest/look') === true) {
        hints.push(...body.nodeNames);
        response.writeHead(202).end('{}');
        return;
      }
      contexts.set(body.request.metadata.name, body.context?.clusterApi);
      response.writeHead(200, { 'x-countersign-outcome': 'verdict' });
      response.end(JSON.stringify({ decision: 'ignore', reason: 'UnknownSigner' }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    contexts,
    hints,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

interface World {
  readonly plane: ControlPlane;
  readonly identity: RelayIdentity;
  readonly attest: Awaited<ReturnType<typeof startAttest>>;
  readonly cluster: ManagedCluster;
  /** What the chart rendered. */
  readonly manifest: string;
  /** `kubeconfig`: of the cluster of the requests; default: the management cluster. */
  start(kubeconfig?: string, args?: readonly string[]): Promise<Relay>;
}

async function setUp(signersInStatus: boolean): Promise<World> {
  const plane = await startControlPlane();
  await installClusterApi(plane, { signersInStatus });
  const cluster = await createCluster(plane.admin, { name: 'prod' });
  const file = example('cluster-api.yaml');
  const values = { clusterApi: { infraCluster: { resource: 'awsclusters' } } };
  const show = ['namespace.yaml', 'serviceaccount.yaml', 'rbac.yaml', 'cluster-api-rbac.yaml'];
  const manifest = join(plane.dir, 'relay.yaml');
  writeFileSync(manifest, await template(file, { show, values }));
  const identity = await installRelay(plane, manifest);
  await untilGranted(plane, identity, { verb: 'list', group, resource: 'machines', namespace: 'default' });
  const config = join(plane.dir, 'countersign.yaml');
  writeFileSync(config, (parse(readFileSync(file, 'utf8')) as { configuration: string }).configuration);
  const attest = await startAttest();
  const start: World['start'] = (kubeconfig = identity.kubeconfig(), args = []) =>
    startRelay({
      kubeconfig,
      endpoint: attest.url,
      cluster: 'prod',
      args: ['--config', config, '--infra-cluster-signers', ...args],
    });
  return { plane, identity, attest, cluster, manifest, start };
}

let requests = 0;

/** What attest is told about a new request for this node with this provider ID. */
async function asked({ plane, attest }: Pick<World, 'plane' | 'attest'>, node: string, providerId?: string) {
  requests += 1;
  const name = `request-${requests}`;
  const value = Buffer.from(providerId ?? '', 'utf8');
  const extension = { oid: providerIdType, value: Buffer.concat([Buffer.from([0x0c, value.length]), value]) };
  await createRequest(plane.admin, {
    name,
    signer: 'kube-apiserver-client-kubelet',
    request: {
      subject: { O: 'system:nodes', CN: `system:node:${node}` },
      ...(providerId === undefined ? {} : { extensions: [extension] }),
    },
  });
  await eventually(() => attest.contexts.has(name), `attest was asked about ${name}`);
  return attest.contexts.get(name);
}

const found = (context: Context | undefined) =>
  context?.machines.map(({ kind, name }) => `${String(kind)} ${String(name)}`);

describe.skipIf(skip)('a relay in a management cluster', () => {
  let world: World;
  let relay: Relay;
  beforeAll(async () => {
    world = await setUp(false);
    relay = await world.start();
  });
  afterAll(async () => {
    await relay?.stop();
    world?.attest.close();
    await world?.plane.stop();
  });

  test('tells attest the Machine at each step of its life', async () => {
    const { cluster } = world;
    const machine = await cluster.createMachine('m1');
    expect(found(await asked(world, 'worker-1', provider('i-1')))).toEqual([]);
    await machine.provisioned(provider('i-1'), ['10.0.0.7']);
    const seen = () => relay.metric('mirror_objects', 'resource="machines"');
    expect(await seen()).toBe(1);
    const common = {
      kind: 'Machine',
      namespace: 'default',
      name: 'm1',
      clusterName: 'prod',
      providerId: provider('i-1'),
    };
    const told = async () => (await asked(world, 'worker-1', provider('i-1')))?.machines[0];
    await eventually(async () => (await told()) !== undefined, 'm1 is seen');
    expect(await told()).toEqual({ ...common, bootstrapReady: false, deleting: false, addresses: ['10.0.0.7'] });
    await machine.bootstrapReady();
    await machine.joined('worker-1');
    await eventually(async () => (await told())?.['nodeName'] === 'worker-1', 'the nodeRef is seen');
    expect(await told()).toMatchObject({ ...common, bootstrapReady: true, deleting: false, nodeName: 'worker-1' });
    // A stock kubelet's serving request has no provider ID.
    expect(found(await asked(world, 'worker-1'))).toEqual(['Machine m1']);
    await cluster.annotate({ [`${group}/authorized-attestors`]: 'aws,tpm' });
    await eventually(
      async () =>
        JSON.stringify((await asked(world, 'n'))?.cluster) === '{"deleting":false,"authorizedAttestors":["aws","tpm"]}',
      'the annotation is seen',
    );
  });

  test('finds members of a MachinePool, also by the provider ID of the Node, and Machines of another Cluster', async () => {
    const { cluster, plane } = world;
    const pool = await cluster.createPool('pool');
    await pool.bootstrapReady();
    await pool.members([provider('i-7'), provider('i-8')]);
    const other = await createCluster(plane.admin, { name: 'staging' });
    await (await other.createMachine('s1')).provisioned(provider('i-9'));
    await createObject(plane.admin, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'worker-8' },
      spec: { providerID: provider('i-8') },
    });
    await eventually(async () => (await relay.metric('mirror_objects', 'resource="machines"')) === 2, 's1 is seen');
    expect(found(await asked(world, 'worker-7', provider('i-7')))).toEqual(['MachinePool pool']);
    expect(found(await asked(world, 'worker-8'))).toEqual(['MachinePool pool']);
    expect((await asked(world, 'worker-9', provider('i-9')))?.machines).toMatchObject([
      { name: 's1', clusterName: 'staging' },
    ]);
  });

  test('hints at a Machine that goes and at a Node that is gone', async () => {
    const { cluster, plane, attest } = world;
    const machine = await cluster.createMachine('m2');
    await machine.provisioned(provider('i-2'));
    await machine.joined('worker-2');
    const ofNode = (count: number) => attest.hints.filter((name) => name === 'worker-2').length === count;
    await eventually(async () => found(await asked(world, 'worker-2'))?.length === 1, 'm2 is seen');
    await machine.deleting();
    await eventually(() => ofNode(1), 'the deletion is a hint');
    await machine.gone();
    await eventually(() => ofNode(2), 'the end is a hint');
    await deleteObject(plane.admin, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-8' } });
    await eventually(() => attest.hints.includes('worker-8'), 'the Node is a hint');
    expect(await relay.metric('hints_total', 'result="sent"')).toBeGreaterThanOrEqual(3);
  });

  test('an API server that forgets the past: it lists again, and has lost what was deleted meanwhile', async () => {
    const { cluster, plane } = world;
    const machine = await cluster.createMachine('m3');
    await machine.provisioned(provider('i-3'));
    await eventually(async () => found(await asked(world, 'w', provider('i-3')))?.length === 1, 'm3 is seen');
    await plane.compactEtcd();
    await plane.restartApiServer();
    await machine.gone();
    await eventually(async () => found(await asked(world, 'w', provider('i-3')))?.length === 0, 'm3 is gone');
    expect(found(await asked(world, 'worker-1', provider('i-1')))).toEqual(['Machine m1']);
    expect(await relay.metric('mirror_lists_total', 'resource="machines"')).toBeGreaterThanOrEqual(2);
    await eventually(async () => (await relay.ready()).status === 200, 'ready again');
  });

  test('no published definition has the fields of the status: the InfraCluster has annotations', async () => {
    const { plane } = world;
    const path = `/apis/${infrastructure}/v1beta2/namespaces/default/awsclusters/prod`;
    const read = () =>
      plane.admin.expectOk<{ metadata: { annotations?: Record<string, string> }; status: object }>(path);
    await eventually(async () => (await read()).metadata.annotations !== undefined, 'the annotations are written');
    const { metadata, status } = await read();
    expect(metadata.annotations).toMatchObject({
      [annotation('client')]: signers.client,
      [annotation('serving')]: signers.serving,
    });
    expect(status).not.toHaveProperty('kubeletClientCertificateSigner');
    expect(await relay.metric('infra_cluster_total', 'result="annotations"')).toBe(1);
    expect(await relay.metric('infra_cluster_total', 'result="failed"')).toBe(0);
  });

  test('its rights are exactly what it uses of these objects', async () => {
    const { plane, identity, manifest } = world;
    const groups = new Set([group, infrastructure]);
    const rules = manifestObjects(manifest).flatMap(({ rules: all = [] }) => all);
    const granted = rules.flatMap(({ apiGroups = [], resources = [], verbs }) =>
      resources
        .filter((resource) => groups.has(apiGroups[0]!) || resource === 'nodes')
        .flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
    );
    const used = plane
      .auditEvents({ user: identity.user })
      .flatMap(({ verb, objectRef }) =>
        objectRef !== undefined && (groups.has(objectRef.apiGroup ?? '') || objectRef.resource === 'nodes')
          ? [`${verb} ${objectRef.resource}${objectRef.subresource === undefined ? '' : `/${objectRef.subresource}`}`]
          : [],
      );
    expect([...new Set(used)].toSorted()).toEqual(granted.toSorted());
    const may = (verb: string, resource: string, more: object = {}) =>
      isAllowed(plane, identity, { verb, group, resource, namespace: 'default', ...more });
    expect(await may('list', 'machines')).toBe(true);
    expect(await may('list', 'machines', { namespace: 'other' })).toBe(false);
    expect(await may('get', 'machines', { name: 'm1' })).toBe(false);
    expect(await may('update', 'machines', { name: 'm1' })).toBe(false);
    expect(await may('watch', 'clusters', { name: 'prod' })).toBe(true);
    expect(await may('watch', 'clusters', { name: 'staging' })).toBe(false);
    expect(await may('patch', 'awsclusters', { group: infrastructure, name: 'prod' })).toBe(true);
    expect(await may('patch', 'awsclusters', { group: infrastructure, name: 'staging' })).toBe(false);
    expect(await may('patch', 'awsmachines', { group: infrastructure, name: 'm1' })).toBe(false);
    expect(await may('get', 'secrets', { group: '' })).toBe(false);
    expect(await may('update', 'nodes', { group: '', namespace: '' })).toBe(false);
  });

  test('without the right it waits, says which right is missing, and goes on once it has it', async () => {
    const { plane, identity, attest, manifest } = world;
    const right = { verb: 'list', group, resource: 'machines', namespace: 'default' };
    const role = manifestObjects(manifest).find(
      ({ kind, metadata }) => kind === 'Role' && metadata.name.endsWith('-machines'),
    )!;
    const patch = (rules: unknown) =>
      plane.kubectl([
        'patch',
        'role',
        role.metadata.name,
        '-n',
        'default',
        '--type=merge',
        '-p',
        JSON.stringify({ rules }),
      ]);
    await patch(role.rules!.filter(({ resources }) => !resources!.includes('machines')));
    await untilTaken(plane, identity, right);
    const stopped = relay;
    await stopped.stop();
    await createRequest(plane.admin, {
      name: 'waits',
      signer: 'kube-apiserver-client-kubelet',
      request: { subject: { O: 'system:nodes', CN: 'system:node:worker-1' } },
    });
    const answered = (resource: string, code: number, from: string) =>
      plane
        .auditEvents({ user: identity.user })
        .filter(
          ({ verb, objectRef, responseStatus, requestReceivedTimestamp: at }) =>
            verb === 'list' && objectRef?.resource === resource && responseStatus?.code === code && at > from,
        ).length;
    const now = plane.auditEvents().at(-1)!.requestReceivedTimestamp;
    // It is not ready, so this does not resolve before the right is back.
    const starting = world.start();
    await eventually(() => answered('machines', 403, now) > 0, 'the list of Machines is refused');
    await eventually(
      () => answered('certificatesigningrequests', 200, now) === 2,
      'the requests of both signers are listed',
    );
    expect(attest.contexts.has('waits')).toBe(false);
    await patch(role.rules);
    relay = await starting;
    expect(relay.logged('request tried again').map(({ cause }) => cause)).toContain('MachinesNotRead');
    await eventually(() => attest.contexts.has('waits'), 'the request goes on');
    expect(found(attest.contexts.get('waits'))).toEqual(['Machine m1']);
  });
});

describe.skipIf(skip)('a relay with another management cluster, whose AWSCluster has the two fields', () => {
  let world: World;
  let workload: ControlPlane;
  let user: string;
  let relay: Relay;
  beforeAll(async () => {
    [world, workload] = await Promise.all([setUp(true), startControlPlane()]);
    const values = { clusterApi: { kubeconfigSecret: 'management', infraCluster: { resource: 'awsclusters' } } };
    const show = ['namespace.yaml', 'serviceaccount.yaml', 'rbac.yaml'];
    const manifest = join(workload.dir, 'relay.yaml');
    writeFileSync(manifest, await template(example('cluster-api.yaml'), { show, values }));
    const identity = await installRelay(workload, manifest);
    ({ user } = identity);
    relay = await world.start(identity.kubeconfig(), ['--machines-kubeconfig', world.identity.kubeconfig()]);
  });
  afterAll(async () => {
    await relay?.stop();
    world?.attest.close();
    await Promise.all([world?.plane.stop(), workload?.stop()]);
  });

  test('takes requests and Nodes from the one, Machines from the other', async () => {
    const machine = await world.cluster.createMachine('m1');
    await machine.provisioned(provider('i-1'));
    await eventually(async () => (await relay.metric('mirror_objects', 'resource="machines"')) === 1, 'm1 is seen');
    const { attest } = world;
    await createObject(workload.admin, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'worker-1' },
      spec: { providerID: provider('i-1') },
    });
    await eventually(
      async () => found(await asked({ plane: workload, attest }, 'worker-1'))?.[0] === 'Machine m1',
      'm1 is found',
    );
    const resources = (plane: ControlPlane) => [
      ...new Set(plane.auditEvents({ user }).flatMap(({ objectRef }) => objectRef?.resource ?? [])),
    ];
    const ofCapi = (resource: string) => /^(machines|machinepools|clusters|awsclusters)$/.test(resource);
    expect(resources(workload).filter(ofCapi)).toEqual([]);
    expect(resources(world.plane).filter((resource) => !ofCapi(resource))).toEqual([]);
  });

  test('names the signers in the status by server-side apply, and sets no annotation', async () => {
    const path = `/apis/${infrastructure}/v1beta2/namespaces/default/awsclusters/prod`;
    interface Stored {
      readonly metadata: {
        annotations?: object;
        managedFields: { manager: string; operation: string; subresource?: string }[];
      };
      readonly status: Record<string, unknown>;
    }
    const read = () => world.plane.admin.expectOk<Stored>(path);
    await eventually(
      async () => (await read()).status['kubeletClientCertificateSigner'] !== undefined,
      'the status is written',
    );
    const { metadata, status } = await read();
    expect(status).toMatchObject({
      ready: true,
      kubeletClientCertificateSigner: signers.client,
      kubeletServingCertificateSigner: signers.serving,
    });
    expect(metadata.annotations).toBeUndefined();
    expect(metadata.managedFields).toContainEqual(
      expect.objectContaining({ manager: 'countersign-signers', operation: 'Apply', subresource: 'status' }),
    );
    expect(await relay.metric('infra_cluster_total', 'result="status"')).toBe(1);
  });
});
