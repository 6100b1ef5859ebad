import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { useWriteAheadLog } from '../../../../adapters/embedded/database.ts';
import { openEmbeddedLedger } from '../../../../adapters/embedded/ledger.ts';
import type { EmbeddedLedger } from '../../../../adapters/embedded/ledger.ts';
import {
  certificateLedgerContract,
  intentFixture,
  type LedgerUnderTest,
} from '../../../contract/certificate-ledger.ts';
import { certificateReadsContract } from '../../../contract/certificate-reads.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-ledger-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = (): string => join(folder, `${++files}.sqlite`);

certificateLedgerContract('embedded, on a file', () => openedOn(newFile()));
certificateLedgerContract('embedded, on a file whose rows have no row ids, as they once had none', () =>
  openedOn(fileWithoutRowIds()),
);

certificateReadsContract('embedded, on a file', async () => {
  const [{ ledger, reads, close }, other] = [openEmbeddedLedger(newFile()), openEmbeddedLedger(newFile())];
  return { ledger, reads, other: other.reads, close: async () => [close, other.close].forEach((each) => each()) };
});

async function openedOn(file: string): Promise<LedgerUnderTest> {
  const opened: EmbeddedLedger[] = [openEmbeddedLedger(file), openEmbeddedLedger(newFile())];
  return {
    ledger: opened[0]!.ledger,
    other: opened[1]!.ledger,
    reopen: async () => {
      const again = openEmbeddedLedger(file);
      opened.push(again);
      return again.ledger;
    },
    close: async () => opened.forEach((each) => each.close()),
  };
}

function fileWithoutRowIds(): string {
  const today = newFile();
  openEmbeddedLedger(today).close();
  const from = new DatabaseSync(today);
  const statements = from.prepare('SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid').all();
  const [{ application_id: application } = {}] = from.prepare('PRAGMA application_id').all();
  const [{ user_version: version } = {}] = from.prepare('PRAGMA user_version').all();
  from.close();
  const file = newFile();
  const to = new DatabaseSync(file);
  const schema = statements.map(({ sql }) => String(sql).replace(/\) STRICT$/, ') STRICT, WITHOUT ROWID'));
  expect(schema.filter((sql) => sql.endsWith('WITHOUT ROWID'))).toHaveLength(2);
  to.exec(
    `${schema.join(';')}; PRAGMA application_id = ${String(application)}; PRAGMA user_version = ${String(version)};`,
  );
  to.close();
  return file;
}

certificateLedgerContract('embedded, in memory', async () => {
  const first = openEmbeddedLedger(':memory:');
  const second = openEmbeddedLedger(':memory:');
  return {
    ledger: first.ledger,
    other: second.ledger,
    // A memory store has no second handle: the same one must still be right.
    reopen: async () => first.ledger,
    close: async () => [first, second].forEach((each) => each.close()),
  };
});

