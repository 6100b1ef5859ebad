/** `countersign cert revoke` and `cert revoked` over the real embedded stores, and what sign answers afterwards. */
import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import { onTestFinished, describe, expect, test } from 'vitest';
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import { attestationsFileIn } from '../../../../adapters/embedded/data.ts';
import { certificateEntry } from '../../../../core/inventory/certificate-entry.ts';
import type { IssuingRecord } from '../../../../core/ports/certificate-ledger.ts';
import { newKey } from '../../../harness/x509/requests.ts';
import type { TestKey } from '../../../harness/x509/requests.ts';
import { day, ledgerFolder } from '../inventory/ledger.ts';
import { now, run } from '../run.ts';

const by = userInfo().username;
const note = 'stolen, ticket 4711';
const at = new Date(now).toISOString().replace('.000Z', 'Z');

async function opened() {
  const ledger = await ledgerFolder();
  const { register, store, close } = openEmbeddedAttestations(attestationsFileIn(ledger.folder));
  onTestFinished(close);
  return {
    ...ledger,
    store,
    register,
    /** A user's certificate. The second one may have the same key. */
    login: (user: string, key: TestKey = newKey('P-256')) =>
      ledger.issued(now - day, {
        locks: store,
        metadata: { uid: randomUUID() },
        request: { subject: { O: 'readers', CN: user }, key },
        spec: { signerName: 'kubernetes.io/kube-apiserver-client', username: user, groups: ['system:authenticated'] },
      }),
    node: (name: string, key: TestKey = newKey('P-256')) =>
      ledger.issued(now - day, {
        locks: store,
        metadata: { uid: randomUUID() },
        request: { subject: { O: 'system:nodes', CN: `system:node:${name}` }, key },
      }),
    countersign: (...argv: readonly string[]) => run(['cert', ...argv, '--data', ledger.folder]),
    audited: async () => (await Array.fromAsync(register.listAudit())).filter(({ action }) => action === 'revoke'),
    locked: async () => (await register.listLocks()).map(({ nodeName, spkiSha256 }) => nodeName ?? spkiSha256),
  };
}

const why = (reason: string) => ['--reason', reason, '--note', note];
const digestOf = (record: IssuingRecord) => certificateEntry(record).publicKeySha256;
const refusal = (code: string) => new RegExp(`"code":"${code}"`);

