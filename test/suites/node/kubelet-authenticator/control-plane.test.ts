/* The same on a real API server: its bootstrap tokens, its rights, its watches, its judgement of who logs in. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApprovalStack, type ApprovalStack } from '../../../harness/stack/approval.ts';
import { startAwsPlatform, type AwsPlatform } from '../../../harness/attestation/attested-site.ts';
import { cacheFiles, printed } from '../../../harness/node/authenticator-output.ts';
import { bootstrapToken, createNode, signers, type Node } from '../../../harness/node/authenticator-site.ts';
import { certificatePemOf, readRequests } from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

const audience = '111122223333/eu-central-1/demo';
const configuration = `version: 1
clusters:
  demo:
    cas: { ca: { subject: { commonName: authenticator control plane CA } } }
    profiles:
      ${signers.client}: { maxTtl: 70s }
      ${signers.serving}: { maxTtl: 30d }
    approval: { ${signers.client}: approve, ${signers.serving}: approve }
    attestation:
      audience: ${audience}
      aws:
        accounts: { '111122223333': {} }
        regions: [eu-central-1]
        tags: { kubernetes.io/cluster/prod: owned }
        nodeName: ['tag:Name']
`;

describe.skipIf(skip)('kubelet-authenticator and a real API server', () => {
  let platform: AwsPlatform;
  let stack: ApprovalStack;
  let clientCaFile: string;
  let caFile: string;
  const nodes: Node[] = [];
  beforeAll(async () => {
    platform = await startAwsPlatform();
    stack = await startApprovalStack(configuration, platform.ports);
    await stack.relay();
    (await stack.bootstrap('abcdef')).close();
    caFile = join(stack.plane.dir, 'serving-ca.pem');
    writeFileSync(caFile, stack.plane.servingCaPem);
    clientCaFile = join(stack.plane.dir, 'client-ca-bundle.pem');
  });
  afterAll(async () => {
    for (const node of nodes) await node.close();
    await stack?.stop();
    await platform?.close();
  });

  const createdBy = (user: string) =>
    stack.plane
      .auditEvents({ user })
      .filter(({ verb, objectRef }) => verb === 'create' && objectRef?.resource === 'certificatesigningrequests');
  async function machine(name: string): Promise<Node> {
    const site = { platform, folder: stack.plane.dir, front: { url: stack.plane.url, caFile }, clientCaFile };
    const node = await createNode(name, { settings: { audience, clientCaBundleFile: undefined } }, site);
    nodes.push(node);
    return node;
  }

  test('a machine joins, logs in as its node, renews as that node, and gets a serving certificate', async () => {
    const node = await machine('n1');
    const first = printed(await node.run());
    const client = await stack.plane.client({ certificatePem: first.certificatePem, keyPem: first.keyPem });
    const review = await client.expectOk<{ status: { userInfo: { username: string; groups: string[] } } }>(
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      { method: 'POST', body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' } },
    );
    client.close();
    expect(review.status.userInfo.username).toBe('system:node:n1');
    expect(review.status.userInfo.groups).toContain('system:nodes');

    // Of its 370 seconds 300 lie before it was issued: counted from there, it is due at once.
    for (const file of ['client.pem', 'client-copy.pem'])
      writeFileSync(join(node.cache, file), cacheFiles(node)[file]!.replace(/^issued-at: .*\n/, ''));
    const second = printed(await node.run());
    expect(second.keyPem).not.toBe(first.keyPem);
    expect((await node.run({ args: ['serving', '--once'] })).code).toBe(0);
    expect(cacheFiles(node)).toHaveProperty('serving.pem');
    expect(createdBy('system:bootstrap:abcdef')).toHaveLength(1);
    expect(createdBy('system:node:n1')).toHaveLength(2);
    const issued = (await readRequests(stack.plane)).map(certificatePemOf);
    expect(issued).toEqual(expect.arrayContaining([first.certificatePem, second.certificatePem]));
  });

  test('ten processes at once make one request here too', async () => {
    const node = await machine('n2');
    const before = createdBy('system:bootstrap:abcdef').length;
    const programs = await Promise.all(Array.from({ length: 10 }, () => node.run()));
    expect(new Set(programs.map((program) => printed(program).certificatePem)).size).toBe(1);
    expect(createdBy('system:bootstrap:abcdef')).toHaveLength(before + 1);
  });

  test('a second machine that claims the name is refused: stderr, condition and Event say why', async () => {
    const thief = await machine('n1');
    const program = await thief.run();
    expect(program).toMatchObject({ code: 1, stdout: '' });
    expect(program.stderr).toMatch(/was denied \(TofuNodeTaken\): node name "n1" belongs to another machine/);
    const name = /request (node-csr-\S+) was denied/.exec(program.stderr)![1]!;
    const request = (await readRequests(stack.plane)).find(({ metadata }) => metadata.name === name)!;
    expect(request.status.conditions).toMatchObject([{ type: 'Denied', reason: 'TofuNodeTaken' }]);
    const { items } = await stack.plane.admin.expectOk<{
      items: { reason: string; regarding: { name: string }; note: string }[];
    }>('/apis/events.k8s.io/v1/namespaces/default/events');
    expect(
      items
        .filter(({ regarding }) => regarding.name === name)
        .map(({ note }) => note)
        .join(),
    ).toContain('belongs to another machine');
  });

  test('without a right or with a wrong token it says so', async () => {
    const node = await machine('n3');
    const file = join(node.cache, '../bootstrap.json');
    writeFileSync(file, JSON.stringify({ token: bootstrapToken.replace('abcdef.', 'fedcba.') }));
    const program = await node.run();
    expect(program.code).toBe(1);
    expect(program.stderr).toContain('the bootstrap credential (system:bootstrap:fedcba) is not accepted');
  });
});
