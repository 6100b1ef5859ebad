/**
 * The records of attestation in one SQLite file per cluster: for the demo, development and tests, with the same ports and
 * the same contract suite as the DynamoDB store. Records are JSON; the columns beside them serve the conditions, which
 * core/ports/attestation-store.ts defines. Expired rows count as absent, and a later claim removes them.
 */
import { textIn, jsonIn, groupCommits, openDatabase, snapshots } from './database.ts';
import { expiredRows, expiryIndexes, identityStatements } from './attestation-statements.ts';
import type { IdentityStatements } from './attestation-statements.ts';
import type { Transact, DatabaseKind } from './database.ts';
import type { DatabaseSync } from 'node:sqlite';
import { lockFrom, machineEntryFrom, verdictFrom } from '../../core/attestation/records/stored-records.ts';
import type {
  AttestationAdmin,
  AttestationStore,
  ChangeResult,
  Claim,
  ClaimResult,
} from '../../core/ports/attestation-store.ts';
import {
  checkClaim,
  checkLookup,
  checkObservation,
  checkRetirement,
} from '../../core/attestation/records/claim-check.ts';
import { holderOf, lookUp } from '../../core/attestation/records/look-up.ts';
import type { StoredItems } from '../../core/attestation/records/look-up.ts';
import type { Lock, LockSubject } from '../../core/ports/locks.ts';
import type { Instant } from '../../core/ports/instant.ts';
import type { ChallengeKey } from '../../core/ports/challenge-key.ts';

import { refuseInsideLambda } from './refuse-in-lambda.ts';
import { embeddedAttestationAdmin } from './attestation-admin.ts';
import { embeddedChallengeKey } from './challenge-key.ts';

export interface EmbeddedAttestations {
  readonly store: AttestationStore;
  readonly register: AttestationAdmin;
  readonly challengeKey: ChallengeKey;
  /** Afterwards every method throws. */
  readonly close: () => void;
}

/** Tables with large rows have row IDs: see ledger.ts. */
const schema = `
  CREATE TABLE identity (
    identity   TEXT NOT NULL PRIMARY KEY,
    node_name  TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('active', 'retired')),
    first_seen INTEGER NOT NULL,
    rev        INTEGER NOT NULL CHECK (rev >= 1),
    record     TEXT NOT NULL
  ) STRICT;

  -- The holder of a node name, and of an address of the operator's ranges.
  CREATE TABLE node (
    node_name  TEXT PRIMARY KEY,
    identity   TEXT NOT NULL,
    -- Only of a retired machine: its name is free from then on.
    expires_at INTEGER
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE address (
    address  TEXT PRIMARY KEY,
    identity TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE once (
    kind           TEXT NOT NULL,
    id             TEXT NOT NULL,
    request_sha256 TEXT NOT NULL,
    expires_at     INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE verdict (
    uid        TEXT NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    verdict    TEXT NOT NULL
  ) STRICT;

  CREATE TABLE refused (
    requester TEXT NOT NULL,
    beginning INTEGER NOT NULL,
    refusals  INTEGER NOT NULL,
    PRIMARY KEY (requester, beginning)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE machine (
    name  TEXT PRIMARY KEY,
    entry TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- One row for each node name or machine that a lock bars.
  CREATE TABLE lock (
    subject TEXT PRIMARY KEY,
    lock    TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE audit (
    id   TEXT NOT NULL PRIMARY KEY,
    item TEXT NOT NULL
  ) STRICT;

  -- At most one row.
  CREATE TABLE challenge_key (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    bytes BLOB NOT NULL CHECK (length(bytes) = 32)
  ) STRICT;

  -- Enforced here too, against a mistake in the statements.
  CREATE TRIGGER identity_only_moves_forward BEFORE UPDATE ON identity
  WHEN NEW.rev <> OLD.rev + 1 OR NEW.identity <> OLD.identity OR NEW.node_name <> OLD.node_name
    OR NEW.first_seen <> OLD.first_seen OR OLD.state = 'retired'
  BEGIN SELECT RAISE(ABORT, 'the record of a machine may only move forward'); END;

  CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'an audit item never changes'); END;

  CREATE TRIGGER audit_is_never_deleted BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'an audit item is never deleted'); END;
${expiryIndexes}`;

