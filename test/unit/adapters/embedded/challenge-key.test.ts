import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, test } from 'vitest';
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import { challengeKeyContract } from '../../../contract/challenge-key.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-challenge-key-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = (): string => join(folder, `${++files}.sqlite`);
const message = new Uint8Array(48);

challengeKeyContract('embedded, on a file', async () => {
  const file = newFile();
  const opened = [file, file, newFile()].map((each) => openEmbeddedAttestations(each));
  const [key, again, other] = opened.map(({ challengeKey }) => challengeKey);
  return { key: key!, again: again!, other: other!, close: () => opened.forEach((each) => each.close()) };
});

challengeKeyContract('embedded, in memory', async () => {
  const [one, two] = [openEmbeddedAttestations(':memory:'), openEmbeddedAttestations(':memory:')];
  return {
    key: one.challengeKey,
    again: one.challengeKey,
    other: two.challengeKey,
    close: () => [one, two].forEach((each) => each.close()),
  };
});

function keysIn(file: string): readonly unknown[] {
  const raw = new DatabaseSync(file);
  try {
    return raw
      .prepare('SELECT bytes FROM challenge_key')
      .all()
      .map(({ bytes }) => bytes);
  } finally {
    raw.close();
  }
}

describe('the key in the file', () => {
  test('is 32 random bytes from the first MAC on, and the owner’s alone', async () => {
    const file = newFile();
    const { challengeKey, close } = openEmbeddedAttestations(file);
    expect(keysIn(file)).toEqual([]);
    const macs = await Promise.all([challengeKey.mac(message), challengeKey.mac(message)]);
    expect(macs[0]).toEqual(macs[1]);
    const [bytes, ...more] = keysIn(file);
    expect([(bytes as Uint8Array).length, more]).toEqual([32, []]);
    expect(new Set(bytes as Uint8Array).size).toBeGreaterThan(8);
    for (const each of [file, `${file}-wal`]) expect(statSync(each).mode & 0o777).toBe(0o600);
    close();
    await expect(challengeKey.mac(message)).rejects.toThrow();
  });

  test('is the same after a restart', async () => {
    const file = newFile();
    const before = openEmbeddedAttestations(file);
    const mac = await before.challengeKey.mac(message);
    before.close();
    const after = openEmbeddedAttestations(file);
    expect(await after.challengeKey.mac(message)).toEqual(mac);
    after.close();
  });

  test('waits for another process that writes, and makes no MAC without a key', async () => {
    const file = newFile();
    const { challengeKey, close } = openEmbeddedAttestations(file, 50);
    const holder = new DatabaseSync(file);
    holder.exec('BEGIN IMMEDIATE');
    await expect(challengeKey.mac(message)).rejects.toThrow(/locked/);
    holder.exec('ROLLBACK');
    expect(await challengeKey.mac(message)).toHaveLength(32);
    holder.close();
    close();
  });
});
