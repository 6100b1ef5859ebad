/** Requests on the stand-in of the CertificateSigningRequest API. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { startCsrApi } from '../../../../../dev/csr-api/csr-api.ts';
import { temporaryFolder } from '../../../../harness/processes/processes.ts';
import { makeRequest, sharedKey } from '../../../../harness/x509/requests.ts';
import type { Goldens, Session } from '../session.ts';

const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
/** Two hours after the requests were made. */
const world = { now: () => Date.now() + 2 * 3_600_000 + 60_000 };

/** A web server's request, and one of a user. */
async function twoRequests({ call }: Session): Promise<void> {
  const api = await startCsrApi();
  const folder = temporaryFolder('golden-csr');
  onTestFinished(async () => {
    await api.close();
    folder.remove();
  });
  call('KUBECONFIG', join(folder.path, 'kubeconfig'));
  call('SERVER', api.url);
  writeFileSync(join(folder.path, 'kubeconfig'), api.kubeconfig());
  const key = sharedKey('P-256');
  call('KEY_SHA256', createHash('sha256').update(key.spki).digest('hex'));
  const web = { subject: { CN: 'web' }, sans: { dns: ['web.example.com'], ip: ['10.0.0.7'] }, key };
  const user = { subject: { O: 'readers', CN: 'alice' }, key };
  for (const [name, spec, signerName, usage] of [
    ['web', web, 'example.com/web', 'server auth'],
    ['alice', user, 'kubernetes.io/kube-apiserver-client', 'client auth'],
  ] as const) {
    const response = await fetch(`${api.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'impersonate-user': 'ada', 'impersonate-group': 'readers' },
      body: JSON.stringify({
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name },
        spec: { request: makeRequest(spec).bytes.toString('base64'), signerName, usages: ['digital signature', usage] },
      }),
    });
    expect(response.status).toBe(201);
    const { metadata } = (await response.json()) as { metadata: { uid: string; creationTimestamp: string } };
    call(`UID_OF_${name.toUpperCase()}`, metadata.uid);
    call('CREATED', metadata.creationTimestamp);
  }
}

const at = '--kubeconfig KUBECONFIG';

export const goldens: Goldens = {
  async 'csr list'(session) {
    await twoRequests(session);
    await session.run(`csr list ${at}`, { world });
    await session.run(`csr list ${at} -o wide`, { world });
    await session.run(`csr list ${at} --signer-name example.com/web -o yaml`, { world });
    await session.run(`csr list ${at} --state lost`);
  },

  async 'csr show'(session) {
    await twoRequests(session);
    await session.run(`csr show web ${at}`, { world });
    await session.run(`csr show nginx ${at}`, { world });
  },

  async 'csr approve'(session) {
    await twoRequests(session);
    await session.run(`csr approve web alice ${at} --reason 'ticket 4711'`, { world });
    await session.run(`csr approve web ${at} --reason 'ticket 4711'`, { world });
    await session.run(`csr approve nginx ${at} --reason 'ticket 4711'`, { world });
    await session.run(`csr approve web ${at}`);
  },

  async 'csr deny'(session) {
    await twoRequests(session);
    await session.run(`csr deny alice ${at} --reason 'unknown user'`, { world });
    await session.run(`csr approve alice ${at} --reason 'ticket 4711'`, { world });
    await session.run(`csr deny ${at} --reason 'unknown user'`, { world });
  },

  async 'csr explain'(session) {
    await twoRequests(session);
    const time = { world: { now: () => Date.parse('2026-06-01T12:00:00Z') } };
    await session.run(`csr explain alice ${at}`, time);
    await session.run(`csr explain alice ${at} -v`, time);
    await session.run(`csr explain web ${at}`, time);
    await session.run('csr explain missing.pem');
  },
};
