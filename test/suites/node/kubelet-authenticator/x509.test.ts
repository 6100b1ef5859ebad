/* Provider x509 on a real API server: a node joins, renews and serves with the certificate of its operator's PKI, and no other does. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toPem } from '../../../../core/encoding/pem.ts';
import { startAwsPlatform, type AwsPlatform } from '../../../harness/attestation/attested-site.ts';
import { cacheFiles, printed, secretsOf } from '../../../harness/node/authenticator-output.ts';
import { createNode, type Node, type Program } from '../../../harness/node/authenticator-site.ts';
import { startApprovalStack, type ApprovalStack } from '../../../harness/stack/approval.ts';
import { readRequests } from '../../../harness/stack/requests.ts';
import {
  basicConstraints,
  extKeyUsage,
  general,
  keyOf,
  keyUsage,
  name,
  purposes,
  subjectAltName,
  writeCertificate,
} from '../../../harness/x509/certificate-writer.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

const audience = '111122223333/eu-central-1/demo';
const signers = {
  client: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-x509',
  serving: 'cluster.x-k8s.io/kubelet-serving-x509',
} as const;
const hour = 3_600_000;

const pem = (der: Buffer): string => toPem('CERTIFICATE', der);
const life = { notBefore: Date.now() - hour, notAfter: Date.now() + hour };

/** A root, an intermediate CA under it, and certificates of machines: a PKI is told apart by its keys alone. */
function createPki(pki: string) {
  const [rootKey, caKey] = [keyOf(`${pki} root`), keyOf(`${pki} ca`, 'Ed25519')];
  const ca = (subject: string, key: typeof rootKey, extensions: readonly Buffer[]) =>
    writeCertificate({ ...life, subject: name(subject), issuer: name('Root'), key, signer: rootKey, extensions });
  const root = ca('Root', rootKey, [basicConstraints(true), keyUsage(5)]);
  const intermediate = ca('CA', caKey, [basicConstraints(true, 0), keyUsage(5)]);
  return {
    rootPem: pem(root),
    /** `generation`: another one has another key. */
    issue(host: string, address: number, generation: number, notAfter = life.notAfter) {
      const key = keyOf(`${pki} ${host} ${generation}`);
      const leaf = writeCertificate({
        ...life,
        notAfter,
        subject: name([['2.5.4.10', 'Example']]),
        issuer: name('CA'),
        key,
        signer: caKey,
        extensions: [
          basicConstraints(false),
          keyUsage(0),
          extKeyUsage(purposes.clientAuth),
          subjectAltName(general.uri(`spiffe://prod.example/node/${host}`), general.ip(10, 0, 0, address)),
        ],
      });
      return {
        certificatePem: `${pem(leaf)}${pem(intermediate)}${pem(root)}`,
        keyPem: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
      };
    },
  };
}
const [pki, otherPki] = [createPki('prod'), createPki('other')];

const configuration = JSON.stringify({
  version: 1,
  clusters: {
    demo: {
      cas: { ca: { subject: { commonName: 'x509 suite CA' } } },
      profiles: { [signers.client]: { maxTtl: '70s' }, [signers.serving]: { maxTtl: '30d' } },
      approval: { [signers.client]: 'approve', [signers.serving]: 'approve' },
      attestation: {
        audience,
        x509: {
          roots: { prod: [pki.rootPem] },
          rules: [{ root: 'prod', uri: 'spiffe://prod.example/node/{node}', nodeName: ['{node}'], addresses: true }],
        },
      },
    },
  },
});

