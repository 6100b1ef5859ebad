/** Commands over the objects of a cluster, and the AWS account of a deployment. */
import { secretOfToken } from '../../../../../core/kubernetes/bootstrap-token.ts';
import { startFakeApi } from '../../rotation/api.ts';
import { now } from '../../run.ts';
import type { Goldens, Session } from '../session.ts';

const secrets = '/api/v1/namespaces/kube-system/secrets';
const world = { randomBytes: (count: number) => Buffer.alloc(count, 7) };

async function api({ call }: Session) {
  const fake = await startFakeApi();
  call('KUBECONFIG', fake.kubeconfig);
  call('SERVER', fake.url);
  const secret = secretOfToken({
    token: { id: 'abcdef', secret: '0123456789abcdef' },
    description: 'rack 7',
    expires: now + 86_340_000,
    usages: ['signing', 'authentication'],
    groups: ['system:bootstrappers:kubeadm:default-node-token'],
  });
  fake.objects.set(secrets, { items: [secret], metadata: {} });
  fake.objects.set(`${secrets}/bootstrap-token-abcdef`, secret);
  return fake;
}

export const goldens: Goldens = {
  async 'token list'(session) {
    await api(session);
    await session.run('token list --kubeconfig KUBECONFIG');
    await session.run('token list --kubeconfig KUBECONFIG -o wide');
    await session.run('token list --kubeconfig /nonexistent/kubeconfig');
  },

  async 'token delete'(session) {
    await api(session);
    await session.run('token delete abcdef --kubeconfig KUBECONFIG');
    await session.run('token delete uvwxyz --kubeconfig KUBECONFIG');
    await session.run('token delete ABC --kubeconfig KUBECONFIG');
  },

  async 'token create'(session) {
    await api(session);
    await session.run('token create --kubeconfig KUBECONFIG -o token', { world });
    await session.run('token create --kubeconfig KUBECONFIG --ttl soon', { world });
  },

  async 'token reconcile'(session) {
    const fake = await api(session);
    const token = { id: 'tok001', secret: '0123456789abcdef' };
    const owner = { kind: 'machine', namespace: 'fleet', name: 'worker-3' } as const;
    const lasting = { token, description: '', expires: now + 60_000, usages: [], groups: [], owner };
    fake.objects.set(secrets, { items: [secretOfToken(lasting)], metadata: {} });
    await session.run('token reconcile --kubeconfig KUBECONFIG --dry-run', { world });
    const group = { name: 'cluster.x-k8s.io', versions: [], preferredVersion: { version: 'v1' } };
    fake.objects.set('/apis', { groups: [group] });
    fake.objects.set('/apis/cluster.x-k8s.io/v1', { resources: [{ name: 'machines' }, { name: 'machinepools' }] });
    fake.objects.set('/apis/cluster.x-k8s.io/v1/namespaces/fleet/machines/worker-3', {});
    await session.run('token reconcile --kubeconfig KUBECONFIG --dry-run', { world });
    await session.run('token reconcile --kubeconfig KUBECONFIG --ttl 1s', { world });
  },

  async 'cluster harden'(session) {
    const fake = await api(session);
    const rbac = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
    const role = 'system:certificates.k8s.io:certificatesigningrequests:nodeclient';
    const binding = {
      metadata: { name: 'kubeadm:node-autoapprove-bootstrap', uid: 'u', resourceVersion: '7' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'Group', name: 'system:bootstrappers' }],
    };
    const controllerManager = {
      metadata: { name: 'kube-controller-manager-a', labels: { component: 'kube-controller-manager' } },
      spec: { containers: [{ name: 'c', command: ['kube-controller-manager', '--controllers=*,-csrsigning'] }] },
    };
    fake.objects.set(rbac, { items: [binding] });
    fake.objects.set('/apis/apps/v1/deployments', { items: [] });
    fake.objects.set('/api/v1/namespaces/kube-system/pods', { items: [controllerManager] });
    fake.objects.set('/apis/authorization.k8s.io/v1/subjectaccessreviews', { status: { allowed: false } });
    await session.run('cluster harden --kubeconfig KUBECONFIG');
    await session.run('cluster harden --kubeconfig KUBECONFIG --yes');
    await session.run('cluster harden --kubeconfig KUBECONFIG --yes --check');
  },

  async 'aws preflight'({ run }) {
    const account = '999900001111';
    const region = 'eu-central-1';
    const relay = `arn:aws:iam::${account}:role/prod-relay`;
    const cluster = {
      cas: { ca: { subject: { commonName: 'prod' } } },
      profiles: { 'kubernetes.io/kubelet-serving': { ca: 'ca' } },
      access: { iam: { principals: [relay] } },
      aws: { account, region },
    };
    const files = { 'countersign.yaml': JSON.stringify({ version: 1, clusters: { prod: cluster } }) };
    const infrastructure = `/aws/service/global-infrastructure/regions/${region}`;
    const services = ['lambda', 'kms', 'dynamodb', 'apigatewayv2'];
    const known = new Map([
      [infrastructure, region],
      ...services.map((service) => [`${infrastructure}/services/${service}`, service] as const),
    ]);
    const view = (concurrency: number) => ({
      connectAccount: async () => ({
        region: async () => region,
        answeredAt: () => now,
        callerArn: async () => `arn:aws:sts::${account}:assumed-role/deployer/ada`,
        parameters: async (names: readonly string[]) =>
          new Map(
            [['/cdk-bootstrap/hnb659fds/version', '30'], ...known].filter(([name]) => names.includes(name ?? '')) as [
              string,
              string,
            ][],
          ),
        concurrency: async () => ({ limit: concurrency, unreserved: concurrency }),
        reservedBy: async () => 0,
        quota: async (_: string, code: string) => ({
          name: `Cryptographic operations (${code === 'L-DC14942D' ? 'ECC' : 'RSA'}) request rate`,
          value: 1000,
        }),
        principal: async () => relay,
        stack: async () => undefined,
        close: () => undefined,
      }),
    });
    await run('aws preflight', { files, world: view(1_000) });
    await run('aws preflight', { files, world: view(10) });
    await run('aws preflight --config missing.yaml');
  },
};