describe('cert revoke', () => {
  test('by key: the key gets no certificate any more, of any requester, and another key does', async () => {
    const site = await opened();
    const key = newKey('P-256');
    const record = await site.login('alice', key);
    const spki = digestOf(record);
    const ran = await site.countersign('revoke', '--key', spki, ...why('keyCompromise'));
    expect([ran.code, ran.out]).toEqual([0, expect.stringContaining(`locked: key ${spki}\nrevoked: 1 certificate`)]);
    await expect(site.login('alice', key)).rejects.toThrow(refusal('Locked'));
    await expect(site.node('worker-1', key)).rejects.toThrow(refusal('Locked'));
    expect((await site.login('alice')).state).toBe('issued');
    expect(await site.locked()).toEqual([spki]);
  });

  test('by key: a key that has no certificate yet is barred', async () => {
    const site = await opened();
    const spki = 'ab'.repeat(32);
    const ran = await site.countersign('revoke', '--key', spki, ...why('keyCompromise'));
    expect([ran.code, ran.out]).toEqual([0, expect.stringContaining('revoked: 0 certificates now, 0 before')]);
    expect(await site.locked()).toEqual([spki]);
    expect(await site.audited()).toEqual([]);
  });

  test.each([
    ['keyCompromise', true],
    ['privilegeWithdrawn', false],
    ['superseded', false],
  ])('by serial number, %s: the key of the certificate is barred: %s', async (reason, barred) => {
    const site = await opened();
    const key = newKey('P-256');
    const record = await site.login('alice', key);
    expect((await site.countersign('revoke', '--serial', record.serial, ...why(reason))).code).toBe(0);
    expect(await site.locked()).toEqual(barred ? [digestOf(record)] : []);
    if (barred) await expect(site.login('alice', key)).rejects.toThrow(refusal('Locked'));
    else expect((await site.login('alice', key)).state).toBe('issued');
  });

  test('superseded bars nothing, by whatever name', async () => {
    const site = await opened();
    const record = await site.node('worker-1');
    for (const named of [
      ['--node', 'worker-1'],
      ['--key', digestOf(record)],
      ['--serial', record.serial],
    ])
      expect((await site.countersign('revoke', ...named, ...why('superseded'))).code).toBe(0);
    expect(await site.register.listLocks()).toEqual([]);
  });

  test('leaves one audit item: who, when, why, what it named, how many certificates', async () => {
    const site = await opened();
    const records = [await site.node('worker-1'), await site.node('worker-1')];
    const ran = await site.countersign('revoke', '--node', 'worker-1', ...why('cessationOfOperation'), '-o', 'json');
    const [item, ...others] = await site.audited();
    expect([item, others]).toEqual([
      {
        id: expect.any(String) as string,
        at: now,
        by,
        action: 'revoke',
        subject: 'worker-1',
        nodeName: 'worker-1',
        reason: `cessationOfOperation: ${note}`,
        certificates: 2,
      },
      [],
    ]);
    expect(JSON.parse(ran.out)).toMatchObject({ auditItem: item?.id });
    // Again: nothing is written, and nothing is claimed to have been.
    const again = await site.countersign('revoke', '--node', 'worker-1', ...why('keyCompromise'), '-o', 'json');
    expect(await site.audited()).toHaveLength(1);
    expect(JSON.parse(again.out)).not.toHaveProperty('auditItem');

    const { out } = await site.countersign('revoked', '-o', 'json');
    const shown = JSON.parse(out) as readonly Record<string, unknown>[];
    expect(shown.map(({ serial }) => serial)).toEqual(expect.arrayContaining(records.map(({ serial }) => serial)));
    for (const each of shown)
      expect(each).toMatchObject({
        at,
        by,
        reason: 'cessationOfOperation',
        note,
        matchedBy: 'node#worker-1',
        auditId: item?.id,
      });
    const wide = await site.countersign('revoked', '-o', 'wide');
    for (const text of ['MATCHED BY', 'AUDIT ITEM', 'node#worker-1', item!.id, by]) expect(wide.out).toContain(text);
  });

  test('the audit item of a serial number names the node', async () => {
    const site = await opened();
    const { serial } = await site.node('worker-1');
    await site.countersign('revoke', '--serial', serial, ...why('superseded'));
    expect(await site.audited()).toMatchObject([
      { subject: `serial#${serial}`, nodeName: 'worker-1', certificates: 1 },
    ]);
  });

  test('cert show and cert export tell it, of the revoked certificate alone', async () => {
    const site = await opened();
    const [revoked, other] = [await site.login('alice'), await site.login('alice')];
    await site.countersign('revoke', '--serial', revoked.serial, ...why('privilegeWithdrawn'));
    const [{ id: auditId } = { id: '' }] = await site.audited();
    const told = {
      at: new Date(now).toISOString(),
      reason: 'privilegeWithdrawn',
      by,
      note,
      matchedBy: `serial#${revoked.serial}`,
      auditId,
    };
    const show = await site.countersign('show', revoked.serial, '-o', 'json');
    expect(JSON.parse(show.out)).toMatchObject({ revoked: told });
    const text = await site.countersign('show', revoked.serial);
    expect(text.out).toContain(
      `privilegeWithdrawn, by ${by}: ${note} (by serial#${revoked.serial}, audit item ${auditId})`,
    );
    expect(JSON.parse((await site.countersign('show', other.serial, '-o', 'json')).out)).not.toHaveProperty('revoked');
    const { out } = await site.countersign('export');
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.filter((line) => line['revoked'] !== undefined)).toMatchObject([
      { serial: revoked.serial, revoked: told },
    ]);
    expect(lines).toHaveLength(3);
  });
});
