/** CAs in a folder, the ca function with keys in memory, and kubeadm's files. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { kubeadmCertificates } from '../../../../../core/kubeadm/certificates.ts';
import { temporaryFolder } from '../../../../harness/processes/processes.ts';
import { pathKeys, pathPems } from '../../../../harness/x509/imported-path.ts';
import { createSite } from '../../../lambdas/ca/site.ts';
import { generate, machine } from '../../kubeadm/control-plane.ts';
import type { Goldens, Session } from '../session.ts';

function emptyFolder({ call }: Session): void {
  const { path, remove } = temporaryFolder('golden-ca');
  onTestFinished(remove);
  call('DATA', join(path, 'cas'));
}

/** What differs from key to key. */
function nameFacts({ call }: Session, shown: string): void {
  const { serial, keyId, subjectKeyIdentifier, fingerprintSha256 } = JSON.parse(shown) as Readonly<
    Record<string, string>
  >;
  for (const [name, value] of Object.entries({
    SERIAL: serial,
    KEY_ID: keyId,
    KEY_IDENTIFIER: subjectKeyIdentifier,
    FINGERPRINT: fingerprintSha256,
  }))
    call(name, value ?? '');
}

const config = `{version: 1, clusters: {dev: {cas: {nodes: {kind: imported, KEY subject: {commonName: prod nodes}}},
  profiles: {kubernetes.io/kubelet-serving: {}}}}}`;
const path = pathPems();
const files = {
  'countersign.yaml': config.replace('KEY', 'keyMaterial: imported,'),
  'made.yaml': config.replace('KEY', ''),
  'ca.crt': path.certificate,
  'chain.pem': path.chain,
  'root.crt': path.root,
  'ca.key': pathKeys.own.export({ type: 'pkcs8', format: 'pem' }).toString(),
  'other.key': pathKeys.middle.export({ type: 'pkcs8', format: 'pem' }).toString(),
};
const place = '--data DATA --config countersign.yaml --name nodes';
const certificates = '--cert ca.crt --chain chain.pem --root root.crt';

export const goldens: Goldens = {
  async 'ca init'(session) {
    emptyFolder(session);
    const { run } = session;
    await run("ca init --data DATA --subject 'CN=prod CA,O=Example Corp' --validity 1825d");
    await run('ca init --data DATA');
    await run('ca init --data DATA --name web --key-spec DSA');
    nameFacts(session, (await run('ca show --data DATA -o json')).out);
  },

  async 'ca show'(session) {
    emptyFolder(session);
    const { run } = session;
    await run('ca show --data DATA');
    await run('ca init --data DATA');
    await run('ca show --data DATA');
    await run('ca show --data DATA -o pem', { lines: 1 });
    nameFacts(session, (await run('ca show --data DATA -o json')).out);
  },

  async 'ca csr'(session) {
    emptyFolder(session);
    await session.run('ca csr --data DATA --config made.yaml --name nodes', { files, lines: 1 });
    await session.run('ca csr --data DATA --config made.yaml --name web', { files });
  },

  async 'ca import'(session) {
    emptyFolder(session);
    const made = await session.unrecorded(`ca import-key ${place} ${certificates} --key ca.key -o json`, { files });
    nameFacts(session, made.out);
    await session.run(`ca import ${place} ${certificates}`, { files });
    await session.run(`ca import ${place} --cert root.crt`, { files });
  },

  async 'ca import-key'(session) {
    emptyFolder(session);
    await session.run(`ca import-key ${place} ${certificates} --key other.key`, { files });
    await session.run(`ca import-key ${place} ${certificates} --key ca.key`, { files });
    nameFacts(session, (await session.unrecorded('ca show --data DATA --name nodes -o json')).out);
  },

  async 'ca rotate'({ run }) {
    const site = await createSite('{a: {subject: {commonName: A}}}', 'a');
    await site.handler({ action: 'init' });
    const world = {
      callFunction: async ({ request }: { readonly request: object }) => site.handler(request),
      openRevocations: async () => {
        const none = { async *[Symbol.asyncIterator]() {} };
        return {
          reads: { listByExpiry: () => none },
          revocations: { list: () => none },
          close: () => undefined,
        } as never;
      },
    };
    await run('ca rotate --cluster prod --name a --skip-kubernetes', { world });
    await run('ca rotate --cluster prod --name b --skip-kubernetes', { world });
  },

  async 'kubeadm renew'({ run, unrecorded, call }) {
    const { root, dir, data, config: file, folders } = await machine();
    onTestFinished(() => rmSync(root, { recursive: true }));
    const kubeadm = join(root, 'kubeadm');
    const standIn = join(import.meta.dirname, '../../kubeadm/stand-in.ts');
    writeFileSync(kubeadm, `#!/bin/sh\nexec '${process.execPath}' '${standIn}' "$@"\n`, { mode: 0o755 });
    const names = { KUBERNETES: dir, DATA: data, CONFIG: file, KUBEADM: kubeadm };
    for (const [name, value] of Object.entries(names)) call(name, value);
    generate(folders, kubeadmCertificates);
    await unrecorded('kubeadm sign --dir KUBERNETES --data DATA --config CONFIG --include super-admin');
    await run('kubeadm renew --dir KUBERNETES --data DATA --config CONFIG --kubeadm KUBEADM');
    await run('kubeadm renew --dir KUBERNETES --data DATA --config CONFIG --kubeadm DATA/no-such-program');
  },

  async 'kubeadm sign'({ run, call }) {
    const { root, dir, data, config: file, folders } = await machine();
    onTestFinished(() => rmSync(root, { recursive: true }));
    for (const [name, value] of Object.entries({ KUBERNETES: dir, DATA: data, CONFIG: file })) call(name, value);
    generate(folders, kubeadmCertificates);
    await run('kubeadm sign --dir KUBERNETES --data DATA --config CONFIG --dry-run');
    await run('kubeadm sign --dir KUBERNETES --data DATA --config CONFIG');
    await run('kubeadm sign --dir KUBERNETES/empty --data DATA --config CONFIG');
  },
};
