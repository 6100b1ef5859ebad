import { X509Certificate } from 'node:crypto';
import { connect, createServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import type { KeyAndCertificate } from '../../../harness/x509/test-certificates.ts';
import {
  clusterPath,
  installRelay,
  startDevServer,
  startRelay,
  type Relay,
  type RelayIdentity,
} from '../../../harness/stack/stack.ts';
import {
  approve,
  certificateDerOf,
  certificatePemOf,
  conditionOf,
  createRequest,
  csrPath,
  eventually,
  readRequest,
  readRequests,
  settled,
  type Asked,
  type CsrObject,
} from '../../../harness/stack/requests.ts';

/** Whatever signs for cluster `demo`, its CA named as the dev server names its own. */
export interface SignerUnderTest {
  /** Of the sign endpoint, without path. */
  readonly url: string;
  /** What a relay needs to know of it, beside its address. */
  readonly relayArgs?: readonly string[];
  /** What a relay needs to be let in, beside what this process has. */
  readonly relayEnvironment?: Readonly<Record<string, string>>;
  /** PEM of the CA that signs. */
  caPem(): Promise<string>;
  stop(): Promise<void>;
}

export interface SigningWorld {
  readonly signer: SignerUnderTest;
  readonly plane: ControlPlane;
  readonly relay: Relay;
}

const node = { O: 'system:nodes', CN: 'system:node:n1' };
const refusals: readonly (Asked & { readonly reason: string; readonly messages: readonly string[] })[] = [
  {
    name: 'refused-client',
    signer: 'kube-apiserver-client',
    request: { subject: { CN: 'bob' } },
    usages: ['server auth'],
    reason: 'SignerValidationFailure',
    messages: [
      'invalid usage for client certificate: server auth',
      'missing required usage for client certificate: client auth',
    ],
  },
  {
    name: 'refused-kubelet-client',
    signer: 'kube-apiserver-client-kubelet',
    request: { subject: { O: 'masters', CN: 'n1' }, sans: { dns: ['n1'], ip: ['10.0.0.1'] } },
    reason: 'SignerValidationFailure',
    messages: [
      'subject organization is not system:nodes',
      'DNS subjectAltNames are not allowed',
      'IP subjectAltNames are not allowed',
      'subject common name does not begin with system:node:',
    ],
  },
  {
    name: 'refused-serving',
    signer: 'kubelet-serving',
    request: { subject: node, sans: { email: ['root@example.com'] } },
    usages: ['digital signature', 'client auth'],
    reason: 'SignerValidationFailure',
    messages: [
      'DNS or IP subjectAltName is required',
      'Email subjectAltNames are not allowed',
      'usages did not match [digital signature key encipherment server auth]',
    ],
  },
];

/** In a real cluster, with the real relay: what must hold for the dev server must hold for every deployment. */
export function describeSigning<Signer extends SignerUnderTest>(options: {
  readonly by: string;
  readonly skip: boolean;
  readonly start: () => Promise<Signer>;
  readonly relayArgs?: readonly string[];
  /** Creates the relay's identity in the cluster; by default one that only signs. */
  readonly install?: (plane: ControlPlane) => Promise<RelayIdentity>;
  /** Signers that demand a proof of the machine, if only to look at it. */
  readonly judgedOnArrival?: readonly Asked['signer'][];
  /** Further tests over the same three, after these. */
  readonly more?: (world: () => SigningWorld & { readonly signer: Signer }) => void;
}): void {
  describe.skipIf(options.skip)(`a request approved in a real cluster, signed by ${options.by}`, () => {
    let signer: Signer;
    let plane: ControlPlane;
    let relay: Relay;
    let identity: RelayIdentity;
    let kubelet: ApiClient;
    let bystanders: CsrObject[];

    beforeAll(async () => {
      signer = await options.start();
      plane = await startControlPlane({ clientCaPem: await signer.caPem() });
      kubelet = await plane.client({ user: node.CN, groups: [node.O] });
      identity = await (options.install ?? installRelay)(plane);
      relay = await startRelay({
        kubeconfig: identity.kubeconfig(),
        endpoint: signer.url,
        args: ['--leader-elect', ...(options.relayArgs ?? []), ...(signer.relayArgs ?? [])],
        ...(signer.relayEnvironment === undefined ? {} : { env: signer.relayEnvironment }),
      });
      bystanders = await createBystanders();
    });

    afterAll(async () => {
      kubelet?.close();
      await relay?.stop();
      await plane?.stop();
      await signer?.stop();
    });

    /** What must be left alone: made first, looked at last. */
    async function createBystanders(): Promise<CsrObject[]> {
      const request = { subject: { CN: 'bystander' } };
      const client = { signer: 'kube-apiserver-client', request } as const;
      await createRequest(plane.admin, { ...client, name: 'unapproved' });
      await createRequest(plane.admin, { ...client, name: 'denied' });
      await createRequest(plane.admin, { ...client, name: 'refusable-denied', usages: ['server auth'] });
      await createRequest(plane.admin, { name: 'foreign', signer: 'example.com/foreign', request });
      await createRequest(plane.admin, { name: 'foreign-unapproved', signer: 'example.com/foreign', request });
      await plane.kubectl(['certificate', 'deny', 'denied', 'refusable-denied']);
      await approve(plane, 'foreign');
      return readRequests(plane);
    }

    async function issue(client: ApiClient, asked: Asked): Promise<KeyAndCertificate & { object: CsrObject }> {
      const { made } = await createRequest(client, asked);
      await approve(plane, asked.name);
      const object = (await settled(plane, [asked.name])).get(asked.name)!;
      expect(conditionOf(object, 'Failed')).toBeUndefined();
      return { object, certificatePem: certificatePemOf(object), keyPem: made.keyPem };
    }

    async function whoAmI(login: KeyAndCertificate): Promise<{ status: number; username?: string; groups?: string[] }> {
      const client = await plane.client(login);
      try {
        const answer = await client.request('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
          method: 'POST',
          body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
        });
        const { status } = answer.json() as { status: { userInfo?: { username: string; groups: string[] } } };
        return { status: answer.status, ...status.userInfo };
      } finally {
        client.close();
      }
    }

    test('as kube-apiserver-client: its certificate logs in as exactly its CN and O', async () => {
      const alice = await issue(plane.admin, {
        name: 'alice',
        signer: 'kube-apiserver-client',
        request: { subject: { O: ['developers', 'testers'], CN: 'alice' }, sans: { email: ['alice@example.com'] } },
      });
      const me = await whoAmI(alice);
      expect(me).toMatchObject({ status: 201, username: 'alice' });
      expect(me.groups?.toSorted()).toEqual(['developers', 'system:authenticated', 'testers']);
    });

    test('as kube-apiserver-client-kubelet: its certificate logs in as the node', async () => {
      const kubeletClient = await issue(kubelet, {
        name: 'n1-client',
        signer: 'kube-apiserver-client-kubelet',
        request: { subject: node },
      });
      const me = await whoAmI(kubeletClient);
      expect(me).toMatchObject({ status: 201, username: node.CN });
      expect(me.groups?.toSorted()).toEqual(['system:authenticated', 'system:nodes']);
    });

    test('as kubelet-serving: its certificate serves TLS for its names, to who trusts the bundle', async () => {
      const serving = await issue(kubelet, {
        name: 'n1-serving',
        signer: 'kubelet-serving',
        request: { subject: node, sans: { dns: ['n1.example.com'], ip: ['10.0.0.1'] } },
      });
      const bundle = await signer.caPem();
      expect(await handshake(serving, bundle, 'n1.example.com')).toBe('authorized');
      expect(await handshake(serving, bundle, 'n2.example.com')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
      // A serving certificate is not a login.
      expect((await whoAmI(serving)).status).toBe(401);
    });

    test('signed by another CA with the same name, the same request is 401', async () => {
      const { object, keyPem } = await issue(plane.admin, {
        name: 'carol',
        signer: 'kube-apiserver-client',
        request: { subject: { CN: 'carol' } },
      });
      const other = await startDevServer();
      try {
        const { certificate: _ours, ...status } = object.status;
        const answer = await fetch(`${other.url}${clusterPath}/sign`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            ...object,
            apiVersion: 'certificates.k8s.io/v1',
            kind: 'CertificateSigningRequest',
            status,
          }),
        });
        expect(answer.status).toBe(200);
        const certificatePem = certificatePemOf((await answer.json()) as CsrObject);
        const [ours, theirs] = [certificatePemOf(object), certificatePem].map((pem) => new X509Certificate(pem));
        expect(theirs!.issuer).toBe(ours!.issuer);
        expect(theirs!.publicKey.equals(ours!.publicKey)).toBe(true);
        expect((await whoAmI({ certificatePem, keyPem })).status).toBe(401);
        expect(await whoAmI({ certificatePem: certificatePemOf(object), keyPem })).toMatchObject({ username: 'carol' });
      } finally {
        await other.stop();
      }
    });

    test.each(refusals)('$name ends Failed with all reasons, and an Event says which', async (asked) => {
      const { uid } = await createRequest(asked.signer === 'kube-apiserver-client' ? plane.admin : kubelet, asked);
      await approve(plane, asked.name);
      const object = (await settled(plane, [asked.name])).get(asked.name)!;
      expect(object.status.certificate).toBeUndefined();
      const failed = conditionOf(object, 'Failed');
      expect(failed).toMatchObject({ status: 'True', reason: asked.reason });
      const message = failed!.message!;
      expect(message.split('; ').slice(0, asked.messages.length)).toEqual(asked.messages);
      expect(message.startsWith(asked.messages[0]!)).toBe(true);
      expect(conditionOf(object, 'Approved')?.status).toBe('True');

      await eventually(async () => {
        const described = await plane.kubectl(['describe', 'csr', asked.name]);
        return described.includes(asked.reason) && asked.messages.every((text) => described.includes(text));
      }, 'kubectl describe tells why');
      const events = await plane.kubectl(['get', 'events', '-n', 'default', '-o', 'json']);
      const about = (JSON.parse(events) as { items: Record<string, unknown>[] }).items.filter(
        ({ involvedObject }) => (involvedObject as { uid: string }).uid === uid,
      );
      // Who must be judged on arrival may hear of it then already, unless approval came first.
      const most = options.judgedOnArrival?.includes(asked.signer) === true ? 2 : 1;
      expect([1, most]).toContain(about.length);
      for (const event of about) expect(event).toMatchObject({ type: 'Warning', reason: asked.reason });
      for (const event of about) for (const text of asked.messages) expect(event['message']).toContain(text);
    });

    test('a certificate is written once, and nothing is done about a request that has its answer', async () => {
      const before = await readRequest(plane, 'alice');
      expect(certificateDerOf(before).length).toBeGreaterThan(0);
      await plane.kubectl(['annotate', 'csr', 'alice', 'refused-client', 'touched=yes']);
      const renewed = await issue(plane.admin, {
        name: 'after-touching',
        signer: 'kube-apiserver-client',
        request: { subject: { CN: 'dave' } },
      });
      expect(renewed.object.status.certificate).toBeDefined();
      const after = await readRequest(plane, 'alice');
      expect(after.status).toEqual(before.status);
      const writes = plane
        .auditEvents()
        .filter(
          ({ verb, objectRef, stage }) =>
            stage === 'ResponseComplete' && verb === 'update' && objectRef?.name === 'alice',
        )
        .map(({ objectRef }) => objectRef?.subresource);
      expect(writes).toEqual(['approval', 'status']);
    });

    test('denied, unapproved and foreign ones were left alone all the time', async () => {
      const { items } = await plane.admin.expectOk<{ items: CsrObject[] }>(csrPath);
      const names = bystanders.map(({ metadata }) => metadata.name);
      expect(names.toSorted()).toEqual(['denied', 'foreign', 'foreign-unapproved', 'refusable-denied', 'unapproved']);
      // Whole objects: an unchanged resourceVersion means that there was no write, whatever the fields say.
      expect(items.filter(({ metadata }) => names.includes(metadata.name))).toEqual(bystanders);
      const touched = plane
        .auditEvents({ user: identity.user })
        .filter(({ objectRef }) => names.includes(objectRef?.name ?? ''));
      expect(touched).toEqual([]);
      expect((await relay.ready()).status).toBe(200);
      await expect.poll(() => relay.metric('requests_total', 'outcome="issued"')).toBe(5);
      await expect.poll(() => relay.metric('requests_total', 'outcome="refused"')).toBe(refusals.length);
    });

    options.more?.(() => ({ signer, plane, relay }));
  });
}

/** A TLS server with this certificate, and a client that trusts this bundle and wants this name. */
async function handshake(serving: KeyAndCertificate, ca: string, servername: string): Promise<string> {
  const server = createServer({ cert: serving.certificatePem, key: serving.keyPem }, (socket) => socket.end());
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  try {
    return await new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, ca, servername }, () => {
        resolve('authorized');
        socket.destroy();
      });
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
  } finally {
    server.close();
  }
}
