import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeRequest, newKey, type RequestSpec } from '../../../harness/x509/requests.ts';
import { clusterPath, startDevServer, type DevServer } from '../../../harness/stack/stack.ts';
import { certificatePemOf, type CsrObject } from '../../../harness/stack/requests.ts';

/*
 * The dev server as gcp-controller-manager's webhook client sees it: no relay, no cluster. What that client sends and
 * makes of the answers was measured with the real one.
 */
let signer: DevServer;
beforeAll(async () => {
  signer = await startDevServer();
});
afterAll(async () => signer?.stop());

let made = 0;
function requestObject(request: RequestSpec, change: Record<string, unknown> = {}): Record<string, unknown> {
  made += 1;
  return {
    kind: 'CertificateSigningRequest',
    apiVersion: 'certificates.k8s.io/v1',
    metadata: {
      name: `webhook-${made}`,
      uid: `6f1e1e0e-0000-4000-8000-${String(made).padStart(12, '0')}`,
      resourceVersion: '4711',
      creationTimestamp: '2026-01-01T00:00:00Z',
      managedFields: [{ manager: 'kubectl', operation: 'Update', fieldsV1: { 'f:spec': {} } }],
    },
    spec: {
      request: makeRequest({ key: newKey('P-256'), ...request }).bytes.toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client',
      expirationSeconds: 3600,
      usages: ['digital signature', 'client auth'],
      username: 'alice',
      uid: 'a-user',
      groups: ['system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': ['X509SHA256=00'] },
      ...(change['spec'] as object | undefined),
    },
    status: {
      conditions: [
        {
          type: 'Approved',
          status: 'True',
          reason: 'KubectlApprove',
          message: 'This CSR was approved by kubectl certificate approve.',
          lastUpdateTime: '2026-01-01T00:00:01Z',
          lastTransitionTime: '2026-01-01T00:00:01Z',
        },
      ],
      ...(change['status'] as object | undefined),
    },
    ...(change['apiVersion'] === undefined ? {} : { apiVersion: change['apiVersion'] }),
  };
}

/** As client-go's REST client posts it. */
async function post(object: Record<string, unknown>): Promise<{ status: number; headers: Headers; body: unknown }> {
  const answer = await fetch(`${signer.url}${clusterPath}/sign?timeout=30s`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, */*',
      'user-agent': 'gcp-controller-manager/v30.0.0 (linux/amd64) kubernetes/$Format',
    },
    body: JSON.stringify(object),
  });
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
}

describe('a webhook client', () => {
  test('gets its object back with the certificate, and nothing else changed', async () => {
    const object = requestObject({ subject: { O: 'developers', CN: 'alice' } });
    const { status, body } = await post(object);
    expect(status).toBe(200);
    const certificate = new X509Certificate(certificatePemOf(body as CsrObject));
    expect(certificate.subject).toBe('O=developers\nCN=alice');
    expect(certificate.verify(new X509Certificate(await signer.caPem()).publicKey)).toBe(true);
    const { certificate: added, ...rest } = (body as CsrObject).status;
    expect(typeof added).toBe('string');
    expect({ ...(body as object), status: rest }).toEqual(object);
  });

  test('gets the same certificate again, however often it asks', async () => {
    const object = requestObject({ subject: { CN: 'again' } });
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(object)));
    answers.push(await post(object));
    const issued = answers
      .filter(({ status }) => status === 200)
      .map(({ body }) => certificatePemOf(body as CsrObject));
    expect(issued.length).toBeGreaterThan(0);
    expect(new Set(issued).size).toBe(1);
    expect(answers.every(({ status }) => status === 200 || status === 503)).toBe(true);
  });

  test('may send v1beta1 without a signerName, and is answered in v1beta1', async () => {
    const node = { subject: { O: 'system:nodes', CN: 'system:node:n1' } };
    const object = requestObject(node, {
      apiVersion: 'certificates.k8s.io/v1beta1',
      spec: {
        signerName: undefined,
        usages: ['digital signature', 'key encipherment', 'client auth'],
        username: 'system:node:n1',
        groups: ['system:nodes', 'system:authenticated'],
      },
      status: { conditions: [{ type: 'Approved', reason: 'AutoApproved', message: '' }] },
    });
    const { status, body } = await post(object);
    expect({ status, body }).toMatchObject({ status: 200, body: { apiVersion: 'certificates.k8s.io/v1beta1' } });
    expect((body as CsrObject).spec).toEqual(JSON.parse(JSON.stringify(object['spec'])));
    expect(new X509Certificate(certificatePemOf(body as CsrObject)).subject).toContain('CN=system:node:n1');
  });

  test('is told a refusal in both of the shapes that are read, and not to come back at once', async () => {
    const { status, headers, body } = await post(requestObject({}, { spec: { usages: ['server auth'] } }));
    expect(status).toBe(422);
    expect(headers.get('retry-after')).toBeNull();
    const message = expect.stringMatching(
      /^invalid usage for client certificate: server auth; missing required usage/,
    ) as unknown;
    expect(body).toMatchObject({
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      reason: 'Invalid',
      code: 422,
      message,
      error: { code: 422, message, status: 'FAILED_PRECONDITION' },
    });
  });

  test.each([
    ['not approved', { status: { conditions: [] } }],
    ['denied too', { status: { conditions: ['Approved', 'Denied'].map((type) => ({ type, status: 'True' })) } }],
    ['failed', { status: { conditions: ['Approved', 'Failed'].map((type) => ({ type, status: 'True' })) } }],
    ['of an unconfigured signer', { spec: { signerName: 'example.com/foreign' } }],
  ])('is told 409 for a request that is %s', async (_, change) => {
    const { status, headers, body } = await post(requestObject({}, change));
    expect(status).toBe(409);
    expect(headers.get('x-countersign-outcome')).toBe('ignored');
    expect(JSON.stringify(body)).not.toContain('certificate":');
  });
});