describe.skipIf(skip)('kubelet-authenticator with a certificate of its operator and a real API server', () => {
  let platform: AwsPlatform;
  let stack: ApprovalStack;
  let caFile: string;
  const nodes: Node[] = [];
  beforeAll(async () => {
    // Only for the clock of the nodes.
    platform = await startAwsPlatform();
    stack = await startApprovalStack(configuration);
    await stack.relay();
    (await stack.bootstrap('abcdef')).close();
    caFile = join(stack.plane.dir, 'serving-ca.pem');
    writeFileSync(caFile, stack.plane.servingCaPem);
  });
  afterAll(async () => {
    for (const node of nodes) await node.close();
    await stack?.stop();
    await platform?.close();
  });

  interface Machine extends Node {
    /** Its next certificate, written over the last one. */
    install(certificate: ReturnType<typeof pki.issue>): void;
    readonly keyFile: string;
  }

  async function machine(
    nodeName: string,
    certificate: ReturnType<typeof pki.issue>,
    address: number,
  ): Promise<Machine> {
    const folder = join(stack.plane.dir, `svid-${nodes.length}`);
    mkdirSync(folder);
    const [certificateFile, keyFile] = [join(folder, 'svid.pem'), join(folder, 'svid-key.pem')];
    const settings = {
      audience,
      provider: 'x509',
      attestationCertificateFile: certificateFile,
      attestationKeyFile: keyFile,
      servingSignerName: signers.serving,
      servingNames: [`10.0.0.${address}`],
      clientCaBundleFile: undefined,
    };
    const clientCaFile = join(stack.plane.dir, 'client-ca-bundle.pem');
    const site = { platform, folder: stack.plane.dir, front: { url: stack.plane.url, caFile }, clientCaFile };
    const node = await createNode(nodeName, { signerName: signers.client, settings }, site);
    nodes.push(node);
    const install: Machine['install'] = ({ certificatePem, keyPem }) => {
      writeFileSync(certificateFile, certificatePem);
      writeFileSync(keyFile, keyPem, { mode: 0o600 });
    };
    install(certificate);
    return { ...node, install, keyFile };
  }

  /** Of its 370 seconds 300 lie before it was issued: counted from there, it is due at once. */
  function makeDue(node: Node): void {
    for (const file of ['client.pem', 'client-copy.pem'])
      writeFileSync(join(node.cache, file), cacheFiles(node)[file]!.replace(/^issued-at: .*\n/, ''));
  }

  /** The conditions of the newest request that the program names on stderr. */
  async function conditionsOf({ stderr }: Program) {
    const [, requestName] = [...stderr.matchAll(/request (node-csr-\S+?)[ ,:]/g)].at(-1) ?? [];
    return (await readRequests(stack.plane)).find(({ metadata }) => metadata.name === requestName)!.status.conditions;
  }

  test('joins, renews after its own certificate was renewed with a new key, and gets its serving certificate', async () => {
    const first = pki.issue('n1', 1, 1);
    const node = await machine('n1', first, 1);
    const joined = await node.run();
    const client = printed(joined);
    expect(client.certificate.subject).toBe('O=system:nodes\nCN=system:node:n1');
    for (const secret of secretsOf(node, client.keyPem.slice(30, 60), first.keyPem.slice(30, 80)))
      expect(joined.stderr).not.toContain(secret);

    node.install(pki.issue('n1', 1, 2));
    makeDue(node);
    const renewed = await node.run();
    expect(printed(renewed).keyPem).not.toBe(client.keyPem);

    expect(await node.run({ args: ['serving', '--once'] })).toMatchObject({ code: 0 });
    const serving = new X509Certificate(cacheFiles(node)['serving.pem']!);
    expect(serving.subjectAltName).toBe('DNS:n1, IP Address:10.0.0.1');

    // One machine for all three, whatever certificate it had.
    const requests = (await readRequests(stack.plane)).filter(({ spec }) =>
      Object.values<string>(signers).includes(spec.signerName),
    );
    const annotations = {
      'countersign.dev/identity': 'x509#prod/uri/spiffe://prod.example/node/n1',
      'countersign.dev/evidence': 'x509/v1',
    };
    expect(requests.map(({ metadata }) => metadata)).toMatchObject([{ annotations }, { annotations }, { annotations }]);
    expect(requests.map(({ spec }) => spec.username).toSorted()).toEqual([
      'system:bootstrap:abcdef',
      'system:node:n1',
      'system:node:n1',
    ]);
  });

  test('an address of another machine is refused, although its certificate is good', async () => {
    const node = await machine('n2', pki.issue('n2', 2, 1), 9);
    printed(await node.run());
    const program = await node.run({ args: ['serving', '--once'] });
    expect(program.code).toBe(1);
    expect(program.stderr).toContain('(NameNotOwned): address 10.0.0.9 does not belong to this machine');
  });

  test.each([
    [
      'of another root',
      () => otherPki.issue('n3', 3, 1),
      'AttestationInvalid',
      'does not lead to a root of the configuration',
    ],
    ['of another machine', () => pki.issue('n4', 3, 1), 'IdentityNotAllowed', 'this machine may not be called "n3"'],
  ])('a machine with a certificate %s is refused', async (_, certificate, reason, message) => {
    const node = await machine('n3', certificate(), 3);
    const program = await node.run();
    expect(program).toMatchObject({ code: 1, stdout: '' });
    expect(program.stderr).toContain(`(${reason})`);
    expect(program.stderr).toContain(message);
    expect(await conditionsOf(program)).toMatchObject([{ type: 'Denied', reason }]);
  });

  test('a stolen key does not make another node of a machine that has joined', async () => {
    const thief = await machine('n1', pki.issue('n1', 1, 2), 1);
    const program = await thief.run();
    expect(program.code).toBe(1);
    expect(program.stderr).toContain('(TofuReuse)');
  });

  test('an expired certificate and a key that others may read are told on the node, and nothing is requested', async () => {
    const before = (await readRequests(stack.plane)).length;
    const node = await machine('n5', pki.issue('n5', 5, 1, Date.now() - 1_000), 5);
    const expired = await node.run({ args: ['exec', '--wait', '1'] });
    expect(expired.code).toBe(5);
    expect(expired.stderr).toContain('the certificate of this machine expired at');
    node.install(pki.issue('n5', 5, 1));
    chmodSync(node.keyFile, 0o644);
    const readable = await node.run({ args: ['exec', '--wait', '1'] });
    expect(readable.code).toBe(3);
    expect(readable.stderr).toContain(
      `${node.keyFile} can be read by other users (mode 0644): chmod o-rwx ${node.keyFile}`,
    );
    expect(await readRequests(stack.plane)).toHaveLength(before);
    chmodSync(node.keyFile, 0o600);
    printed(await node.run());
  });
});
