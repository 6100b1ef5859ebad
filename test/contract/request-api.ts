/**
 * The port RequestApi (core/ports/kubernetes-api.ts) as the relay relies on it. The adapter on a real kube-apiserver passes
 * this suite, and so do the API servers in memory that stand for it in tests.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiAnswer, JsonObject, RequestApi, WatchEvent } from '../../core/ports/kubernetes-api.ts';
import { makeRequest } from '../harness/x509/requests.ts';
import { createTestAuthority } from '../harness/x509/test-certificates.ts';

export interface RequestApiUnderTest {
  readonly api: RequestApi;
  /** Stores a new CertificateSigningRequest as a requester does. */
  readonly create: (object: JsonObject) => Promise<void>;
  readonly close?: () => Promise<void> | void;
}

type Csr = JsonObject & {
  readonly metadata: JsonObject & { readonly name: string; readonly resourceVersion: string };
  readonly status: { readonly conditions?: readonly JsonObject[]; readonly certificate?: string };
};

const pem = makeRequest({ subject: { CN: 'requester' } }).pem;
const condition = (type: string, status = 'True') => ({ type, status, reason: 'Test', message: 'of a test' });
const signal = (): AbortSignal => AbortSignal.timeout(60_000);

export function requestApiContract(name: string, make: () => Promise<RequestApiUnderTest>): void {
  describe(`RequestApi contract: ${name}`, () => {
    let under: RequestApiUnderTest;
    let certificates: readonly [string, string];
    beforeAll(async () => {
      under = await make();
      const [one, other] = [await createTestAuthority('one'), await createTestAuthority('other')];
      const base64 = (text: string) => Buffer.from(text).toString('base64');
      certificates = [base64(one.certificatePem), base64(other.certificatePem)];
    }, 180_000);
    afterAll(() => under?.close?.());

    const valueOf = <T>(answer: ApiAnswer<T>): T => {
      if (!answer.ok) throw new Error(`${answer.problem.why}: ${answer.problem.message}`);
      return answer.value;
    };
    const whyNot = (answer: ApiAnswer<unknown>): string => (answer.ok ? 'accepted' : answer.problem.why);
    const get = async (csr: string) => valueOf(await under.api.get(csr, signal())) as Csr;

    async function create(signerName = 'kubernetes.io/kube-apiserver-client'): Promise<Csr> {
      const csr = `c-${randomUUID()}`;
      await under.create({
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name: csr },
        spec: { request: Buffer.from(pem).toString('base64'), signerName, usages: ['client auth'] },
      });
      return get(csr);
    }
    const decide = (csr: Csr, ...types: readonly string[]) =>
      under.api.updateApproval(
        { ...csr, status: { ...csr.status, conditions: types.map((type) => condition(type)) } },
        signal(),
      );
    const approve = async (csr: Csr) => valueOf(await decide(csr, 'Approved')) as Csr;
    const setStatus = (csr: Csr, status: JsonObject, metadata: JsonObject = {}) =>
      under.api.updateStatus({ ...csr, metadata: { ...csr.metadata, ...metadata }, status }, signal());

    describe('writes', () => {
      test('a decision is stored with annotations in one write; nothing else changes', async () => {
        const csr = await create();
        const annotated = { ...csr, metadata: { ...csr.metadata, annotations: { 'example.com/a': 'b' } } };
        const stored = await approve(annotated);
        expect(stored.metadata['annotations']).toEqual({ 'example.com/a': 'b' });
        expect(stored.status.conditions).toMatchObject([condition('Approved')]);
        expect([stored['spec'], stored.metadata['uid']]).toEqual([csr['spec'], csr.metadata['uid']]);
        expect(stored.metadata.resourceVersion).not.toBe(csr.metadata.resourceVersion);
        expect(await get(csr.metadata.name)).toEqual(stored);
      });

      test.each<[string, (csr: Csr) => Promise<ApiAnswer<unknown>>]>([
        ['Denied beside Approved', async (csr) => decide(await approve(csr), 'Approved', 'Denied')],
        ['a decision taken back', async (csr) => decide(await approve(csr))],
        ['Approved by /status', (csr) => setStatus(csr, { conditions: [condition('Approved')] })],
        ['Failed: False', (csr) => setStatus(csr, { conditions: [condition('Failed', 'False')] })],
        ['no certificate', async (csr) => setStatus(await approve(csr), { certificate: 'AA==' })],
      ])('%s is Invalid and changes nothing', async (_, write) => {
        const csr = await create();
        expect(whyNot(await write(csr))).toBe('Invalid');
        expect((await get(csr.metadata.name)).status.certificate).toBeUndefined();
      });

      test('a certificate is stored once, a write without a change keeps the resourceVersion, another certificate is Invalid', async () => {
        const csr = await approve(await create());
        const issued = valueOf(await setStatus(csr, { ...csr.status, certificate: certificates[0] })) as Csr;
        expect(issued.status.certificate).toBe(certificates[0]);
        const again = valueOf(await setStatus(issued, issued.status)) as Csr;
        expect(again.metadata.resourceVersion).toBe(issued.metadata.resourceVersion);
        expect(whyNot(await setStatus(issued, { ...issued.status, certificate: certificates[1] }))).toBe('Invalid');
        expect(await get(csr.metadata.name)).toEqual(issued);
      });

      test('an old resourceVersion and another UID are a Conflict, a missing object is NotFound', async () => {
        const csr = await create();
        await approve(csr);
        const failed = { conditions: [condition('Failed')] };
        expect(whyNot(await setStatus(csr, failed))).toBe('Conflict');
        expect(whyNot(await decide(csr, 'Denied'))).toBe('Conflict');
        const { metadata } = await get(csr.metadata.name);
        expect(whyNot(await setStatus(csr, failed, { ...metadata, uid: randomUUID() }))).toBe('Conflict');
        expect(whyNot(await setStatus(csr, failed, { name: 'none', uid: randomUUID() }))).toBe('NotFound');
        expect(whyNot(await under.api.get('none', signal()))).toBe('NotFound');
      });
    });

    test('a list has the objects of one signer, in pages of one version, and a watch goes on from there', async () => {
      const [signerName, other] = [`example.com/${randomUUID()}`, `example.com/${randomUUID()}`];
      const created: Csr[] = [];
      for (let n = 0; n < 5; n += 1) created.push(await create(signerName));
      await create(other);
      const first = valueOf(await under.api.list({ signerName, limit: 3 }, signal()));
      // Requests that are created while the relay pages are in the watch, and not in the list.
      const late = await create(signerName);
      await create(other);
      const rest = valueOf(await under.api.list({ signerName, limit: 3, continue: String(first.continue) }, signal()));
      expect([first.items.length, rest.items.length, rest.continue]).toEqual([3, 2, undefined]);
      expect(rest.resourceVersion).toBe(first.resourceVersion);
      const byName = (list: readonly JsonObject[]) => list.map((each) => (each as Csr).metadata.name).toSorted();
      expect(byName([...first.items, ...rest.items])).toEqual(byName(created));
      for (const item of first.items) expect(item['kind']).toBe('CertificateSigningRequest');

      const { resourceVersion } = first;
      const watch = valueOf(await under.api.watch({ signerName, resourceVersion, timeoutSeconds: 2 }, signal()));
      const approved = await approve(late);
      const events: WatchEvent[] = [];
      for await (const event of watch) events.push(event);
      expect(events.filter(({ type }) => type !== 'BOOKMARK')).toEqual([
        { type: 'ADDED', object: late, bytes: expect.any(Number) as number },
        { type: 'MODIFIED', object: approved, bytes: expect.any(Number) as number },
      ]);
    });

    test('a second Event of one name is a Conflict', async () => {
      const event = {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name: `e-${randomUUID()}`, namespace: 'default' },
        eventTime: '2026-01-01T00:00:00.000000Z',
        reportingController: 'countersign.dev/test',
        reportingInstance: 'test',
        action: 'Test',
        reason: 'Test',
        type: 'Normal',
      };
      expect((await under.api.createEvent(event, signal())).ok).toBe(true);
      expect(whyNot(await under.api.createEvent(event, signal()))).toBe('Conflict');
    });
  });
}