describe('the file', () => {
  test('keeps everything when closed and opened again', async () => {
    const file = newFile();
    const before = openEmbeddedLedger(file);
    const intent = intentFixture();
    await before.ledger.open(intent);
    await before.ledger.complete(intent.uid, Uint8Array.of(1, 2, 3));
    before.close();
    const after = openEmbeddedLedger(file);
    expect(await after.ledger.find(intent.uid)).toMatchObject({ state: 'issued', certificate: Uint8Array.of(1, 2, 3) });
    after.close();
  });

  test('only its owner can read it and the files beside it, with any umask', async () => {
    const file = newFile();
    const umask = process.umask(0);
    try {
      const { ledger, close } = openEmbeddedLedger(file);
      await ledger.open(intentFixture());
      const made = readdirSync(folder).filter((name) => join(folder, name).startsWith(file));
      expect(made.length).toBeGreaterThan(1); // the write-ahead log is there
      for (const name of made) expect(statSync(join(folder, name)).mode & 0o777, name).toBe(0o600);
      close();
    } finally {
      process.umask(umask);
    }
  });

  test('that is there keeps the mode its owner gave it', () => {
    const file = newFile();
    openEmbeddedLedger(file).close();
    chmodSync(file, 0o640);
    openEmbeddedLedger(file).close();
    expect(statSync(file).mode & 0o777).toBe(0o640);
  });

  test('of something else is refused and left as it was', () => {
    const file = newFile();
    const foreign = new DatabaseSync(file);
    foreign.exec('CREATE TABLE songs (title TEXT)');
    expect(() => openEmbeddedLedger(file)).toThrow(/not a Countersign ledger/);
    expect(foreign.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'songs' }]);
    foreign.close();
    writeFileSync(file + '.txt', 'not a database at all, but long enough to be looked at'.repeat(40));
    expect(() => openEmbeddedLedger(file + '.txt')).toThrow(/not a database/);
  });

  test('of a later version is refused', () => {
    const file = newFile();
    openEmbeddedLedger(file).close();
    const later = new DatabaseSync(file);
    later.exec('PRAGMA user_version = 6');
    later.close();
    expect(() => openEmbeddedLedger(file)).toThrow(/schema 6; this program knows 5/);
  });

  test('itself refuses to change what was begun, to undo an end, and to delete', async () => {
    const file = newFile();
    const { ledger, close } = openEmbeddedLedger(file);
    const [open, issued] = [intentFixture(), intentFixture()];
    await ledger.open(open, { spkiSha256: '01', requestSha256: '02' });
    await ledger.open(issued);
    await ledger.complete(issued.uid, Uint8Array.of(1));
    const raw = new DatabaseSync(file);
    for (const statement of [
      `UPDATE issuing SET tbs = x'00' WHERE uid = '${open.uid}'`,
      `UPDATE issuing SET request_digest = 'aa' WHERE uid = '${open.uid}'`,
      `UPDATE issuing SET identity = 'aws:i-1' WHERE uid = '${open.uid}'`,
      `UPDATE issuing SET request = '{"signerName":"x"}' WHERE uid = '${open.uid}'`,
      `UPDATE issuing SET kms_request_id = 'r' WHERE uid = '${issued.uid}'`,
      `UPDATE issuing SET certificate = x'02' WHERE uid = '${issued.uid}'`,
      `UPDATE issuing SET state = 'intent', certificate = NULL WHERE uid = '${issued.uid}'`,
      `DELETE FROM issuing WHERE uid = '${open.uid}'`,
      `UPDATE fresh_key SET request_sha256 = '03'`,
      `DELETE FROM fresh_key`,
    ])
      expect(() => raw.exec(statement)).toThrow(/only move forward|never deleted|never changes/);
    for (const change of [`state = 'issued'`, `kms_request_id = 'r'`])
      expect(() => raw.exec(`UPDATE issuing SET ${change} WHERE uid = '${open.uid}'`)).toThrow(/CHECK/);
    raw.close();
    close();
  });

  test('waits for another process that holds the lock, and says so when it waits in vain', async () => {
    const file = newFile();
    const { ledger, close } = openEmbeddedLedger(file, 100);
    const holder = new DatabaseSync(file);
    holder.exec('BEGIN IMMEDIATE');
    await expect(ledger.open(intentFixture())).rejects.toThrow(/locked/);
    holder.exec('ROLLBACK');
    expect(await ledger.open(intentFixture())).toEqual({ kind: 'written' });
    holder.close();
    close();
  });

  test('closed, every method rejects', async () => {
    const { ledger, close } = openEmbeddedLedger(newFile());
    close();
    await expect(ledger.find('u')).rejects.toThrow();
    await expect(ledger.open(intentFixture())).rejects.toThrow();
    await expect(ledger.release('u', 1)).rejects.toThrow();
  });
});