const attestationsFile: DatabaseKind = {
  name: 'attestation store',
  applicationId: 0x43_53_61_74, // CSat
  schemaVersion: 4,
  schema,
};

/** Opens or creates a cluster's attestation store; `:memory:` is a store that ends with the process. */
export function openEmbeddedAttestations(fileOrMemory: string, lockTimeoutMilliseconds?: number): EmbeddedAttestations {
  refuseInsideLambda('the embedded attestation store', process.env);
  const database = openDatabase(fileOrMemory, attestationsFile, lockTimeoutMilliseconds);
  const records = identityStatements(database);
  const transact = groupCommits(database);
  return {
    store: storeOver(database, records, transact),
    register: embeddedAttestationAdmin(database, records, transact),
    challengeKey: embeddedChallengeKey(database, transact),
    close: () => database.close(),
  };
}

function storeOver(database: DatabaseSync, records: IdentityStatements, transact: Transact): AttestationStore {
  const snapshot = snapshots(database);
  const removeExpired = expiredRows(database);
  const selectVerdict = database.prepare('SELECT verdict FROM verdict WHERE uid = ? AND expires_at > ?');
  const putVerdict = database.prepare('INSERT OR REPLACE INTO verdict (uid, expires_at, verdict) VALUES (?, ?, ?)');
  const selectOnce = database.prepare('SELECT request_sha256 FROM once WHERE kind = ? AND id = ? AND expires_at > ?');
  const putOnce = database.prepare(
    'INSERT OR REPLACE INTO once (kind, id, request_sha256, expires_at) VALUES (?, ?, ?, ?)',
  );
  const selectRefusals = database.prepare('SELECT refusals FROM refused WHERE requester = ? AND beginning = ?');
  const countRefusal = database.prepare(
    'INSERT INTO refused (requester, beginning, refusals) VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET refusals = refusals + 1',
  );
  const selectMachines = database.prepare('SELECT name FROM machine');
  const selectMachine = database.prepare('SELECT entry FROM machine WHERE name = ?');

  const selectLock = database.prepare('SELECT lock FROM lock WHERE subject = ?');

  const findVerdict = (uid: string, now: Instant) => {
    const row = selectVerdict.get(uid, now);
    return row === undefined ? undefined : verdictFrom(jsonIn(row, 'verdict'));
  };
  const findLock = (subject: LockSubject): Lock | undefined => {
    const row = selectLock.get(subject);
    return row === undefined ? undefined : lockFrom(jsonIn(row, 'lock'));
  };
  const spentBy = (kind: string, id: string, now: Instant) => textIn(selectOnce.get(kind, id, now), 'request_sha256');
  const items = (now: Instant): StoredItems => ({
    identity: records.find,
    lock: findLock,
    holder: (nodeName) => records.holder(nodeName, now),
    spentBy: ({ kind, id }) => spentBy(kind, id, now),
    owner: records.owner,
    entries: selectMachines.all().map((row) => String(row['name'])),
  });

  /** Whether all conditions of the claim hold, except no-verdict. */
  function conditionsHold({ identity: write, once, newAddresses, retire, entry }: Claim, now: Instant): boolean {
    if (write.kind === 'none') return true;
    const { identity, nodeName, rev } = write.record;
    const retired = retire === undefined ? undefined : records.findUnchanged(retire);
    // retired-current; a machine that was retired before is still as it was read.
    if (retire !== undefined && retired?.state !== retire.state) return false;
    if (write.kind === 'create') {
      // machine-new
      if (records.find(identity) !== undefined) return false;
      // name-free
      const holder = records.holder(nodeName, retire === undefined ? now : undefined);
      if (holder !== retired?.identity) return false;
      // A machine that was retired by its successor has no name that could pass on.
      if (retired?.state === 'retired' && !records.isEnding(nodeName)) return false;
    } else {
      // record-current
      if (records.findUnchanged({ ...write.record, rev: rev - 1 })?.state !== 'active') return false;
      // name-own
      if (records.holder(nodeName) !== identity) return false;
    }
    // entry-listed
    if (entry !== undefined && selectMachine.get(entry) === undefined) return false;
    const allowedOwners = new Set([undefined, retired?.identity]);
    return (
      // evidence-unspent
      once.every(({ kind, id, requestSha256 }) => [undefined, requestSha256].includes(spentBy(kind, id, now))) &&
      // address-free
      newAddresses.every((address) => allowedOwners.has(records.owner(address)))
    );
  }

  function write({ verdict, once, identity, newAddresses, retire, audit }: Claim, now: Instant): void {
    putVerdict.run(verdict.uid, verdict.expiresAt, JSON.stringify(verdict));
    for (const { kind, id, requestSha256, expiresAt } of once) putOnce.run(kind, id, requestSha256, expiresAt);
    if (retire?.state === 'active') records.retire(retire, { retiredAt: now });
    if (identity.kind === 'create') records.create(identity.record);
    if (identity.kind === 'replace') records.replace(identity.record);
    if (identity.kind !== 'none')
      for (const address of new Set(newAddresses)) records.occupy(address, identity.record.identity);
    for (const item of audit) records.audit(item);
  }

  return {
    findVerdict: async (uid, now) => findVerdict(uid, now),
    findIdentity: async (identity) => records.find(identity),
    findNode: async (nodeName) =>
      snapshot(() => holderOf(nodeName, { holder: (name) => records.holder(name), identity: records.find })),
    async recall(uid, { requester, from }, now) {
      const verdict = findVerdict(uid, now);
      const refusals = Number(selectRefusals.get(requester, from)?.['refusals'] ?? 0);
      return { ...(verdict === undefined ? {} : { verdict }), refusals };
    },
    async observe(record) {
      checkObservation(record);
      return transact(() => {
        // record-current
        if (records.findUnchanged({ ...record, rev: record.rev - 1 })?.state !== 'active') return false;
        records.replace(record);
        return true;
      });
    },
    async retire(record, { nameFreeAt, audit }) {
      checkRetirement(record, { nameFreeAt, audit });
      return transact((): ChangeResult => {
        const found = records.find(record.identity);
        if (found === undefined) return { kind: 'missing' };
        // retired-current
        if (records.findUnchanged(record)?.state !== 'active') return { kind: 'changed' };
        // name-own
        if (records.holder(record.nodeName) !== record.identity) return { kind: 'changed' };
        records.retire(record, { retiredAt: audit.at, nameFreeAt });
        records.audit(audit);
        return { kind: 'written' };
      });
    },
    async countRefusal({ requester, from }) {
      return transact(() => void countRefusal.run(requester, from));
    },
    findLock: async (subject) => findLock(subject),
    async lookup(question) {
      checkLookup(question);
      return snapshot(() => lookUp(question, items(question.now)));
    },
    async findMachine(name) {
      // A pattern has a row too, and is no machine.
      const row = name.includes('*') ? undefined : selectMachine.get(name);
      return row === undefined ? undefined : machineEntryFrom(jsonIn(row, 'entry'));
    },
    async claim(claim, now) {
      checkClaim(claim);
      return transact((): ClaimResult => {
        // no-verdict
        const found = findVerdict(claim.verdict.uid, now);
        if (found !== undefined) return { kind: 'verdict', found };
        if (!conditionsHold(claim, now)) return { kind: 'changed' };
        removeExpired(now);
        write(claim, now);
        return { kind: 'written' };
      });
    },
  };
}
