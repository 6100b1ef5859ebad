import { makeRequest } from '../../../../harness/x509/requests.ts';
import type { Goldens } from '../session.ts';
import { expect, onTestFinished } from 'vitest';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../../../harness/processes/processes.ts';

const yaml = `version: 1
clusters:
  prod:
    cas:
      nodes: {subject: {commonName: prod nodes}}
    profiles:
      kubernetes.io/kubelet-serving: {maxTtl: 30d}
`;
const files = { 'countersign.yaml': yaml };

export const goldens: Goldens = {
  async 'config validate'({ run }) {
    await run('config validate', { files });
    await run('config validate -o json', { files });
    await run('config validate countersign.yaml', {
      files: { 'countersign.yaml': `${yaml}      example.com/web: {usages: [any]}\n` },
    });
    const wrong = Array.from({ length: 12 }, (_, n) => `      example.com/${n}: {maxTtl: ${n + 1}}\n`);
    await run('config validate', { files: { 'countersign.yaml': `${yaml}${wrong.join('')}` } });
    expect(
      (await run('config validate --all', { files: { 'countersign.yaml': `${yaml}${wrong.join('')}` } })).err,
    ).toContain('example.com/11');
    await run('config validate server.crt', { files: { 'server.crt': '-----BEGIN CERTIFICATE-----\n' } });
    await run('config validate missing.yaml');
  },

  async 'config schema'({ run }) {
    await run('config schema', { lines: 12 });
    await run('config schema -o markdown', { lines: 6 });
    await run('config schema -o xml');
  },

  async 'config docs'({ run }) {
    await run('config docs', { files, lines: 12 });
    await run('config docs --cluster staging', { files });
  },

  async 'config test'({ run, call }) {
    const { path, remove } = temporaryFolder('golden');
    onTestFinished(remove);
    call('CASES', path);
    const { pem } = makeRequest({ subject: { O: 'system:nodes', CN: 'system:node:n1' }, sans: { dns: ['n1'] } });
    const request = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      spec: {
        request: pem,
        signerName: 'kubernetes.io/kubelet-serving',
        usages: ['digital signature', 'server auth'],
        username: 'system:node:n1',
        groups: ['system:nodes'],
      },
    };
    writeFileSync(join(path, 'serving.json'), JSON.stringify({ request, expect: { decision: 'permit' } }));
    await run('config test CASES', { files });
    writeFileSync(join(path, 'client.json'), JSON.stringify({ request, expect: { decision: 'ignore' } }));
    await run('config test CASES', { files });
    await run('config test CASES/none', { files });
  },
};