describe('writes that share a commit', () => {
  test('answer each for itself: one that fails takes no other down', async () => {
    const { ledger, close } = openEmbeddedLedger(newFile());
    const [before, after] = [intentFixture(), intentFixture()];
    const answers = await Promise.allSettled([
      ledger.open(before),
      ledger.complete('no-such-uid', Uint8Array.of(1)),
      ledger.open(after),
      ledger.open(before),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
    expect(answers[3]).toMatchObject({ value: { kind: 'found', found: { uid: before.uid } } });
    expect(await ledger.find(before.uid)).toMatchObject({ state: 'intent' });
    expect(await ledger.find(after.uid)).toMatchObject({ state: 'intent' });
    close();
  });

  test('are not seen before it, and none is done when it cannot be', async () => {
    const file = newFile();
    const { ledger, close } = openEmbeddedLedger(file, 50);
    const intents = [intentFixture(), intentFixture()];
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    const answers = await Promise.allSettled(intents.map((intent) => ledger.open(intent)));
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    other.exec('ROLLBACK');
    other.close();
    for (const { uid } of intents) expect(await ledger.find(uid)).toBeUndefined();
    expect(await ledger.open(intents[0]!)).toEqual({ kind: 'written' });
    close();
  });
});

describe('several processes on one file', () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  /** A child that runs `body` with `ledger`, `file` and `n` (its number), prints lines, and may read its stdin. */
  function startChild(file: string, n: number, body: string): ChildProcess {
    const adapter = JSON.stringify(join(import.meta.dirname, '../../../../adapters/embedded/ledger.ts'));
    const source = `
      import { openEmbeddedLedger } from ${adapter};
      const n = ${n};
      const intent = (uid) => ({ uid, requestDigest: String(n), caKeyId: 'k', tbs: Uint8Array.of(n), serial: '01',
                                 notAfter: 2, openedAt: 1, leaseUntil: 1 });
      console.log('ready');
      await new Promise((go) => process.stdin.once('data', go));
      const { ledger } = openEmbeddedLedger(${JSON.stringify(file)});
      ${body}`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    children.push(child);
    return child;
  }

  async function lines(child: ChildProcess): Promise<AsyncIterator<string>> {
    const iterator = (async function* () {
      let rest = '';
      for await (const chunk of child.stdout!) {
        const parts = (rest + String(chunk)).split('\n');
        rest = parts.pop() ?? '';
        yield* parts;
      }
    })();
    expect((await iterator.next()).value).toBe('ready');
    return iterator;
  }

  test('created at once by 4 processes, 200 UIDs each open by all: each UID has one winner', async () => {
    const file = newFile();
    const body = `
      const won = [];
      for (let i = 0; i < 200; i++) if ((await ledger.open(intent('uid-' + i))).kind === 'written') won.push(i);
      console.log(JSON.stringify(won));
      process.exit(0);`;
    const started = [1, 2, 3, 4].map((n) => startChild(file, n, body));
    const outputs = await Promise.all(started.map(lines));
    for (const child of started) child.stdin!.write('go\n');
    const won = await Promise.all(
      outputs.map(async (output) => JSON.parse(String((await output.next()).value)) as number[]),
    );

    expect(won.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i));
    const { ledger, close } = openEmbeddedLedger(file);
    for (const [index, uids] of won.entries())
      for (const i of uids) expect((await ledger.find(`uid-${i}`))?.tbs).toEqual(Uint8Array.of(index + 1));
    close();
  }, 30_000);

  test('the journal mode of a new file is changed after another process has written', async () => {
    const file = newFile();
    const writer = spawn(
      process.execPath,
      [
        '-e',
        `const { DatabaseSync } = require('node:sqlite');
         const database = new DatabaseSync(${JSON.stringify(file)});
         database.exec('BEGIN IMMEDIATE; CREATE TABLE t (a)');
         console.log('ready');
         process.stdin.once('data', () => setTimeout(() => database.exec('ROLLBACK'), 100));`,
      ],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    );
    children.push(writer);
    await lines(writer);
    const database = new DatabaseSync(file);
    expect(() => useWriteAheadLog(database, 20)).toThrow('database is locked');
    writer.stdin.write('go\n');
    useWriteAheadLog(database, 10_000);
    expect(database.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
    database.close();
  });

  test('what a process was told is written is there after it is killed', async () => {
    const file = newFile();
    const child = startChild(
      file,
      7,
      `await ledger.open(intent('kept')); console.log('written'); setInterval(() => {}, 1000);`,
    );
    const output = await lines(child);
    child.stdin!.write('go\n');
    expect((await output.next()).value).toBe('written');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { ledger, close } = openEmbeddedLedger(file);
    expect(await ledger.find('kept')).toMatchObject({ state: 'intent', attempt: 1, tbs: Uint8Array.of(7) });
    close();
  }, 30_000);
});

describe('inside Lambda', () => {
  afterEach(() => vi.unstubAllEnvs());
  test.each([
    ['AWS_LAMBDA_FUNCTION_NAME', 'sign'],
    ['LAMBDA_TASK_ROOT', '/var/task'],
    ['AWS_EXECUTION_ENV', 'AWS_Lambda_nodejs24.x'],
  ])('%s set: refuses to start and leaves no file', (variable, value) => {
    vi.stubEnv(variable, value);
    const file = newFile();
    expect(() => openEmbeddedLedger(file)).toThrow(`refuses to start inside AWS Lambda (${variable} is set)`);
    vi.unstubAllEnvs();
    expect(() => new DatabaseSync(file, { readOnly: true })).toThrow();
  });

  test('CloudShell is not Lambda', () => {
    vi.stubEnv('AWS_EXECUTION_ENV', 'CloudShell');
    const { close } = openEmbeddedLedger(':memory:');
    expect(close).not.toThrow();
  });
});
