import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { observeRequests } from '../../../../bench/requests/observer.ts';
import type { ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/x509/test-certificates.ts';

type Type = 'ADDED' | 'MODIFIED' | 'DELETED';

function event(type: Type, name: string, revision: number, certificate?: string): string {
  const object = {
    metadata: { name, resourceVersion: String(revision) },
    status: certificate === undefined ? {} : { certificate },
  };
  return `${JSON.stringify({ type, object })}\n`;
}

/** An API server whose n-th watch gives the n-th portion of events; the last one stays open. */
async function watched(portions: readonly (readonly string[])[]) {
  const folder = temporaryFolder('bench-observer');
  const authority = await createTestAuthority('bench observer');
  const { certificatePem: cert, keyPem: key } = await authority.issue({
    subject: [{ CN: ['kube-apiserver'] }],
    extensions: loopbackServerExtensions(),
  });
  const from: (string | null)[] = [];
  const server = createServer({ cert, key }, (request, response) => {
    const events = portions[from.length] ?? [];
    from.push(new URL(request.url ?? '', 'https://localhost').searchParams.get('resourceVersion'));
    response.writeHead(200).write(events.join(''));
    if (from.length < portions.length) response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const adminKubeconfig = join(folder.path, 'kubeconfig');
  writeFileSync(
    adminKubeconfig,
    JSON.stringify({
      clusters: [{ cluster: { 'certificate-authority-data': base64(authority.certificatePem) } }],
      users: [{ user: { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) } }],
    }),
  );
  const controlPlane = {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    adminKubeconfig,
    admin: { expectOk: () => Promise.resolve({ metadata: { resourceVersion: '10' } }) },
  } as unknown as ControlPlane;
  const observer = await observeRequests(controlPlane);
  const stop = (): void => {
    observer.close();
    server.closeAllConnections();
    server.close();
    folder.remove();
  };
  return { observer, from, stop };
}

test('a watch that ends in the middle of a transaction misses nothing and counts nothing twice', async () => {
  const transaction = ['a', 'b', 'c'].map((name) => event('ADDED', name, 11));
  const { observer, from, stop } = await watched([
    transaction.slice(0, 2),
    [...transaction, event('MODIFIED', 'c', 12, 'signed'), event('MODIFIED', 'a', 13, 'signed')],
  ]);
  try {
    await observer.allCertified(['a', 'c'], 10_000);
    expect(observer.added()).toBe(3);
    expect(from).toEqual(['10', '10']);
  } finally {
    stop();
  }
});

test('neither a deletion nor what was forgotten is a certificate', async () => {
  const { observer, stop } = await watched([
    [
      event('ADDED', 'a', 11),
      event('MODIFIED', 'a', 12, 'signed'),
      event('DELETED', 'b', 13, 'signed'),
      event('MODIFIED', 'c', 14, 'signed'),
    ],
  ]);
  try {
    await observer.allCertified(['a', 'c'], 10_000);
    expect([...observer.certifiedAt.keys()]).toEqual(['a', 'c']);
    observer.forget();
    expect(observer.certifiedAt.size).toBe(0);
  } finally {
    stop();
  }
});
