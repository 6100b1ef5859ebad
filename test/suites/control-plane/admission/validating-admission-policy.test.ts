/** The sample policy on the API server it is for: what it stops when a request is created, and what it must not stop. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import type { Identity } from '../../../harness/kubernetes/kubeconfig.ts';
import { makeRequest, pemBlock } from '../../../harness/x509/requests.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');
const policy = readFileSync(join(import.meta.dirname, '../../../../examples/validating-admission-policy.yaml'), 'utf8');
const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

const client = 'kubernetes.io/kube-apiserver-client-kubelet';
const serving = 'kubernetes.io/kubelet-serving';
const attestedClient = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws';
const attestedServing = 'cluster.x-k8s.io/kubelet-serving-aws';
const insecure = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-insecure';

const token: Identity = { user: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] };
const kubeadm: Identity = { ...token, groups: ['system:bootstrappers:kubeadm:default-node-token'] };
const node: Identity = { user: 'system:node:n1', groups: ['system:nodes'] };
const ada: Identity = { user: 'ada', groups: ['developers'] };
const admin: Identity = { user: 'root', groups: ['system:masters'] };

const clientUsages = ['digital signature', 'client auth'];
const servingUsages = ['digital signature', 'server auth'];
const pem = makeRequest({ subject: { O: 'system:nodes', CN: 'system:node:n1' }, sans: { dns: ['n1'] } }).pem;

interface Asked {
  readonly by: Identity;
  readonly signerName: string;
  readonly usages: readonly string[];
  readonly request: string;
}

describe.skipIf(skip)('the sample ValidatingAdmissionPolicy', () => {
  let plane: ControlPlane;
  let made = 0;

  /** HTTP status, and the message of a refusal. */
  async function create({ by, signerName, usages, request }: Asked): Promise<string> {
    const api = await plane.client(by);
    try {
      const body = {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name: `request-${++made}` },
        spec: { signerName, usages, request: Buffer.from(request).toString('base64') },
      };
      const { status, json } = await api.request(path, { method: 'POST', body });
      return status === 201 ? '201' : `${status} ${(json() as { message: string }).message}`;
    } finally {
      api.close();
    }
  }

  const ask = (change: Partial<Asked>): Promise<string> =>
    create({ by: token, signerName: client, usages: clientUsages, request: pem, ...change });

  beforeAll(async () => {
    plane = await startControlPlane();
    // RBAC lets every user create requests here, so that only the policy can refuse.
    await plane.kubectl(['create', 'clusterrole', 'asks', '--verb=create', '--resource=certificatesigningrequests']);
    await plane.kubectl(['create', 'clusterrolebinding', 'asks', '--clusterrole=asks', '--group=system:authenticated']);
    await plane.kubectl(['apply', '--validate=strict', '-f', '-'], { input: policy });
    // Until the server has read it, it lets everything through.
    for (let tries = 0; tries < 120 && (await ask({ by: ada })) === '201'; tries += 1) await setTimeout(250);
  });
  afterAll(() => plane?.stop());

  test.each<readonly [string, Partial<Asked>]>([
    ['a bootstrap token, the in-tree signer', {}],
    ['a kubeadm token', { by: kubeadm }],
    ['a token with evidence', { signerName: attestedClient, request: `${pem}${pemBlock('X', Buffer.alloc(32_768))}` }],
    ['a token, the insecure signer', { signerName: insecure }],
    ['a node that renews', { by: node }],
    ['a node that renews with evidence', { by: node, signerName: attestedClient }],
    ['a node, with key encipherment', { by: node, usages: [...clientUsages, 'key encipherment'] }],
    ['a node that serves', { by: node, signerName: serving, usages: servingUsages }],
    ['a node that serves with evidence', { by: node, signerName: attestedServing, usages: servingUsages }],
    ['a user, another signer', { by: ada, signerName: 'kubernetes.io/kube-apiserver-client' }],
    ['a user, a signer of one’s own', { by: ada, signerName: 'example.com/web', usages: ['server auth'] }],
    ['a node, a signer of one’s own', { by: node, signerName: 'example.com/web', usages: ['server auth'] }],
  ])('lets through: %s', async (_, change) => {
    expect(await ask(change)).toBe('201');
  });

  test.each<readonly [string, Partial<Asked>, string]>([
    ['a user, a node client', { by: ada }, 'with a bootstrap token, or for the node itself'],
    ['an administrator likewise', { by: admin, signerName: attestedClient }, 'with a bootstrap token'],
    ['a node by name only', { by: { user: 'system:node:n1', groups: [] } }, 'with a bootstrap token'],
    ['a member of the nodes without a node’s name', { by: { ...node, user: 'ada' } }, 'with a bootstrap token'],
    ['a node, the insecure signer', { by: node, signerName: insecure }, 'does not renew'],
    ['a token that serves', { signerName: serving, usages: servingUsages }, 'for the node itself'],
    ['a user that serves', { by: ada, signerName: attestedServing, usages: servingUsages }, 'for the node itself'],
    ['a token, API clients', { signerName: 'kubernetes.io/kube-apiserver-client' }, 'for no other signer'],
    ['a token, a signer of one’s own', { signerName: 'example.com/web' }, 'for no other signer'],
    ['a client that would serve', { usages: [...clientUsages, 'server auth'] }, 'usages of a node client'],
    ['a client without its usage', { usages: ['digital signature'] }, 'usages of a node client'],
    ['a client that would sign', { usages: [...clientUsages, 'cert sign'] }, 'usages of a node client'],
    [
      'a server that would be a client',
      { by: node, signerName: serving, usages: [...servingUsages, 'client auth'] },
      'usages of a kubelet server',
    ],
    ['more than evidence takes', { request: `${pem}${pemBlock('X', Buffer.alloc(98_304))}` }, 'at most 96 KiB'],
    ['text before the request', { request: `x\n${pem}` }, 'begins with one PEM'],
  ])('stops: %s', async (_, change, message) => {
    const answer = await ask(change);
    expect(answer).toMatch(/^4\d\d /);
    expect(answer).toContain("ValidatingAdmissionPolicy 'countersign-node-requests'");
    expect(answer).toContain(message);
  });
});
