import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseSettings } from '../../../../lambdas/watch-relay/settings/settings.ts';
import { callerRoleName } from '../../../../core/configuration/resolve/deployment.ts';
import type { StackPlace } from '../../../../cli/runtime/io.ts';
import { clustersOfEachWay, outputsOf } from '../../../harness/stack/stack-outputs.ts';
import { run } from '../../../unit/cli/run.ts';
import { configuration, synthesise } from '../../../unit/lib/synthesis.ts';
import { deployConfiguration, relayValues } from '../../pages/deploy-page.ts';
import { requireTools } from '../../../tools/tools.ts';
import { relayLabels } from '../../../../cli/cluster/relay-view.ts';
import { chart, example, examples, helm, namespace, objects, podTemplate, release, template } from './helm.ts';
import type { Rendered } from './helm.ts';
import { folder, manifests } from './manifests.ts';

const { skip } = await requireTools('helm');

const values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as Record<string, unknown>;
const plain = example('plain-manifests.yaml');

const certificate = (body: string): string => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;

describe.skipIf(skip)('the chart', () => {
  test.each(examples)('with %s passes helm lint --strict and renders', async (file) => {
    expect(await helm(['lint', '--strict', chart, '--values', example(file)])).toContain('0 chart(s) failed');
    const kinds = objects(await template(example(file))).map(({ kind }) => kind);
    expect(kinds).toEqual(
      expect.arrayContaining(['ServiceAccount', 'ClusterRole', 'Deployment', 'PodDisruptionBudget']),
    );
  });

  test('renders the committed manifests, and there are no others', async () => {
    const rendered = await manifests();
    expect(readdirSync(folder).toSorted()).toEqual([...rendered.keys()].toSorted());
    for (const [file, text] of rendered) expect(readFileSync(join(folder, file), 'utf8'), file).toBe(text);
  });

  test.each(examples)('with %s starts the relay with settings it understands', async (file) => {
    const [container] = podTemplate(objects(await template(example(file)))).spec.containers;
    // Two pods may share a node's network and with it the host name: each is told its own name.
    const ofPod = { valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } };
    expect(container!.env.filter(({ valueFrom }) => valueFrom !== undefined)).toEqual([{ name: 'POD_NAME', ...ofPod }]);
    const environment = Object.fromEntries(
      container!.env.map(({ name, value }) => [name, name === 'POD_NAME' ? `${release}-0` : value]),
    );
    const parsed = parseSettings(container!.args, { ...environment, KUBERNETES_SERVICE_HOST: '10.96.0.1' });
    const given = parse(readFileSync(example(file), 'utf8')) as {
      signerNames?: string[];
      configuration?: string;
      hostNetwork?: boolean;
      metrics?: { port?: number };
    };
    expect(parsed).toMatchObject({
      kind: 'settings',
      settings: {
        endpointUrl: expect.stringMatching(/\/v1\/clusters\/prod$/) as unknown,
        login: { kind: 'inCluster' },
        signers:
          given.configuration === undefined
            ? { kind: 'flags', names: given.signerNames ?? values['signerNames'], inFlightPerRequester: 24 }
            : { kind: 'file', path: '/etc/countersign/configuration/countersign.yaml' },
        podName: `${release}-0`,
        concurrency: 32,
        drainSeconds: 20,
        lease: { namespace, name: release },
        probes: {
          port: given.metrics?.port ?? 8080,
          ...(given.hostNetwork === true ? { host: '127.0.0.1' } : {}),
        },
        logLevel: 'info',
      },
    });
  });

  test('makes objects of Prometheus Operator only if asked for, since the cluster may lack their CRDs', async () => {
    const monitoring = (text: string) => objects(text).filter(({ apiVersion }) => apiVersion.startsWith('monitoring.'));
    expect(monitoring(await template(plain))).toEqual([]);
    const labels = { release: 'prometheus' };
    const metrics = {
      from: [{ namespace: 'monitoring' }],
      podMonitor: { enabled: true, labels, interval: '15s' },
      prometheusRule: { enabled: true, labels },
    };
    const text = await template(plain, { values: { metrics } });
    const [monitor, rule, ...others] = monitoring(text);
    expect(others).toEqual([]);
    const pod = podTemplate(objects(text));
    const metadata = { name: release, namespace, labels: expect.objectContaining(labels) as unknown };
    expect(monitor).toMatchObject({
      kind: 'PodMonitor',
      metadata,
      spec: { podMetricsEndpoints: [{ port: 'metrics', path: '/metrics', interval: '15s' }] },
    });
    // The pods of this release, by labels that they have, and the name of a port that they have.
    const { selector } = monitor!.spec as { selector: { matchLabels: Record<string, string> } };
    expect(Object.keys(selector.matchLabels)).toEqual(['app.kubernetes.io/name', 'app.kubernetes.io/instance']);
    expect(pod.metadata.labels).toMatchObject(selector.matchLabels);
    expect(pod.spec.containers[0]!['ports']).toContainEqual({ name: 'metrics', containerPort: 8080 });
    // The rules of the file, each for the pods of this release.
    expect(rule).toMatchObject({ kind: 'PrometheusRule', metadata });
    const file = readFileSync(join(chart, 'alerts.yaml'), 'utf8');
    const scope = `namespace="${namespace}", pod=~"${release}-.*"`;
    expect(rule!.spec).toEqual(parse(file.replaceAll('namespace=~".*"', scope)));
    expect(JSON.stringify(rule!.spec)).toContain('{{ $labels.cause }}');
  });

  test('has every flag of the relay, or there is a reason not to', async () => {
    const without: Readonly<Record<string, string>> = {
      url: 'the environment says it',
      'attest-url': 'the environment says it',
      cluster: 'the environment says it',
      'log-level': 'the environment says it',
      'caller-role': 'the environment says it',
      kubeconfig: 'the pod has a service account',
      context: 'the pod has a service account',
      help: 'a pod has no reader for it',
      probe: 'only the pod of helm test has it',
    };
    const help = parseSettings(['--help'], {});
    if (help.kind !== 'help') throw new Error(help.kind);
    const flags = [...help.text.matchAll(/(?:^ {2,4}|, )--([a-z-]+)/gm)].map(([, flag]) => flag!);
    expect(flags.length).toBeGreaterThan(10);
    const text = readFileSync(join(chart, 'templates/deployment.yaml'), 'utf8');
    const used = [...text.matchAll(/^ +- (?:\{\{ printf ")?--([a-z-]+)/gm)].map(([, flag]) => flag!);
    expect(flags.filter((flag) => !used.includes(flag) && without[flag] === undefined)).toEqual([]);
    expect(used.filter((flag) => !flags.includes(flag))).toEqual([]);
  });

  test('keeps each way in to itself', async () => {
    const pod = async (file: string) => podTemplate(objects(await template(example(file)))).spec;
    const names = ({ containers }: Awaited<ReturnType<typeof pod>>) => containers[0]!.env.map(({ name }) => name);

    const token = await pod('plain-manifests.yaml');
    expect(names(token)).not.toContain('COUNTERSIGN_CALLER_ROLE');
    expect(JSON.stringify(token['volumes'])).toContain('"audience":"countersign.prod.example.com"');

    const webIdentity = await pod('web-identity.yaml');
    expect(names(webIdentity)).toEqual(
      expect.arrayContaining(['COUNTERSIGN_CALLER_ROLE', 'AWS_ROLE_ARN', 'AWS_EC2_METADATA_DISABLED']),
    );
    expect(JSON.stringify(webIdentity['volumes'])).toContain('"audience":"sts.amazonaws.com"');

    const instance = await pod('instance-role.yaml');
    expect(instance.hostNetwork).toBe(true);
    expect(names(instance)).not.toContain('AWS_EC2_METADATA_DISABLED');

    const podIdentity = await pod('eks-pod-identity.yaml');
    expect(podIdentity['volumes']).toBeUndefined();
  });

  test('finding 3: runs on control-plane nodes where their role is its credential, and the notes warn of ordinary ones', async () => {
    const instance = podTemplate(objects(await template(example('instance-role.yaml'))));
    expect(instance.spec['nodeSelector']).toEqual({ 'node-role.kubernetes.io/control-plane': '' });
    const notes = (file: string, ...more: readonly string[]) =>
      helm([
        'install',
        release,
        chart,
        '--dry-run=client',
        '--namespace',
        namespace,
        '--values',
        example(file),
        ...more,
      ]);
    const warned = await notes('instance-role.yaml');
    expect(warned).toContain('WARNING: the relay');
    expect(warned).toContain('Give ordinary nodes another role');
    expect(warned).toContain('(node-role.kubernetes.io/control-plane)');
    expect(await notes('web-identity.yaml')).not.toContain('WARNING: the relay');
    // Which operating system it is says nothing of the role.
    const everywhere = ['--set-json', 'nodeSelector={"kubernetes.io/os":"linux"}'];
    const file = example('web-identity.yaml');
    const nodes = [
      '--set',
      'auth.aws.credentials=instanceRole',
      '--set',
      'auth.aws.roleArn=',
      '--set',
      'hostNetwork=true',
    ];
    await expect(helm(['template', release, chart, '--values', file, ...nodes, ...everywhere])).rejects.toThrow(
      'instanceRole needs a nodeSelector',
    );
  });

  test('lets out of the pod only what it needs: no instance metadata by default, the agent only where it is used', async () => {
    interface Egress {
      to?: { ipBlock: { cidr: string; except?: string[] } }[];
      ports: { protocol: string; port: number }[];
    }
    const policy = async (file: string) =>
      objects(await template(example(file), { show: ['networkpolicy.yaml'] }))[0]!.spec as {
        policyTypes: string[];
        ingress: unknown[];
        egress: Egress[];
      };
    const closed = await policy('plain-manifests.yaml');
    expect(closed.policyTypes).toEqual(['Ingress', 'Egress']);
    expect(closed.ingress).toEqual([]);
    for (const { to, ports } of closed.egress)
      if (to === undefined) expect(ports.map(({ port }) => port)).toEqual([53, 53]);
      else for (const { ipBlock } of to) expect(ipBlock.except?.length).toBeGreaterThan(0);
    expect(JSON.stringify(closed)).not.toContain('169.254.170.23');

    const scraped = await policy('web-identity.yaml');
    expect(scraped.ingress).toEqual([
      {
        from: [
          {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } },
            podSelector: { matchLabels: { 'app.kubernetes.io/name': 'prometheus' } },
          },
        ],
        ports: [{ protocol: 'TCP', port: 'metrics' }],
      },
    ]);
    expect(scraped.egress[0]!.to!.map(({ ipBlock }) => ipBlock.cidr)).toEqual([
      '10.0.0.10/32',
      '10.0.0.11/32',
      '10.0.0.12/32',
    ]);
    expect(JSON.stringify(await policy('eks-pod-identity.yaml'))).toContain('169.254.170.23/32');
    const kinds = objects(await template(example('instance-role.yaml'))).map(({ kind }) => kind);
    expect(kinds).not.toContain('NetworkPolicy');
  });

  test('serves webhook clients only where that is asked for, over a Service, to those named', async () => {
    expect(await template(plain)).not.toMatch(/webhook/i);
    const clientCa = certificate('MIIB');
    const clientSubject = 'O=example "quoted",CN=gcp-controller-manager';
    const rendered = objects(
      await template(example('webhook-proxy.yaml'), { values: { webhookProxy: { clientCa, clientSubject } } }),
    );
    const find = (kind: string) => rendered.find((object) => object.kind === kind);
    expect(find('Service')?.spec).toMatchObject({ ports: [{ port: 443, targetPort: 'webhook' }] });
    expect(find('ConfigMap')).toMatchObject({ data: { 'ca.pem': clientCa } });
    expect(find('NetworkPolicy')?.spec).toMatchObject({
      ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/28' } }], ports: [{ protocol: 'TCP', port: 'webhook' }] }],
    });
    const [container] = podTemplate(rendered).spec.containers;
    const parsed = parseSettings(container!.args, {
      KUBERNETES_SERVICE_HOST: '10.96.0.1',
      COUNTERSIGN_URL: 'https://sign.example.com',
      COUNTERSIGN_CLUSTER: 'prod',
    });
    expect(parsed).toMatchObject({
      settings: {
        webhook: {
          address: { port: 8443 },
          certFile: '/etc/countersign/webhook-tls/tls.crt',
          keyFile: '/etc/countersign/webhook-tls/tls.key',
          tokenFile: '/etc/countersign/webhook-token/token',
          client: { caFile: '/etc/countersign/webhook-client-ca/ca.pem', subject: clientSubject },
        },
      },
    });
    // Every file named in the arguments is in a volume that is mounted there, and no volume is without use.
    const mounts = container!['volumeMounts'] as { name: string; mountPath: string }[];
    const volumes = podTemplate(rendered).spec['volumes'] as { name: string }[];
    expect(volumes.map(({ name }) => name).toSorted()).toEqual(mounts.map(({ name }) => name).toSorted());
    const files = container!.args.flatMap((argument) => /=(\/\S+)\/[^/]+$/.exec(argument)?.[1] ?? []);
    expect([...new Set(files)].toSorted()).toEqual(mounts.map(({ mountPath }) => mountPath).toSorted());
  });

  test.each([
    ['http://proxy.example.com:3128', 3128],
    ['http://proxy.example.com/', 80],
    ['https://[fd00::1]', 443],
    ['https://proxy.example.com:8443/', 8443],
  ])('sends the relay through the proxy %s, and lets it out to there', async (https_proxy, port) => {
    const rendered = objects(await template(plain, { values: { https_proxy, no_proxy: '.example.com' } }));
    const { containers } = podTemplate(rendered).spec;
    const environment = Object.fromEntries(containers[0]!.env.map(({ name, value }) => [name, value]));
    const parsed = parseSettings(containers[0]!.args, { ...environment, KUBERNETES_SERVICE_HOST: '10.96.0.1' });
    expect(parsed).toMatchObject({
      settings: {
        proxy: {
          HTTPS_PROXY: new URL(https_proxy).href,
          NO_PROXY: expect.stringMatching(/^\.example\.com,/) as unknown,
        },
      },
    });
    const { egress } = rendered.find(({ kind }) => kind === 'NetworkPolicy')!.spec as {
      egress: { ports: { port: number }[] }[];
    };
    expect(egress[1]!.ports.map((each) => each.port)).toEqual([...new Set([443, port])]);
  });

  test.each(examples)('%s names the caller role that the stacks make', async (file) => {
    const values = parse(readFileSync(example(file), 'utf8')) as {
      endpoint: { cluster: string };
      auth: { aws?: { callerRoleArn: string } };
    };
    const own = callerRoleName(values.endpoint.cluster);
    const { callerRoleArn = `:role/${own}` } = values.auth.aws ?? {};
    expect(callerRoleArn.split(':role/')[1]).toBe(own);
  });

  describe('takes the values that countersign relay values prints', () => {
    const image = `registry.example.com/countersign/watch-relay@sha256:${'0'.repeat(64)}`;
    const valuesOf = async (yaml: string, ...argv: readonly string[]): Promise<string> => {
      const stackOutputs = async ({ cluster }: StackPlace) => outputsOf(synthesise(yaml), cluster);
      const files = { 'countersign.yaml': yaml };
      const ran = await run(['relay', 'values', '--image', image, ...argv], { files, world: { stackOutputs } });
      expect([ran.code, ran.err]).toEqual([0, '']);
      return ran.out;
    };

    test.each<readonly [string, ...string[]]>([
      ['role'],
      ['role', '--credentials', 'podIdentity'],
      ['role', '--credentials', 'instanceRole'],
      ['url', '--role-arn', 'arn:aws:iam::444455556666:role/one'],
      ['token'],
      ['both', '--auth', 'token'],
    ])('for cluster %s %s %s', async (cluster, ...argv) => {
      const values = parse(await valuesOf(clustersOfEachWay, '--cluster', cluster, ...argv)) as object;
      const rendered = objects(await template(join(chart, 'values.yaml'), { values }));
      const { serviceAccountName, containers } = podTemplate(rendered).spec;
      expect(containers[0]!.image).toBe(image);
      const account = cluster === 'token' ? 'signer-relay' : 'countersign-watch-relay';
      expect(serviceAccountName).toBe(account);
      const signers = rendered.flatMap(({ rules = [] }) =>
        rules.flatMap(({ resources, resourceNames = [] }) => (resources.includes('signers') ? resourceNames : [])),
      );
      expect(new Set(signers)).toEqual(
        new Set(configuration(clustersOfEachWay).clusters.get(cluster)?.profiles.keys()),
      );
    });

    test('docs/deploy.md shows them as they are', async () => {
      const yaml = deployConfiguration();
      const page = relayValues();
      expect(await valuesOf(yaml)).toBe(page);
      const rendered = objects(await template(join(chart, 'values.yaml'), { values: parse(page) as object }));
      expect(podTemplate(rendered).spec.containers[0]!.image).toBe(image);
    });
  });

  test('under another release name keeps lease, rights and account together', async () => {
    const rendered = objects(await template(plain, { release: 'second', namespace: 'pki' }));
    const name = 'second-countersign-watch-relay';
    expect(new Set(rendered.map(({ metadata }) => metadata.name.replace(/-(events|lease)$/, '')))).toEqual(
      new Set([name, 'pki']),
    );
    const { containers, serviceAccountName } = podTemplate(rendered).spec;
    expect(serviceAccountName).toBe(name);
    expect(containers[0]!.args).toEqual(expect.arrayContaining(['--lease-namespace=pki', `--lease-name=${name}`]));
    const lease = rendered.find(({ kind, metadata }) => kind === 'Role' && metadata.name.endsWith('-lease'));
    expect(lease?.rules?.flatMap(({ resourceNames = [] }) => resourceNames)).toEqual([name]);
  });

  test('under overridden names keeps lease, rights, account and selectors together', async () => {
    const values = {
      nameOverride: 'relay',
      namespaceOverride: 'pki',
      serviceAccount: { name: 'signer-caller', annotations: { a: 'b' } },
      webhookProxy: { enabled: true, tlsSecret: 'tls', tokenSecret: 'token', fromCidrs: ['10.0.0.0/28'] },
      metrics: {
        from: [{ namespace: 'monitoring' }],
        podMonitor: { enabled: true },
        prometheusRule: { enabled: true },
      },
    };
    for (const [more, name] of [
      [{}, 'second-relay'],
      [{ fullnameOverride: 'countersign' }, 'countersign'],
    ] as const) {
      const rendered = objects(await template(plain, { release: 'second', values: { ...values, ...more } }));
      for (const { kind, metadata } of rendered) {
        if (metadata.namespace !== undefined && metadata.namespace !== 'default')
          expect(metadata.namespace).toBe('pki');
        const own = kind === 'ServiceAccount' ? 'signer-caller' : kind === 'Namespace' ? 'pki' : name;
        expect(metadata.name.replace(/-(events|lease|webhook)$/, ''), kind).toBe(own);
      }
      const { containers, serviceAccountName } = podTemplate(rendered).spec;
      expect(serviceAccountName).toBe('signer-caller');
      expect(containers[0]!.args).toEqual(expect.arrayContaining(['--lease-namespace=pki', `--lease-name=${name}`]));
      const bindings = rendered.filter(({ kind }) => kind.endsWith('RoleBinding'));
      expect(bindings).toHaveLength(3);
      for (const { subjects } of bindings as unknown as { subjects: unknown }[])
        expect(subjects).toEqual([{ kind: 'ServiceAccount', name: 'signer-caller', namespace: 'pki' }]);
      const selector = { 'app.kubernetes.io/name': 'relay', 'app.kubernetes.io/instance': 'second' };
      expect(podTemplate(rendered).metadata.labels).toMatchObject(selector);
      const selecting = rendered.filter(({ kind }) =>
        ['Deployment', 'NetworkPolicy', 'PodDisruptionBudget', 'PodMonitor', 'Service'].includes(kind),
      );
      expect(selecting).toHaveLength(5);
      for (const { kind, spec } of selecting) {
        const { selector: chosen, podSelector = chosen } = spec as { selector?: object; podSelector?: object };
        expect(kind === 'Service' ? podSelector : (podSelector as { matchLabels: object }).matchLabels, kind).toEqual(
          selector,
        );
      }
      expect(JSON.stringify(rendered.find(({ kind }) => kind === 'PrometheusRule'))).toContain(`pod=~\\"${name}-.*\\"`);
    }
  });

  test('puts labels and annotations where the value says, and keeps those by which the commands find the relay', async () => {
    const values = {
      commonLabels: { team: 'pki' },
      podLabels: { tier: 'control' },
      podAnnotations: { a: '1' },
      deploymentAnnotations: { b: '2' },
      tokenReconcile: { enabled: true, image: { repository: 'r' } },
    };
    const rendered = objects(await template(plain, { values: { ...values, nameOverride: 'relay' } }));
    for (const { kind, metadata } of rendered) expect(metadata.labels, kind).toMatchObject({ team: 'pki' });
    const pod = podTemplate(rendered);
    const found = { 'app.kubernetes.io/part-of': 'countersign', 'app.kubernetes.io/component': 'watch-relay' };
    expect(relayLabels.split(',').toSorted()).toEqual(
      Object.entries(found)
        .map(([key, value]) => `${key}=${value}`)
        .toSorted(),
    );
    expect(pod.metadata.labels).toMatchObject({ ...found, team: 'pki', tier: 'control' });
    expect(pod.metadata.labels).not.toHaveProperty('helm.sh/chart');
    expect(pod.metadata.annotations).toEqual({ a: '1' });
    const deployment = rendered.find(({ kind }) => kind === 'Deployment')!;
    expect(deployment.metadata.annotations).toEqual({ b: '2' });
    expect(deployment.metadata.labels).toMatchObject(found);
    expect(deployment.metadata.labels).not.toHaveProperty('tier');
  });

  test('puts the pods where affinity and spread say; a spread counts the relay’s pods unless it says which', async () => {
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } };
    const zone = { topologyKey: 'topology.kubernetes.io/zone', maxSkew: 2, whenUnsatisfiable: 'DoNotSchedule' };
    const labelSelector = { matchLabels: { a: 'b' } };
    const values = { affinity, topologySpreadConstraints: [zone, { ...zone, labelSelector }] };
    const { spec, metadata } = podTemplate(objects(await template(plain, { values })));
    expect(spec['affinity']).toEqual(affinity);
    const [first, second] = spec['topologySpreadConstraints'] as { labelSelector: { matchLabels: object } }[];
    expect(second).toEqual({ ...zone, labelSelector });
    expect(metadata.labels).toMatchObject(first!.labelSelector.matchLabels);
    const none = podTemplate(objects(await template(plain, { values: { topologySpreadConstraints: [] } })));
    expect(none.spec).not.toHaveProperty('topologySpreadConstraints');
  });

  test('without permissions and accounts of its own makes all the rest the same', async () => {
    const tokenReconcile = { enabled: true, image: { repository: 'r' } };
    const trustBundles = { configMaps: [{ signerName: 'a.example.com/b', namespace: 'web', name: 'ca' }] };
    const all = { tokenReconcile, trustBundles, signerNames: ['a.example.com/b'] };
    const given = { name: 'theirs' };
    const without = {
      ...all,
      rbac: { create: false },
      serviceAccount: { create: false, ...given },
      tokenReconcile: { ...tokenReconcile, serviceAccount: { create: false, name: 'job' } },
    };
    const ownWhole = objects(
      await template(plain, {
        values: {
          ...all,
          serviceAccount: given,
          tokenReconcile: { ...tokenReconcile, serviceAccount: { name: 'job' } },
        },
      }),
    );
    const rest = objects(await template(plain, { values: without }));
    const rights = /^(Cluster)?Role(Binding)?$|^ServiceAccount$/;
    expect(rest.filter(({ kind }) => rights.test(kind))).toEqual([]);
    expect(rest).toEqual(ownWhole.filter(({ kind }) => !rights.test(kind)));
    // What docs/watch-relay.md has a cluster administrator make instead.
    const show = ['serviceaccount.yaml', 'rbac.yaml'];
    const administrators = objects(await template(plain, { values: { ...all, serviceAccount: given }, show }));
    const relays = ({ metadata }: Rendered) => metadata.labels?.['app.kubernetes.io/component'] === 'watch-relay';
    expect(administrators).toEqual(ownWhole.filter((each) => rights.test(each.kind) && relays(each)));
  });

  test('a CA for the endpoint is a file in the pod, and other certificates are other pods', async () => {
    const rendered = async (body: string) =>
      objects(await template(plain, { values: { endpoint: { ca: certificate(body) } } }));
    const first = await rendered('MIIB');
    const map = first.find(({ kind }) => kind === 'ConfigMap') as unknown as { data: Record<string, string> };
    expect(map.data).toEqual({ 'ca.pem': certificate('MIIB') });
    const pod = podTemplate(first);
    expect(pod.spec.containers[0]!.args).toContain('--endpoint-ca=/etc/countersign/endpoint-ca/ca.pem');
    expect(podTemplate(await rendered('MIIC')).metadata.annotations).not.toEqual(pod.metadata.annotations);
  });
});

