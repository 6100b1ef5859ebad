/**
 * docs/upgrade-nodes.md from its first step to its last: a control plane that the real kubeadm made with all of its controllers, two real
 * kubelets that joined with a bootstrap token, and a stand-in of EC2 and STS. kubectl watches the Ready condition and the lease of
 * both nodes from the first step to the last.
 */
import { X509Certificate } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import { openSignService, serveSignService, type SignService } from '../../../dev/serve/sign-service.ts';
import type { HttpService } from '../../../dev/csr-api/node-http.ts';
import {
  account,
  awsSettings,
  region,
  signers,
  startAwsPlatform,
  type AwsPlatform,
} from '../../harness/attestation/attested-site.ts';
import { startFakeImds, type FakeImds } from '../../harness/fake-aws/machine/imds.ts';
import { noKubeadmPlane, startKubeadmPlane, type KubeadmPlane } from '../../harness/kubernetes/kubeadm-plane.ts';
import {
  claimAddress,
  requireKubelet,
  startMachine,
  type Kubelet,
  type Machine,
} from '../../harness/kubernetes/kubelet.ts';
import { compileCache, startProcess, temporaryFolder, type RunningProcess } from '../../harness/processes/processes.ts';
import { conditionOf, eventually, readRequests, type CsrObject } from '../../harness/stack/requests.ts';
import { approverManifest, installRelay, startRelay, type Relay } from '../../harness/stack/stack.ts';
import { toolPath } from '../../tools/tools.ts';
import { isReady, presentedCertificate, readyCondition, requestsOf } from '../node/kubelet/node.ts';
import { createOperator, readPageAloud, root, stepText, type Operator, type Reader } from './commands.ts';

const { skip } = await requireKubelet('kubeadm', 'kube-controller-manager', 'helm', 'aws-cli');

const path = 'docs/upgrade-nodes.md';
/** What this suite does not execute, and why. */
const cannot = {
  deploy: 'the suite serves the same handlers with the changed configuration, and starts the relay again with it',
  harden: 'no node runs the relay’s pod: test/suites/control-plane/join/harden.test.ts',
};
const token = 'abcdef.0123456789abcdef';
/** What a kubelet says of its own start (csi_plugin.go, pleg/generic.go and runtime.go of Kubernetes). */
const ownStart =
  /^False .*(CSINode is not yet initialized|pleg has yet to be successful|container runtime status check may not have completed yet)/;
const audience = '999900001111/eu-central-1/prod';

interface Profiles {
  readonly profiles: Readonly<Record<string, object>>;
}

/** The rules of the page, for the machines of this suite, with certificates that end soon enough to see a renewal. */
function rules(...fences: readonly string[]): string {
  const written = fences.map((name) => parse(stepText(path, name)) as Profiles & { readonly approval?: object });
  const profiles = Object.assign({}, ...written.map((each) => each.profiles)) as Profiles['profiles'];
  const cluster = {
    cas: { client: { subject: { commonName: 'prod client' } }, serving: { subject: { commonName: 'prod serving' } } },
    profiles: Object.fromEntries(
      Object.entries(profiles).map(([name, profile]) => [name, { ...profile, maxTtl: '150s' }]),
    ),
    approval: written[0]!.approval,
    attestation: { audience, aws: awsSettings },
  };
  return stringify({ version: 1, clusters: { prod: cluster } });
}

