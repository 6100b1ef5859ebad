import { randomBytes } from 'node:crypto';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { generateBootstrapToken, tokenText } from '../../../../core/kubernetes/bootstrap-token.ts';
import { startApiFront } from '../../../../dev/csr-api/api-front.ts';
import { startCsrApi } from '../../../../dev/csr-api/csr-api.ts';
import { statusOf, strangeTargets } from '../../../harness/processes/raw-requests.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';

test('no request line stops it, from an anonymous or an authenticated user', async () => {
  const token = generateBootstrapToken(randomBytes);
  const { certificatePem: clientCa } = await createTestAuthority('clients');
  const behind = await startCsrApi();
  const front = await startApiFront({ target: behind.url, token, clientCa, now: Date.now });
  const open = () =>
    connect({ host: '127.0.0.1', port: Number(front.endpoint.split(':')[1]), rejectUnauthorized: false });
  const login = { authorization: `Bearer ${tokenText(token)}` };
  try {
    for (const target of strangeTargets)
      for (const headers of [{}, login])
        expect([400, 401, 404, 'closed']).toContain(await statusOf(open, target, { headers }));
    const list = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
    expect(await statusOf(open, list, { headers: login })).toBe(200);
  } finally {
    await front.close();
    await behind.close();
  }
});
