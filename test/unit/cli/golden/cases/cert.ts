/** Certificates that core/issue.ts issued into the ledger of a folder. */
import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { openEmbeddedAttestations } from '../../../../../adapters/embedded/attestations.ts';
import { attestationsFileIn } from '../../../../../adapters/embedded/data.ts';
import { certificateEntry } from '../../../../../core/inventory/certificate-entry.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { day, ledgerFolder } from '../../inventory/ledger.ts';
import { now } from '../../run.ts';
import type { Goldens, Session } from '../session.ts';

function newWorld() {
  let calls = 0;
  return { userName: () => 'ada', randomBytes: (count: number) => Buffer.alloc(count, (calls += 1)) };
}

const kmsKey = 'arn:aws:kms:eu-central-1:111122223333:key/1';

/** A certificate of node worker-1. Without `keyId` the CA of the folder can issue a CRL. */
async function oneCertificate({ call }: Session, keyId?: string): Promise<void> {
  const ledger = await ledgerFolder(keyId);
  const { store, close } = openEmbeddedAttestations(attestationsFileIn(ledger.folder));
  onTestFinished(close);
  const record = await ledger.issued(now - day, {
    locks: store,
    metadata: { uid: randomUUID() },
    request: { subject: { O: 'system:nodes', CN: 'system:node:worker-1' }, key: newKey('P-256') },
  });
  const { uid, serial, publicKeySha256, fingerprintSha256 = '' } = certificateEntry(record);
  const names = {
    DATA: ledger.folder,
    UID: uid,
    SERIAL: serial,
    KEY_SHA256: publicKeySha256,
    FINGERPRINT: fingerprintSha256,
  };
  for (const [name, value] of Object.entries(names)) call(name, value);
}

export const goldens: Goldens = {
  async 'cert list'(session) {
    await oneCertificate(session, kmsKey);
    await session.run('cert list --data DATA');
    await session.run('cert list --data DATA -o wide');
    await session.run('cert list --data DATA --expiring 1d');
    await session.run('cert list --data DATA --limit 0');
  },

  async 'cert find'(session) {
    await oneCertificate(session, kmsKey);
    await session.run('cert find --data DATA --node worker-1');
    await session.run('cert find --data DATA --node worker-2');
    await session.run('cert find --data DATA');
  },

  async 'cert show'(session) {
    await oneCertificate(session, kmsKey);
    await session.run('cert show SERIAL --data DATA');
    await session.run('cert show 4711 --data DATA');
  },

  async 'cert export'(session) {
    await oneCertificate(session, kmsKey);
    await session.run('cert export --data DATA --from 2027-01-01');
    await session.run('cert export --data DATA --from yesterday');
  },

  async 'cert revoke'(session) {
    const world = newWorld();
    await oneCertificate(session);
    const why = "--reason keyCompromise --note 'stolen, ticket 4711'";
    await session.run(`cert revoke --data DATA --node worker-1 ${why}`, { world });
    await session.run(`cert revoke --data DATA --serial 4711 ${why}`, { world });
    await session.run('cert revoke --data DATA --node worker-1 --reason boredom --note x');
  },

  async 'cert revoked'(session) {
    const world = newWorld();
    await oneCertificate(session);
    await session.run("cert revoke --data DATA --node worker-1 --reason superseded --note 'new key'", { world });
    await session.run('cert revoked --data DATA', { world });
    await session.run('cert revoked --data DATA -o wide', { world });
    await session.run('cert revoked --data DATA --check --kubeconfig /nonexistent', { world });
  },

  async 'config diff'(session) {
    await oneCertificate(session);
    const exported = await session.unrecorded('cert export --data DATA');
    const cluster = (maxTtl: string) => ({
      cas: { ca: { subject: { commonName: 'ca' } } },
      profiles: { 'kubernetes.io/kube-apiserver-client-kubelet': { maxTtl } },
    });
    const yaml = (maxTtl: string) => JSON.stringify({ version: 1, clusters: { prod: cluster(maxTtl) } });
    const files = { 'old.yaml': yaml('30d'), 'new.yaml': yaml('1d'), 'prod.jsonl': exported.out };
    await session.run('config diff old.yaml old.yaml --ledger prod.jsonl', { files });
    await session.run('config diff old.yaml new.yaml --ledger prod.jsonl', { files });
    await session.run('config diff old.yaml missing.yaml --ledger prod.jsonl', { files });
  },
};