describe.skipIf(skip || noKubeadmPlane)('docs/upgrade-nodes.md', () => {
  const folder = temporaryFolder('upgrade-nodes');
  const dataFolder = join(folder.path, 'data');
  const configurationFile = join(folder.path, 'countersign.yaml');
  const place = { '--cluster prod': `--cluster prod --data ${join(dataFolder, 'prod')}` };
  let platform: AwsPlatform;
  let service: SignService;
  let http: HttpService;
  let plane: KubeadmPlane;
  let relay: Relay | undefined;
  let operator: Operator;
  let page: Reader;
  const nodes: RunningNode[] = [];
  const watches: RunningProcess[] = [];

  interface RunningNode {
    readonly nodeName: string;
    readonly machine: Machine;
    readonly imds: FakeImds;
    /** Stands for /etc of this machine. */
    readonly etc: string;
    readonly shell: Operator;
    readonly cache: string;
    kubelet: Kubelet;
  }

  /** What `cdk deploy` does: from now on these are the rules. */
  async function deploy(text: string): Promise<void> {
    const parsed = parseConfiguration(text, configurationFile);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
    const clusters = [...parsed.value.configuration.clusters.values()];
    const next = await openSignService({ clusters, dataFolder, log: () => {}, aws: platform.ports });
    writeFileSync(configurationFile, text);
    service?.close();
    service = next;
    await relay?.restart();
  }

  const pemOf = (ca: string): string => {
    const { certificate } = service.authority('prod', ca);
    return new X509Certificate(certificate).toString();
  };

  /** In the configuration of kubeadm, as the ConfigMap kubeadm-config keeps it. */
  async function configure(controlPlane: object): Promise<void> {
    const [init = '', cluster = ''] = readFileSync(plane.kubeadmConfiguration, 'utf8').split('---\n');
    const changed = { ...(parse(cluster) as object), ...controlPlane };
    writeFileSync(plane.kubeadmConfiguration, `${init}---\n${stringify(changed)}`);
    await plane.kubeadm('init', 'phase', 'control-plane', 'all');
  }

  /** A machine whose kubelet joins as `kubeadm join` starts it: with a token, for a kubeconfig that it writes itself. */
  async function joinPlainly(nodeName: string): Promise<RunningNode> {
    const machine = await startMachine();
    const etc = join(machine.dir, 'etc');
    const cache = join(machine.dir, 'authenticator');
    mkdirSync(join(etc, 'kubernetes/pki'), { recursive: true });
    writeFileSync(join(etc, 'kubernetes/pki/ca.crt'), plane.servingCaPem);
    writeFileSync(join(etc, 'kubernetes/countersign-ca.pem'), pemOf('client'));
    const { instanceId } = platform.launch(nodeName, { privateIp: machine.address });
    const imds = await startFakeImds({ aws: platform.aws, instanceId });
    const environment = { AWS_EC2_METADATA_SERVICE_ENDPOINT: imds.url, ...compileCache() };
    const home = join(machine.dir, 'shell');
    mkdirSync(home);
    const shell = await createOperator({ folder: home, environment, programs: ['kubectl'] });
    const program = (name: string, script: string): string => {
      const file = join(home, '.bin', name);
      writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      return file;
    };
    program('hostname', `echo ${nodeName}`);
    program('systemctl', `echo "$@" >> ${join(home, 'systemctl.log')}`);
    const real = `${process.execPath} ${join(root, 'kubelet-authenticator/kubelet-authenticator.ts')}`;
    const plugin = program('plugin', `exec ${real} "$@"`);
    // Only the places are the suite's: /etc and /var/lib/kubelet are those of the machine that the suite runs on.
    const places = `--directory=${join(etc, 'kubernetes')} --cache-dir=${cache} --command=${plugin}`;
    program('kubelet-authenticator', `exec ${real} "$@" ${places}`);
    cpSync(join(root, 'examples/join/20-kubeadm-node.conf'), join(home, '20-kubeadm-node.conf'));
    const kubelet = await machine.startKubelet({
      plane,
      nodeName,
      bootstrapToken: token,
      kubeconfig: join(etc, 'kubernetes/kubelet.conf'),
      configuration: { rotateCertificates: true },
    });
    const node: RunningNode = { nodeName, machine, imds, etc, cache, shell, kubelet };
    nodes.push(node);
    return node;
  }

  /** A step of the page on this machine. */
  function onNode({ shell, etc }: RunningNode, step: string): Promise<string> {
    return shell.execute(stepText(path, step).replaceAll('/etc/', `${etc}/`));
  }

  /** What `systemctl restart kubelet` does: the kubelet with the flags of kubeadm's unit and of the drop-in, if there is one. */
  async function restartKubelet(node: RunningNode): Promise<void> {
    const { etc, machine, nodeName } = node;
    expect(readFileSync(join(machine.dir, 'shell/systemctl.log'), 'utf8')).toMatch(/daemon-reload\nrestart kubelet\n$/);
    await node.kubelet.stop();
    const dropIn = join(etc, 'systemd/system/kubelet.service.d/20-countersign.conf');
    const flags = existsSync(dropIn) ? readFileSync(dropIn, 'utf8') : '';
    const flag = (name: string): string | undefined =>
      new RegExp(`--${name}=([^ "]+)`).exec(flags)?.[1]?.replace('/etc/', `${etc}/`);
    const configDir = flag('config-dir');
    node.kubelet = await machine.startKubelet({
      plane,
      nodeName,
      kubeconfig: flag('kubeconfig') ?? join(etc, 'kubernetes/kubelet.conf'),
      ...(configDir === undefined ? {} : { configDir }),
      configuration: { rotateCertificates: true },
      env: {
        PATH: process.env['PATH'] ?? '',
        AWS_EC2_METADATA_SERVICE_ENDPOINT: node.imds.url,
        ...compileCache(),
      },
    });
  }

  const ready = (node: RunningNode): Promise<void> =>
    eventually(() => isReady(plane, node.kubelet, node.nodeName), `${node.nodeName} is Ready`, 120);
  const inCache = ({ cache }: RunningNode): X509Certificate =>
    new X509Certificate(readFileSync(join(cache, 'client.pem')));
  const asked = async (user: string): Promise<CsrObject[]> => requestsOf(await readRequests(plane), user);

  /** Lines of a watch: name and value. */
  function seen(kind: 'nodes' | 'leases'): readonly (readonly [name: string, value: string])[] {
    // A watch that ended sees nothing, and everything would look well.
    for (const watch of watches) expect(watch.ended(), watch.logTail(3)).toBeUndefined();
    const lines = readFileSync(join(folder.path, `${kind}.log`), 'utf8').matchAll(/^(\S+) (.*)\n/gm);
    return [...lines].map(([, name = '', value = '']) => [name, value]);
  }
  /**
   * Reports other than True, of the nodes that joined at first. Not those that a kubelet makes of its own start: any restart may have one,
   * until the kubelet's next status.
   */
  const notReady = (): readonly string[] =>
    seen('nodes').flatMap(([name, status]) =>
      name.startsWith('worker-') && !status.startsWith('True') && !ownStart.test(status) ? [`${name} ${status}`] : [],
    );
  const renewedLeases = (nodeName: string): number => seen('leases').filter(([name]) => name === nodeName).length;

  /** The kubelet of this node has renewed its lease, and again. */
  async function keepsItsLease({ nodeName }: RunningNode): Promise<void> {
    const before = renewedLeases(nodeName);
    await eventually(() => renewedLeases(nodeName) >= before + 2, `${nodeName} renews its lease`, 120);
  }

  async function startWatches(): Promise<void> {
    const kubectl = await toolPath('kubectl');
    const readyField = '.status.conditions[?(@.type=="Ready")]';
    const watch = (kind: 'nodes' | 'leases', value: string, ...args: string[]): RunningProcess =>
      startProcess({
        name: `kubectl get ${kind}`,
        command: kubectl,
        args: [
          `--kubeconfig=${plane.adminKubeconfig}`,
          'get',
          kind,
          '--watch',
          `-o=jsonpath={.metadata.name}${value}{"\\n"}`,
          ...args,
        ],
        logPath: join(folder.path, `${kind}.log`),
      });
    watches.push(
      watch('nodes', ` {${readyField}.status} {${readyField}.message}`),
      watch('leases', ' {.spec.renewTime}', '--namespace=kube-node-lease'),
    );
    await eventually(() => seen('nodes').length >= 2 && seen('leases').length >= 2, 'both watches began');
  }

  beforeAll(async () => {
    platform = await startAwsPlatform();
    await deploy(rules('audit'));
    http = await serveSignService({ handler: (event) => service.handler(event) }, 0);
    const address = await claimAddress();
    plane = await startKubeadmPlane('ECDSA-P256', address);
    const superAdmin = ['--kubeconfig', '/etc/kubernetes/super-admin.conf'];
    await plane.kubeadm('init', 'phase', 'upload-config', 'kubeadm', ...superAdmin);
    await plane.kubeadm('init', 'phase', 'bootstrap-token', ...superAdmin, '--skip-token-print');
    await plane.kubectl([
      '--namespace=kube-system',
      'create',
      'secret',
      'generic',
      'bootstrap-token-abcdef',
      '--type=bootstrap.kubernetes.io/token',
      ...Object.entries({
        'token-id': 'abcdef',
        'token-secret': token.slice(7),
        'usage-bootstrap-authentication': 'true',
        'auth-extra-groups': 'system:bootstrappers:kubeadm:default-node-token',
      }).map(([key, value]) => `--from-literal=${key}=${value}`),
    ]);
    // docs/kubeadm.md, step 1. The in-tree signer stays on until the nodes have joined.
    writeFileSync(join(plane.etc, 'pki/client-ca-bundle.crt'), `${plane.servingCaPem}${pemOf('client')}`);
    const bundle = [{ name: 'client-ca-file', value: '/etc/kubernetes/pki/client-ca-bundle.crt' }];
    await configure({ apiServer: { extraArgs: bundle } });
    await plane.restart('kube-apiserver');
    await plane.restart('kube-controller-manager');
    const operatorFolder = join(folder.path, 'operator');
    mkdirSync(operatorFolder);
    const ada = platform.aws.createUser(account, 'ada', ['ec2:DescribeInstances']);
    operator = await createOperator({
      folder: operatorFolder,
      environment: {
        ...compileCache(),
        KUBECONFIG: plane.adminKubeconfig,
        AWS_ENDPOINT_URL_EC2: platform.ec2.url,
        AWS_REGION: region,
        AWS_ACCESS_KEY_ID: ada.accessKeyId,
        AWS_SECRET_ACCESS_KEY: ada.secretAccessKey,
      },
    });
    page = readPageAloud(path, operator, cannot);
  }, 240_000);
  afterAll(async () => {
    for (const watch of watches) await watch.stop();
    for (const { machine, imds } of nodes) {
      await machine.stop();
      await imds.close();
    }
    await relay?.stop();
    await plane?.stop();
    await http?.close();
    service?.close();
    await platform?.close();
    folder.remove();
  });

  test(
    'before: two kubelets joined with a token, by the in-tree approver and signer',
    { timeout: 240_000 },
    async () => {
      await Promise.all([joinPlainly('worker-1'), joinPlainly('worker-2')]);
      // In which order they were ready does not matter.
      nodes.sort((one, other) => one.nodeName.localeCompare(other.nodeName));
      for (const node of nodes) {
        await ready(node);
        expect(new X509Certificate(node.kubelet.clientCertificate()!).issuer).toBe('CN=kubernetes');
      }
      await startWatches();
      // docs/kubeadm.md, steps 3 and 4: Countersign signs, and the approver stays on.
      const kubeadms = [{ name: 'controllers', value: '*,bootstrapsigner,tokencleaner,-csrsigning' }];
      await configure({ controllerManager: { extraArgs: kubeadms } });
      await plane.restart('kube-controller-manager');
      const identity = await installRelay(plane, approverManifest);
      relay = await startRelay({
        kubeconfig: identity.kubeconfig(),
        endpoint: http.url,
        cluster: 'prod',
        args: ['--config', configurationFile],
      });
    },
  );

  test('1. and 2. audit: both machines are adopted, and have no key yet', async () => {
    page.text('audit');
    writeFileSync(join(folder.path, 'operator/countersign.yaml'), readFileSync(configurationFile));
    const adopted = await page.run('adopt', place);
    for (const { nodeName } of nodes)
      for (const decision of ['adopt', 'adopted'])
        expect(adopted).toMatch(new RegExp(`^${nodeName} +\\S+ +${decision} *$`, 'm'));
  });

  async function change(node: RunningNode): Promise<void> {
    await onNode(node, 'join');
    expect(existsSync(join(node.etc, 'kubernetes/kubelet-authenticator/bootstrap-credentials.json'))).toBe(false);
    expect(await onNode(node, 'first-certificate')).toContain(node.nodeName);
    expect(inCache(node).issuer).toBe('CN=prod client');
    await onNode(node, 'restart');
    await restartKubelet(node);
    await keepsItsLease(node);
    await ready(node);
    await eventually(
      async () => (await presentedCertificate(node.machine.address, node.kubelet.port)).issuer === 'CN=prod serving',
      `${node.nodeName} serves with a certificate of Countersign`,
    );
  }

  test('3. the first node changes, and goes back, and changes again', { timeout: 400_000 }, async () => {
    const [first] = nodes as [RunningNode];
    for (const step of ['join', 'first-certificate', 'restart']) page.text(step);
    await change(first);
    const shown = await page.run('check', { ...place, 'kubectl get nodes': 'kubectl get nodes -o name' });
    expect(shown).toContain('node/worker-1');
    const withoutKey = [...shown.matchAll(/^(worker-\d) .*none yet/gm)].map(([, name]) => name);
    expect(withoutKey).toEqual(['worker-2']);

    page.text('back');
    await onNode(first, 'back');
    await restartKubelet(first);
    await keepsItsLease(first);
    await change(first);
    expect(notReady()).toEqual([]);
  });

  test('3. the second node changes', { timeout: 240_000 }, async () => {
    await change(nodes[1]!);
    expect(notReady()).toEqual([]);
    // With its own login and evidence, and never with a token.
    for (const { nodeName } of nodes) {
      const own = (await asked(`system:node:${nodeName}`)).find(({ spec }) => spec.signerName === signers.client);
      expect(conditionOf(own!, 'Approved')).toMatchObject({ reason: 'AutoApproved' });
    }
  });

  test('4. enforced: both nodes renew with evidence', { timeout: 400_000 }, async () => {
    page.text('enforce');
    await deploy(rules('audit', 'enforce'));
    const before = nodes.map((node) => inCache(node).serialNumber);
    for (const [index, node] of nodes.entries()) {
      await eventually(() => inCache(node).serialNumber !== before[index], `${node.nodeName} renewed`, 240);
      await keepsItsLease(node);
    }
    expect(notReady()).toEqual([]);
  });

  test('5. closed: a kubelet that joins with the token alone is denied', { timeout: 240_000 }, async () => {
    const bound = async () => operator.execute('kubectl get clusterrolebinding -o name');
    expect(await bound()).toContain('autoapprove');
    await page.run('unbind');
    expect(await bound()).not.toContain('autoapprove');
    await configure(parse(page.text('approver-off')) as object);
    await plane.restart('kube-controller-manager');

    const stranger = await joinPlainly('stranger');
    const decisions = async () =>
      (await asked('system:bootstrap:abcdef')).flatMap((request) => conditionOf(request, 'Denied')?.reason ?? []);
    await eventually(async () => (await decisions()).length > 0, 'its request is denied', 120);
    expect(stranger.kubelet.clientCertificate()).toBeUndefined();
    expect(await readyCondition(plane, 'stranger')).toBeUndefined();
    for (const node of nodes.slice(0, 2)) {
      await keepsItsLease(node);
      await ready(node);
    }
    expect(notReady()).toEqual([]);
    expect(page.left()).toEqual([]);
  });

  test('the watch sees a node whose kubelet stays away', { timeout: 240_000 }, async () => {
    await nodes[1]!.kubelet.stop();
    await eventually(() => notReady().length > 0, 'it is not Ready', 200);
    expect(notReady()[0]).toContain('worker-2 Unknown Kubelet stopped posting node status');
  });
});