describe.skipIf(skip)('what the chart refuses', () => {
  const refusal = async (file: string | undefined, more: object): Promise<string> => {
    try {
      await template(file ?? join(chart, 'values.yaml'), { values: more });
    } catch (error) {
      return (error as { stderr: string }).stderr;
    }
    return 'rendered';
  };

  test('the defaults alone: they say one by one what is missing', async () => {
    const url = 'https://sign.example.com';
    expect(await refusal(undefined, {})).toContain('endpoint.url: set it to output SignUrl');
    expect(await refusal(undefined, { endpoint: { url } })).toContain('endpoint.cluster: set it');
    const endpoint = { url, cluster: 'prod' };
    expect(await refusal(undefined, { endpoint })).toContain('auth.method: aws or token');
    expect(await refusal(undefined, { endpoint, auth: { method: 'aws' } })).toContain('auth.aws.callerRoleArn: set it');
    const token = { method: 'token', token: { audience: 'a' } };
    expect(await refusal(undefined, { endpoint, auth: token })).toContain('image.repository: no image is published');
  });

  /** A value a wrong or hostile author writes, and the path the error must name. */
  test.each<[string, object, string]>([
    ['an unknown key', { extraArgs: ['--url=https://evil.example.com'] }, 'extraArgs'],
    ['a misspelt key deep down', { networkPolicy: { apiServer: { cidr: [] } } }, 'networkPolicy/apiServer'],
    ['environment', { env: [{ name: 'NODE_OPTIONS', value: '--require=/x' }] }, 'env'],
    ['plain http', { endpoint: { url: 'http://sign.example.com' } }, 'endpoint/url'],
    ['a login in the URL', { endpoint: { url: 'https://user:secret@sign.example.com' } }, 'endpoint/url'],
    ['a variable in the URL', { endpoint: { url: 'https://$(COUNTERSIGN_CLUSTER).example.com' } }, 'endpoint/url'],
    ['another line in the URL', { endpoint: { url: 'https://a.example.com\n- name: X' } }, 'endpoint/url'],
    [
      'a key among the CAs',
      { endpoint: { ca: '-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----' } },
      'endpoint/ca',
    ],
    ['all signers of a domain', { signerNames: ['kubernetes.io/*'] }, 'signerNames/0'],
    ['no signer', { signerNames: [] }, 'signerNames'],
    ['a flag as a signer', { signerNames: ['a.example.com/x --log-level=debug'] }, 'signerNames/0'],
    ['a signer twice', { signerNames: ['a.example.com/x', 'a.example.com/x'] }, 'signerNames'],
    ['an image that is no digest', { image: { digest: 'sha256:beef' } }, 'image/digest'],
    ['a tag with a space', { image: { tag: '0.1.0 --privileged' } }, 'image/tag'],
    [
      'a user for a role',
      { auth: { aws: { callerRoleArn: 'arn:aws:iam::111122223333:user/me' } } },
      'auth/aws/callerRoleArn',
    ],
    ['a token for a day', { auth: { token: { expirationSeconds: 86_400 } } }, 'auth/token/expirationSeconds'],
    ['credentials in values', { auth: { aws: { secretAccessKey: 'x' } } }, 'auth/aws'],
    [
      'a variable in a subject',
      { webhookProxy: { clientSubject: 'CN=$(COUNTERSIGN_URL)' } },
      'webhookProxy/clientSubject',
    ],
    [
      'a CA’s key for the proxy',
      { webhookProxy: { clientCa: '-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----' } },
      'webhookProxy/clientCa',
    ],
    ['no way in', { auth: { method: 'none' } }, 'auth/method'],
    ['a text for a number', { concurrency: '32' }, 'concurrency'],
    ['more at once than the relay takes', { concurrency: 257 }, 'concurrency'],
    ['a login to the proxy', { https_proxy: 'http://user:secret@proxy.example.com:3128' }, 'https_proxy'],
    ['a variable in the proxy', { https_proxy: 'http://$(COUNTERSIGN_CLUSTER):3128' }, 'https_proxy'],
    ['a proxy for plain http', { http_proxy: 'http://proxy.example.com:3128' }, 'http_proxy'],
    ['no replica', { replicaCount: 0 }, 'replicaCount'],
    ['the name of a former version', { replicas: 2 }, 'replicas'],
    ['a name that is no name', { fullnameOverride: 'Relay_1' }, 'fullnameOverride'],
    ['the account of all pods', { serviceAccount: { create: false, name: 'default' } }, 'serviceAccount/name'],
    ['an affinity of another kind', { affinity: { nodeName: 'a' } }, '/affinity'],
    [
      'a spread without a topology',
      { topologySpreadConstraints: [{ maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }] },
      'topologySpreadConstraints/0',
    ],
    ['no memory limit', { resources: { limits: { memory: null } } }, 'resources/limits'],
    ['a privileged port', { metrics: { port: 80 } }, 'metrics/port'],
    ['scrapers from anywhere', { metrics: { from: [{}] } }, 'metrics/from/0'],
    [
      'an address that is no block',
      { networkPolicy: { endpoint: { cidrs: ['10.0.0.1'] } } },
      'networkPolicy/endpoint/cidrs/0',
    ],
    ['another security context', { securityContext: { privileged: true } }, 'securityContext'],
    ['a toleration with more to it', { tolerations: [{ key: 'a', hostPath: '/' }] }, 'tolerations/0'],
  ])('%s', async (_, more, path) => {
    const text = await refusal(plain, more);
    expect(text).toContain("values don't meet the specifications of the schema");
    expect(text).toContain(
      path.includes('/') || !/additional properties/.test(text) ? `'/${path.replace(/^\//, '')}'` : `'${path}'`,
    );
  });

  // Helm names a wrong place for the name of a key, so only the key is expected.
  test.each([
    ['podLabels', 'app.kubernetes.io/name', 'x'],
    ['podLabels', 'app.kubernetes.io/component', 'x'],
    ['commonLabels', 'pod-security.kubernetes.io/enforce', 'privileged'],
    ['commonLabels', 'helm.sh/chart', 'x'],
  ])('in %s the label %s, which is not the user’s', async (where, key, value) => {
    expect(await refusal(plain, { [where]: { [key]: value } })).toContain(`invalid propertyName '${key}'`);
  });

  test.each<[string, string, object, string]>([
    [
      'the node’s role without its network',
      'instance-role.yaml',
      { hostNetwork: false },
      'instanceRole needs hostNetwork: true',
    ],
    [
      'finding 3: the role of whatever nodes there are',
      'instance-role.yaml',
      { nodeSelector: null },
      'instanceRole needs a nodeSelector for the nodes that have the relay',
    ],
    [
      'web identity without a role',
      'web-identity.yaml',
      { auth: { aws: { roleArn: '' } } },
      'webIdentity needs the role',
    ],
    [
      'a role nothing assumes',
      'web-identity.yaml',
      { auth: { aws: { credentials: 'podIdentity' } } },
      'is for webIdentity only',
    ],
    [
      'injection without a sign for the webhook',
      'eks-pod-identity.yaml',
      { auth: { aws: { credentials: 'injected' } } },
      "injected needs the webhook's annotation",
    ],
    [
      'a caller role beside a token',
      'plain-manifests.yaml',
      { auth: { aws: { callerRoleArn: 'arn:aws:iam::111122223333:role/x' } } },
      'with token it has no effect',
    ],
    [
      'a token without audience',
      'plain-manifests.yaml',
      { auth: { token: { audience: '' } } },
      'auth.token.audience: set it',
    ],
    [
      'scrapers of the node’s loopback',
      'instance-role.yaml',
      { metrics: { from: [{ namespace: 'monitoring' }] } },
      'metrics.from: with hostNetwork',
    ],
    [
      'a PodMonitor that cannot reach the node’s loopback',
      'instance-role.yaml',
      { metrics: { podMonitor: { enabled: true } } },
      'metrics.podMonitor: with hostNetwork',
    ],
    [
      'a PodMonitor behind a NetworkPolicy that admits no scraper',
      'plain-manifests.yaml',
      { metrics: { podMonitor: { enabled: true } } },
      'metrics.podMonitor: name the pods of Prometheus',
    ],
    [
      'a proxy without certificate',
      'webhook-proxy.yaml',
      { webhookProxy: { tlsSecret: '' } },
      'the proxy speaks TLS only',
    ],
    [
      'a proxy without authentication of its callers',
      'webhook-proxy.yaml',
      { webhookProxy: { tokenSecret: '' } },
      'only serves authenticated callers',
    ],
    [
      'a client CA without a subject',
      'webhook-proxy.yaml',
      { webhookProxy: { clientCa: certificate('MIIB') } },
      'need each other',
    ],
    ['a proxy without allowed callers', 'webhook-proxy.yaml', { webhookProxy: { fromCidrs: [] } }, 'admits only them'],
    [
      'a proxy on the port of the metrics',
      'webhook-proxy.yaml',
      { webhookProxy: { port: 8080 } },
      'is also metrics.port',
    ],
    ['a proxy half switched off', 'webhook-proxy.yaml', { webhookProxy: { enabled: false } }, 'is not enabled'],
    [
      'a proxy of the node open to others',
      'webhook-proxy.yaml',
      { hostNetwork: true },
      'webhookProxy.from: with hostNetwork',
    ],
    ['exceptions from no proxy', 'plain-manifests.yaml', { no_proxy: '.example.com' }, 'no_proxy: has no effect'],
    [
      'an account that nothing makes',
      'plain-manifests.yaml',
      { serviceAccount: { create: false } },
      'serviceAccount.name: name the account that you made',
    ],
    [
      'a job’s account that nothing makes',
      'plain-manifests.yaml',
      { tokenReconcile: { enabled: true, image: { repository: 'r' }, serviceAccount: { create: false } } },
      'tokenReconcile.serviceAccount.name: name the account',
    ],
    [
      'one account for the relay and for the job that reads Secrets',
      'plain-manifests.yaml',
      {
        serviceAccount: { name: 'one' },
        tokenReconcile: { enabled: true, image: { repository: 'r' }, serviceAccount: { name: 'one' } },
      },
      'must not be able to read Secrets',
    ],
  ])('%s', async (_, file, more, sentence) => {
    expect(await refusal(example(file), more)).toContain(sentence);
  });
});

