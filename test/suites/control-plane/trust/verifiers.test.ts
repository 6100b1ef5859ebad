/** docs/ca/trust.md says which verifier takes which anchor: Go (kube-apiserver), OpenSSL and Node are asked. */
import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { pemBlocks, toPem } from '../../../../core/encoding/pem.ts';
import { openSignService } from '../../../../dev/serve/sign-service.ts';
import { ask, questionFor } from '../../../conformance/questions.ts';
import { createApiClient } from '../../../harness/kubernetes/api-client.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { eventually } from '../../../harness/stack/requests.ts';
import {
  basicConstraints,
  extKeyUsage,
  general,
  keyOf,
  name,
  purposes,
  subjectAltName,
  writeCertificate,
} from '../../../harness/x509/certificate-writer.ts';
import { clientExtensions, createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver');

const root = resolve(import.meta.dirname, '../../../..');
/** Of certificates for clients and servers, so that both directions are asked about the same ones. */
const mesh = (ca: string): string =>
  `{ca: ${ca}, subject: {commonNames: ['*'], organizations: ['*']}, sans: {dns: ['*.invalid']}, usages: {allowed: [digital signature, client auth, server auth]}}`;
/** `neighbour`: another CA below the root of `nodes`. `old` and `next`: a rotation that keeps the subject. */
const configuration = `version: 1
clusters:
  below-root:
    cas:
      root: {subject: {commonName: root}, pathLen: 1}
      nodes: {kind: issued, issuedBy: root, subject: {commonName: nodes}}
      neighbour: {kind: issued, issuedBy: root, subject: {commonName: neighbour}}
    profiles:
      k8s.example.com/own: ${mesh('nodes')}
      k8s.example.com/neighbour: ${mesh('neighbour')}
      kubernetes.io/kubelet-serving: {ca: nodes}
  rotation:
    cas:
      old: {subject: {commonName: same}}
      next: {subject: {commonName: same}, replaces: old}
    profiles:
      k8s.example.com/next: ${mesh('next')}
      k8s.example.com/old: ${mesh('old')}
`;

interface Login {
  /** The leaf, then what the sign function sends along. */
  readonly chain: string;
  readonly key: string;
}

/** Whether a verifier with these anchors takes the certificate as that of a client. */
type Verifier = (anchors: string, login: Login) => Promise<boolean>;

describe.skipIf(skip)('verifiers and anchors', () => {
  const folder = temporaryFolder('verifiers');
  let plane: ControlPlane;
  let service: Awaited<ReturnType<typeof openSignService>>;

  beforeAll(async () => {
    const parsed = parseConfiguration(configuration, 'countersign.yaml');
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
    service = await openSignService({
      clusters: [...parsed.value.configuration.clusters.values()],
      log: () => undefined,
    });
    plane = await startControlPlane();
  });
  afterAll(async () => {
    service?.close();
    await plane?.stop();
    folder.remove();
  });

  const call = async (path: string, body?: object): Promise<string> => {
    const method = body === undefined ? 'GET' : 'POST';
    const answer = await service.handler({
      version: '2.0',
      rawPath: `/v1/clusters/${path}`,
      rawQueryString: '',
      headers: { 'content-type': 'application/json' },
      requestContext: { http: { method, path: `/v1/clusters/${path}` } },
      isBase64Encoded: false,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${answer.body}`);
    return answer.body;
  };
  async function loginOf(cluster: string, signerName: string): Promise<Login> {
    const question = questionFor('kubernetes.io/kube-apiserver-client', { username: 'jane', groups: [] });
    const { made, object } = ask(question, {
      request: { sans: { dns: ['a.invalid'] } },
      spec: { signerName, usages: ['digital signature', 'client auth', 'server auth'] },
    });
    const signed = JSON.parse(await call(`${cluster}/sign`, object)) as { status: { certificate: string } };
    return {
      chain: Buffer.from(signed.status.certificate, 'base64').toString(),
      key: made.key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    };
  }
  const bundleOf = async (cluster: string, signerName: string): Promise<string> =>
    (JSON.parse(await call(`${cluster}/trust-bundles`)) as { signers: Record<string, string> }).signers[signerName]!;
  const file = (fileName: string, content: string): string => {
    const path = join(folder.path, fileName);
    writeFileSync(path, content);
    return path;
  };

  let trustedNow = '';
  const go: Verifier = async (anchors, { chain, key }) => {
    if (anchors !== trustedNow) await trustForClients(anchors);
    trustedNow = anchors;
    return logsIn(chain, key);
  };

  async function logsIn(certificatePem: string, keyPem: string): Promise<boolean> {
    const client = createApiClient({ url: plane.url, caPem: plane.servingCaPem, login: { certificatePem, keyPem } });
    try {
      const { status } = await client.request('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
        method: 'POST',
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      });
      return status === 201;
    } finally {
      client.close();
    }
  }

  /** Changes --client-ca-file under the running server. A CA of its own in each version shows when it is in force. */
  async function trustForClients(anchors: string): Promise<void> {
    const mark = await createTestAuthority('mark');
    const { certificatePem, keyPem } = await mark.issue({
      subject: [{ CN: ['mark'] }],
      extensions: clientExtensions(),
    });
    const path = join(plane.dir, 'client-ca.crt');
    writeFileSync(`${path}.new`, [plane.servingCaPem, anchors, mark.certificatePem].join('\n'));
    renameSync(`${path}.new`, path);
    await eventually(() => logsIn(certificatePem, keyPem), 'the API server read its client CAs');
  }

  const openssl =
    (...flags: readonly string[]): Verifier =>
    async (anchors, { chain }) => {
      const [leaf = '', ...more] = pemBlocks(chain, 'CERTIFICATE');
      const untrusted = more.length === 0 ? [] : ['-untrusted', file('chain.pem', more.join(''))];
      const files = ['-CAfile', file('anchors.pem', anchors), ...untrusted, file('leaf.pem', leaf)];
      try {
        const options = ['-no-CApath', '-no-CAstore', '-purpose', 'sslclient'];
        execFileSync('openssl', ['verify', ...options, ...flags, ...files], { stdio: 'pipe' });
        return true;
      } catch {
        return false;
      }
    };

  /** A server that asks for a client certificate. */
  const nodeServer =
    (allowPartialTrustChain: boolean): Verifier =>
    (anchors, { chain, key }) =>
      new Promise((answer, reject) => {
        const options = { requestCert: true, rejectUnauthorized: false, allowPartialTrustChain };
        const server = createServer({ ...certificateAndKey(), ca: anchors, ...options }, (socket) => {
          answer(socket.authorized);
          socket.destroy();
          server.close();
        });
        server.on('error', reject).listen(0, '127.0.0.1', () => {
          const { port } = server.address() as AddressInfo;
          const login = { cert: chain, key, rejectUnauthorized: false };
          connect({ host: '127.0.0.1', port, ...login }).on('error', () => undefined);
        });
      });

  const nodeClient =
    (allowPartialTrustChain: boolean): Verifier =>
    (anchors, { chain, key }) =>
      new Promise((answer, reject) => {
        const server = createServer({ cert: chain, key });
        server.on('error', reject).listen(0, '127.0.0.1', () => {
          const { port } = server.address() as AddressInfo;
          const options = { servername: 'a.invalid', ca: anchors, rejectUnauthorized: false, allowPartialTrustChain };
          const socket = connect({ host: '127.0.0.1', port, ...options }, () => {
            answer(socket.authorized);
            socket.destroy();
            server.close();
          });
          socket.on('error', reject);
        });
      });

  const verifiers: readonly (readonly [string, Verifier])[] = [
    ['Go (kube-apiserver)', go],
    ['OpenSSL', openssl()],
    ['OpenSSL with `-partial_chain` (`X509_V_FLAG_PARTIAL_CHAIN`)', openssl('-partial_chain')],
    ['Node, `tls.connect`', nodeClient(false)],
    ['Node, `tls.connect` with `allowPartialTrustChain: true`', nodeClient(true)],
    ['Node, `tls.createServer`', nodeServer(false)],
    ['Node, `tls.createServer` with `allowPartialTrustChain: true`', nodeServer(true)],
  ];
  const yesNo = (yes: boolean): string => (yes ? 'yes' : 'no');

  test('docs/ca/trust.md has the answers of the verifiers', async () => {
    const own = await loginOf('below-root', 'k8s.example.com/own');
    const neighbour = await loginOf('below-root', 'k8s.example.com/neighbour');
    expect(pemBlocks(own.chain, 'CERTIFICATE')).toHaveLength(2);
    const issuing = await bundleOf('below-root', 'k8s.example.com/own');
    const above = await bundleOf('below-root', 'kubernetes.io/kubelet-serving');
    expect(above).toBe(await call('below-root/trust-bundle/root'));
    const rows: string[] = [];
    for (const [title, takes] of verifiers) {
      const answers = [
        await takes(above, own),
        await takes(above, neighbour),
        await takes(issuing, own),
        await takes(issuing, neighbour),
      ];
      rows.push(`| ${title} | ${answers.map(yesNo).join(' | ')} |`);
    }
    const page = readFileSync(join(root, 'docs/ca/trust.md'), 'utf8');
    const head =
      '| verifier | root: its own CA | root: a neighbour CA | issuing CA: its own | issuing CA: a neighbour |';
    expect(page).toContain([head, '|---|---|---|---|---|', ...rows].join('\n'));
  });

  test('old and new CA of one subject: each verifier takes certificates of both, in either order', async () => {
    const both = await bundleOf('rotation', 'k8s.example.com/next');
    const old = await loginOf('rotation', 'k8s.example.com/old');
    const next = await loginOf('rotation', 'k8s.example.com/next');
    const reversed = pemBlocks(both, 'CERTIFICATE').toReversed().join('');
    expect(pemBlocks(both, 'CERTIFICATE')).toHaveLength(2);
    for (const anchors of [both, reversed])
      for (const [title, takes] of verifiers)
        expect([title, await takes(anchors, old), await takes(anchors, next)]).toEqual([title, true, true]);
  });

  test('without key identifiers OpenSSL and Node take certificates of one of the two only', async () => {
    const made = ['one', 'two'].map((which) => {
      const ca = keyOf(`same ${which}`);
      const leaf = keyOf(`leaf ${which}`);
      const dates = { notBefore: Date.now() - 3_600_000, notAfter: Date.now() + 3_600_000 };
      const issuer = name('same');
      const certificate = writeCertificate({
        ...dates,
        subject: issuer,
        issuer,
        key: ca,
        signer: ca,
        extensions: [basicConstraints(true)],
      });
      const extensions = [
        extKeyUsage(purposes.clientAuth, purposes.serverAuth),
        subjectAltName(general.dns('a.invalid')),
      ];
      const signed = writeCertificate({ ...dates, subject: name(which), issuer, key: leaf, signer: ca, extensions });
      const key = leaf.export({ type: 'pkcs8', format: 'pem' }).toString();
      return { anchor: toPem('CERTIFICATE', certificate), login: { chain: toPem('CERTIFICATE', signed), key } };
    });
    const anchors = made.map(({ anchor }) => anchor).join('');
    for (const [title, takes] of verifiers) {
      const taken = [];
      for (const { login } of made) taken.push(await takes(anchors, login));
      const goes = title.startsWith('Go');
      expect([title, taken.filter(Boolean).length]).toEqual([title, goes ? 2 : 1]);
    }
  });

  function certificateAndKey() {
    const key = keyOf('verifier server');
    const dates = { notBefore: Date.now() - 3_600_000, notAfter: Date.now() + 3_600_000 };
    const subject = name('server');
    const certificate = writeCertificate({ ...dates, subject, issuer: subject, key, signer: key });
    return {
      cert: toPem('CERTIFICATE', certificate),
      key: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    };
  }
});
