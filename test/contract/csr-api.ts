/**
 * What the relay and the demo rely on in an API server's CertificateSigningRequests. The real kube-apiserver and the
 * demo's stand-in run the same suite: what is wrong in the stand-in would make the demo a lie.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiClient } from '../harness/kubernetes/api-client.ts';
import { makeRequest } from '../harness/x509/requests.ts';
import { createTestAuthority } from '../harness/x509/test-certificates.ts';

export interface CsrApiUnderTest {
  readonly request: ApiClient['request'];
  readonly close: () => Promise<void>;
}

interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastUpdateTime?: string | null;
  lastTransitionTime?: string | null;
}
interface Csr {
  apiVersion?: string;
  kind?: string;
  metadata: { name: string; uid: string; resourceVersion: string; creationTimestamp: string };
  spec: Record<string, unknown> & { signerName: string; username: string; groups: string[] };
  status: { conditions?: Condition[]; certificate?: string };
}
interface Answer<T> {
  status: number;
  body: T & { kind?: string; reason?: string; message?: string; code?: number };
}

const collection = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const signerName = 'kubernetes.io/kube-apiserver-client';
const pem = makeRequest({ subject: { CN: 'jane' } }).pem;

function csrFixture(change: { name?: string; spec?: object; metadata?: object; status?: object } = {}) {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: change.name ?? `c-${randomUUID()}`, ...change.metadata },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName,
      usages: ['client auth'],
      ...change.spec,
    },
    ...(change.status === undefined ? {} : { status: change.status }),
  };
}

export function csrApiContract(name: string, make: () => Promise<CsrApiUnderTest>): void {
  describe(`CertificateSigningRequest API contract: ${name}`, () => {
    let api: CsrApiUnderTest;
    /** PEM of some certificate, and of another: the API server does not ask whose they are. */
    let certificates: readonly [string, string];
    beforeAll(async () => {
      api = await make();
      const authority = await createTestAuthority('one');
      const other = await createTestAuthority('other');
      certificates = [authority.certificatePem, other.certificatePem];
    }, 180_000);
    afterAll(() => api?.close());

    async function call<T = Csr>(
      path: string,
      method = 'GET',
      body?: unknown,
      headers?: Record<string, string>,
    ): Promise<Answer<T>> {
      const answer = await api.request(collection + path, { method, body, ...(headers ? { headers } : {}) });
      return { status: answer.status, body: answer.json() as Answer<T>['body'] };
    }
    async function create(change: Parameters<typeof csrFixture>[0] = {}): Promise<Csr> {
      const { status, body } = await call('', 'POST', csrFixture(change));
      if (status !== 201) throw new Error(`create: ${JSON.stringify(body)}`);
      return body;
    }
    const condition = (type: string, status = 'True') => ({ type, status, reason: 'Test', message: 'for a test' });
    const put = (csr: Csr, subresource: 'approval' | 'status', status: object, change: object = {}) =>
      call(`/${csr.metadata.name}/${subresource}`, 'PUT', { ...csr, ...change, status });
    const approved = async (csr: Csr) => {
      const { status, body } = await put(csr, 'approval', { conditions: [condition('Approved')] });
      expect(status).toBe(200);
      return body;
    };
    const aTime: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const base64 = (text: string) => Buffer.from(text).toString('base64');

    describe('create', () => {
      test('fills in what only the server knows, and drops what a client may not say', async () => {
        const csr = await create({
          spec: { username: 'impostor', groups: ['system:masters'] },
          status: { conditions: [condition('Approved')], certificate: base64(certificates[0]) },
        });
        expect(csr.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
        expect(csr.metadata.resourceVersion).toMatch(/^[1-9]\d*$/);
        expect(Date.parse(csr.metadata.creationTimestamp)).toBeGreaterThan(Date.now() - 60_000);
        expect(csr.spec.username).not.toBe('impostor');
        expect(csr.status).toEqual({});
        expect((await call(`/${csr.metadata.name}`)).body).toEqual(csr);
      });

      test('names the requester who asked', async () => {
        // system:masters, since on the real server the requester has to be allowed to create.
        const headers = { 'impersonate-user': 'system:bootstrap:abcdef', 'impersonate-group': 'system:masters' };
        const { status, body } = await call('', 'POST', csrFixture(), headers);
        expect(status).toBe(201);
        expect(body.spec.username).toBe('system:bootstrap:abcdef');
        expect(body.spec.groups).toEqual(['system:masters', 'system:authenticated']);
      });

      test('makes a name from generateName', async () => {
        const object = csrFixture();
        const { status, body } = await call('', 'POST', { ...object, metadata: { generateName: 'node-csr-' } });
        expect(status).toBe(201);
        expect(body.metadata.name).toMatch(/^node-csr-[a-z0-9]{5}$/);
      });

      test('of a name that exists is a conflict', async () => {
        const csr = await create();
        const { status, body } = await call('', 'POST', csrFixture({ name: csr.metadata.name }));
        expect([status, body.kind, body.reason]).toEqual([409, 'Status', 'AlreadyExists']);
      });

      test.each([
        ['no signerName', { signerName: undefined }],
        ['a signerName without a path', { signerName: 'example.com' }],
        ['a signerName without a domain', { signerName: 'cluster-x-k8s-io/web' }],
        ['legacy-unknown', { signerName: 'kubernetes.io/legacy-unknown' }],
        ['no usages', { usages: [] }],
        ['an expiration under 600 s', { expirationSeconds: 599 }],
        [
          'another PEM block',
          { request: Buffer.from(pem.replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE')).toString('base64') },
        ],
      ])('refuses %s', async (_, spec) => {
        const { status, body } = await call('', 'POST', csrFixture({ spec }));
        expect([status, body.kind, body.reason, body.code]).toEqual([422, 'Status', 'Invalid', 422]);
      });

      test('refuses what is not the object', async () => {
        expect((await call('', 'POST', '{')).status).toBe(400);
        expect((await call('', 'POST', { ...csrFixture(), kind: 'Pod' })).status).toBe(400);
      });
    });

    test('an object that does not exist is not found, whatever is done to it', async () => {
      const csr = await create();
      const absent = { ...csr, metadata: { name: 'absent' } };
      for (const answer of [
        await call('/absent'),
        await call('/absent/status', 'PUT', absent),
        await call('/absent/approval', 'PUT', absent),
      ])
        expect([answer.status, answer.body.reason]).toEqual([404, 'NotFound']);
    });

    describe('PUT /approval', () => {
      test('writes Approved with its times, and nothing but decisions', async () => {
        const csr = await create();
        const { body } = await put(
          csr,
          'approval',
          { conditions: [condition('Approved')], certificate: base64(certificates[0]) },
          { spec: { ...csr.spec, signerName: 'example.com/other' } },
        );
        expect(body.status).not.toHaveProperty('certificate');
        expect(body.spec).toEqual(csr.spec);
        expect(body.status.conditions).toEqual([
          { ...condition('Approved'), lastUpdateTime: aTime, lastTransitionTime: aTime },
        ]);
        expect(Number(body.metadata.resourceVersion)).toBeGreaterThan(Number(csr.metadata.resourceVersion));
        expect(body.metadata.uid).toBe(csr.metadata.uid);
      });

      test('takes annotations in the same write', async () => {
        const csr = await create();
        const metadata = { ...csr.metadata, annotations: { 'countersign.dev/identity': 'x' } };
        const { body } = await put(csr, 'approval', { conditions: [condition('Approved')] }, { metadata });
        expect(body.metadata).toMatchObject({ annotations: { 'countersign.dev/identity': 'x' } });
      });

      test('never both Approved and Denied, never taken back, never anything but True', async () => {
        const csr = await approved(await create());
        const decided = csr.status.conditions ?? [];
        expect((await put(csr, 'approval', { conditions: [...decided, condition('Denied')] })).status).toBe(422);
        expect((await put(csr, 'approval', { conditions: [] })).status).toBe(422);
        expect((await put(await create(), 'approval', { conditions: [condition('Approved', 'False')] })).status).toBe(
          422,
        );
      });
    });

    describe('PUT /status', () => {
      test('stores a certificate, keeps it for good, and takes the same one again without a change', async () => {
        const csr = await approved(await create());
        const stored = await put(csr, 'status', { ...csr.status, certificate: base64(certificates[0]) });
        expect([stored.status, stored.body.status.certificate]).toEqual([200, base64(certificates[0])]);
        const again = await put(stored.body, 'status', stored.body.status);
        expect([again.status, again.body.metadata.resourceVersion]).toEqual([
          200,
          stored.body.metadata.resourceVersion,
        ]);
        for (const certificate of [base64(certificates[1]), undefined])
          expect((await put(stored.body, 'status', { ...csr.status, certificate })).status).toBe(422);
      });

      test.each([
        ['text', () => 'hello'],
        ['another PEM block', () => certificates[0].replaceAll('CERTIFICATE', 'CERTIFICATE REQUEST')],
        ['a broken certificate', () => certificates[0].replace(/\n.{10}/, '\nAAAAAAAAAA')],
      ])('refuses %s as a certificate', async (_, text) => {
        const csr = await approved(await create());
        expect((await put(csr, 'status', { ...csr.status, certificate: base64(text()) })).status).toBe(422);
      });

      test('adds Failed, keeps Approved, and can neither add nor remove a decision', async () => {
        const csr = await approved(await create());
        const failed = await put(csr, 'status', {
          conditions: [...(csr.status.conditions ?? []), condition('Failed')],
        });
        expect(failed.status).toBe(200);
        expect(failed.body.status.conditions?.map(({ type }) => type)).toEqual(['Approved', 'Failed']);

        const sneaked = await put(await create(), 'status', { conditions: [condition('Approved')] });
        expect(sneaked.status).toBe(422);
        const decided = { metadata: failed.body.metadata };
        expect((await put(csr, 'status', { conditions: [condition('Failed')] }, decided)).status).toBe(422);
        expect((await put(csr, 'status', { conditions: csr.status.conditions ?? [] }, decided)).status).toBe(422);
        const reworded = (failed.body.status.conditions ?? []).map((each) => ({ ...each, message: 'other words' }));
        const kept = await put(csr, 'status', { conditions: reworded }, decided);
        expect(kept.body.status.conditions?.map(({ message }) => message)).toEqual(['for a test', 'other words']);
      });

      test('Failed must be True', async () => {
        const csr = await approved(await create());
        const conditions = [...(csr.status.conditions ?? []), condition('Failed', 'False')];
        expect((await put(csr, 'status', { conditions })).status).toBe(422);
      });

      test('a stale resourceVersion and another UID are conflicts and change nothing', async () => {
        const csr = await create();
        const current = await approved(csr);
        const stale = await put(csr, 'status', { certificate: base64(certificates[0]) });
        expect([stale.status, stale.body.reason]).toEqual([409, 'Conflict']);
        const metadata = { ...current.metadata, uid: randomUUID() };
        const foreign = await put(current, 'status', { certificate: base64(certificates[0]) }, { metadata });
        expect([foreign.status, foreign.body.reason]).toEqual([409, 'Conflict']);
        expect((await call(`/${csr.metadata.name}`)).body).toEqual(current);
      });
    });

    describe('SubjectAccessReview', () => {
      const review = (spec: object, change: object = {}) =>
        api.request('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
          method: 'POST',
          body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec, ...change },
        });
      const nodeclient = {
        group: 'certificates.k8s.io',
        resource: 'certificatesigningrequests',
        verb: 'create',
        subresource: 'nodeclient',
        version: '*',
      };
      const who = { user: 'jane', uid: 'u-1', extra: { 'example.com/scope': ['a', 'b'] } };

      test.each([
        [['system:masters', 'system:authenticated'], true],
        [['system:authenticated'], false],
      ])('answers for groups %j: %s', async (groups, allowed) => {
        const answer = await review({ ...who, groups, resourceAttributes: nodeclient });
        expect(answer.status).toBe(201);
        const body = answer.json() as { spec: object; status: { allowed: boolean } };
        expect(body.status.allowed).toBe(allowed);
        expect(body.spec).toMatchObject({ ...who, groups, resourceAttributes: nodeclient });
      });

      test('refuses a question without a user, and what is no review', async () => {
        expect((await review({ resourceAttributes: nodeclient })).status).toBe(422);
        expect((await review({ ...who, resourceAttributes: nodeclient }, { kind: 'Pod' })).status).toBe(400);
      });
    });

    interface List {
      kind: string;
      apiVersion: string;
      metadata: { resourceVersion: string; continue?: string };
      items: Csr[];
    }

    test('a list is filtered by signer, paged, and all its pages show one version', async () => {
      const signer = `example.com/list-${randomUUID()}`;
      const names = ['a', 'b', 'c', 'd', 'e'].map((letter) => `${letter}-${randomUUID()}`);
      for (const each of names) await create({ name: each, spec: { signerName: signer } });
      await create();

      const pages: List[] = [];
      let token = '';
      do {
        const query = new URLSearchParams({ fieldSelector: `spec.signerName=${signer}`, limit: '2' });
        if (token !== '') query.set('continue', token);
        const { status, body } = await call<List>(`?${query.toString()}`);
        expect([status, body.kind, body.apiVersion]).toEqual([
          200,
          'CertificateSigningRequestList',
          'certificates.k8s.io/v1',
        ]);
        pages.push(body);
        token = body.metadata.continue ?? '';
        // What is created between two pages shows in a watch from the list's version.
        if (pages.length === 1) await create({ name: `f-${randomUUID()}`, spec: { signerName: `${signer}-other` } });
      } while (token !== '' && pages.length < 10);
      expect(pages.map(({ items }) => items.length)).toEqual([2, 2, 1]);
      expect(pages.flatMap(({ items }) => items.map(({ metadata }) => metadata.name))).toEqual(names);
      expect(new Set(pages.map(({ metadata }) => metadata.resourceVersion)).size).toBe(1);
      expect(pages[0]?.items[0]).not.toHaveProperty('kind');
    });

    test('a watch gives each change after its version once, in order, of its signer only, and ends in time', async () => {
      const signer = `example.com/watch-${randomUUID()}`;
      const before = await create({ spec: { signerName: signer } });
      const selector = `fieldSelector=${encodeURIComponent(`spec.signerName=${signer}`)}`;
      const { body: list } = await call<List>(`?${selector}`);
      const query = `watch=1&resourceVersion=${list.metadata.resourceVersion}&timeoutSeconds=2&allowWatchBookmarks=true`;
      const watching = api.request(`${collection}?${query}&${selector}`);

      const changed = await approved(before);
      const created = await create({ spec: { signerName: signer } });
      await create();
      const { status, text } = await watching;
      const events = text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as { type: string; object: Csr });
      expect(status).toBe(200);
      const changes = events.filter(({ type }) => type !== 'BOOKMARK');
      expect(changes).toEqual([
        { type: 'MODIFIED', object: changed },
        { type: 'ADDED', object: created },
      ]);
      for (const { object } of events.filter(({ type }) => type === 'BOOKMARK'))
        expect(Number(object.metadata.resourceVersion)).toBeGreaterThanOrEqual(Number(list.metadata.resourceVersion));
    });

    test('a watch without a version begins with all there is', async () => {
      const signer = `example.com/watch-${randomUUID()}`;
      const csr = await create({ spec: { signerName: signer } });
      const query = `watch=1&timeoutSeconds=1&fieldSelector=${encodeURIComponent(`spec.signerName=${signer}`)}`;
      const { text } = await api.request(`${collection}?${query}`);
      expect(JSON.parse(text.split('\n')[0] ?? '')).toEqual({ type: 'ADDED', object: csr });
    });
  });
}