/** Places where a free text is the point; each is of no effect on what runs in the container. */
const openMaps = [
  '/global',
  '/serviceAccount/annotations',
  '/podAnnotations',
  '/podLabels',
  '/commonLabels',
  '/deploymentAnnotations',
  '/affinity/nodeAffinity',
  '/affinity/podAffinity',
  '/affinity/podAntiAffinity',
  '/topologySpreadConstraints/labelSelector',
  '/nodeSelector',
  '/metrics/from/podLabels',
  '/metrics/podMonitor/labels',
  '/metrics/prometheusRule/labels',
  '/webhookProxy/from/podLabels',
];

interface Schema {
  readonly type?: string | string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly items?: Schema;
}

test('the schema is closed everywhere, and has the very keys of values.yaml', () => {
  const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')) as Schema;
  const open: string[] = [];
  const walk = (part: Schema, path: string): void => {
    if (part.type === 'object' && part.additionalProperties !== false) open.push(path);
    for (const [key, child] of Object.entries(part.properties ?? {})) walk(child, `${path}/${key}`);
    if (part.items !== undefined) walk(part.items, path);
  };
  walk(schema, '');
  expect(open.toSorted()).toEqual(openMaps.toSorted());

  const compare = (part: Schema, value: unknown, path: string): void => {
    if (part.properties === undefined || part.type !== 'object' || ['/resources/limits', '/affinity'].includes(path))
      return;
    const keys = Object.keys(part.properties).filter((key) => `${path}/${key}` !== '/global');
    expect(Object.keys(value as object).toSorted(), path).toEqual(keys.toSorted());
    for (const key of keys) compare(part.properties[key]!, (value as Record<string, unknown>)[key], `${path}/${key}`);
  };
  compare(schema, values, '');
});
