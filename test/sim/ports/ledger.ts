/** A certificate ledger in plain memory: no file, no thread, no time of its own. test/contract/certificate-ledger.ts holds it to the port. */
import type {
  CertificateLedger,
  FreshKey,
  Intent,
  IssuingRecord,
  LedgerResult,
  OpenResult,
} from '../../../core/ports/certificate-ledger.ts';

export interface SimulatedLedger extends CertificateLedger {
  /** As it stands, for the oracle. */
  readonly records: ReadonlyMap<string, IssuingRecord>;
}

interface Mark {
  readonly requestSha256: string;
  readonly identity: string | undefined;
}

const written = { kind: 'written' } as const;

/** A caller never holds the store's own bytes. */
function copy<R extends { readonly tbs: Uint8Array; readonly certificate?: Uint8Array }>(record: R): R {
  const { tbs, certificate } = record;
  return { ...record, tbs: tbs.slice(), ...(certificate === undefined ? {} : { certificate: certificate.slice() }) };
}

export function createSimulatedLedger(): SimulatedLedger {
  const records = new Map<string, IssuingRecord>();
  const marks = new Map<string, Mark>();

  function found(uid: string): IssuingRecord {
    const record = records.get(uid);
    if (record === undefined) throw new Error(`the ledger has no record of ${uid}`);
    return record;
  }

  function change(uid: string, holds: (record: IssuingRecord) => boolean, more: Partial<IssuingRecord>): LedgerResult {
    const record = found(uid);
    if (record.state !== 'intent' || !holds(record)) return { kind: 'found', found: copy(record) };
    records.set(uid, { ...record, ...more });
    return written;
  }

  function isFree({ spkiSha256, requestSha256, identity }: FreshKey): boolean {
    const mark = marks.get(spkiSha256);
    if (mark === undefined || mark.requestSha256 === requestSha256) return true;
    return identity !== undefined && mark.identity === identity;
  }

  function open(intent: Intent): Promise<LedgerResult>;
  function open(intent: Intent, freshKey: FreshKey | undefined): Promise<OpenResult>;
  async function open(intent: Intent, freshKey?: FreshKey): Promise<OpenResult> {
    const record = records.get(intent.uid);
    if (record !== undefined) return { kind: 'found', found: copy(record) };
    if (freshKey !== undefined) {
      if (!isFree(freshKey)) return { kind: 'keyUsed' };
      const { spkiSha256, requestSha256 } = freshKey;
      if (!marks.has(spkiSha256)) marks.set(spkiSha256, { requestSha256, identity: intent.identity });
    }
    records.set(intent.uid, { ...copy(intent), state: 'intent', attempt: 1 });
    return written;
  }

  return {
    records,
    async find(uid) {
      const record = records.get(uid);
      return record === undefined ? undefined : copy(record);
    },
    open,
    async takeOver(uid, attempt, leaseUntil, lambdaRequestId) {
      const result = change(uid, (record) => record.attempt === attempt, { attempt: attempt + 1, leaseUntil });
      if (result.kind === 'found') return result;
      const { lambdaRequestId: _, ...record } = found(uid);
      records.set(uid, lambdaRequestId === undefined ? record : { ...record, lambdaRequestId });
      return result;
    },
    async release(uid, attempt) {
      if (records.has(uid)) change(uid, (record) => record.attempt === attempt, { leaseUntil: 0 });
    },
    complete: async (uid, certificate, kmsRequestId) =>
      change(uid, () => true, {
        state: 'issued',
        certificate: certificate.slice(),
        ...(kmsRequestId === undefined ? {} : { kmsRequestId }),
      }),
    expire: async (uid, attempt) => change(uid, (record) => record.attempt === attempt, { state: 'expired' }),
  };
}
