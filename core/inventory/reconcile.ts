/**
 * Compares the signatures that KMS made with a CA key (CloudTrail) with the ledger.
 *
 * A record names the KMS request of its signature: the ledger's record of a certificate, or that of a signature of the ca function. A
 * signature that no record names is explained only if an intent of the same key and role was open at that moment: the delivery lost its
 * answer, or another delivery recorded its certificate first. One intent explains no more signatures than its attempts can have requested.
 */
import { kubeadmUidPrefix } from '../ports/certificate-ledger.ts';
import type { InventoryRecord } from './certificate-entry.ts';
import type { Instant } from '../ports/instant.ts';
import type { SignatureRecord } from '../ports/signature-log.ts';

/** A successful `Sign` call, as CloudTrail has it. */
export interface SignEvent {
  readonly eventId: string;
  readonly requestId: string;
  /** Without milliseconds. */
  readonly at: Instant;
  /** ARN. */
  readonly keyId: string;
  /** ARN of the role or user. */
  readonly principal: string;
}

/** The signatures from `from` to `to` are compared. */
export interface ReconcileScope {
  readonly from: Instant;
  readonly to: Instant;
  /** ARNs of the CA keys. */
  readonly keys: ReadonlySet<string>;
  /** The role of the sign function: only its signatures can belong to an intent of the ledger that was open then. */
  readonly signRole: string;
  /**
   * The role of the kubeadm function, likewise for the intents of certificates of kubeadm's control plane. Undefined if the cluster has no
   * such function.
   */
  readonly kubeadmRole: string | undefined;
  /** The role of the ca function, likewise for the records of its signatures: CA certificates, requests for them, CRLs. */
  readonly caRole: string;
}

/** What the comparison keeps of a record. */
type LedgerRecord = Pick<
  InventoryRecord,
  'uid' | 'serial' | 'state' | 'caKeyId' | 'openedAt' | 'notAfter' | 'attempt' | 'kmsRequestId'
>;

/** Whose record: of a request, or of a signature of the ca function. */
export type Owner = { readonly uid: string } | { readonly signature: SignatureRecord };

export type Gap =
  /** Nothing accounts for this signature. */
  | { readonly kind: 'noRecord'; readonly event: SignEvent }
  /** A record names this request, and its CA has another key. */
  | ({ readonly kind: 'otherKey'; readonly event: SignEvent } & Owner)
  /** The trail has no signature with the name that the record has. */
  | { readonly kind: 'noEvent'; readonly record: LedgerRecord }
  | { readonly kind: 'noEvent'; readonly signature: SignatureRecord }
  /** An issued record does not name its signature, so that no signature can be found for it. */
  | { readonly kind: 'unnamed'; readonly record: LedgerRecord };

export interface Reconciliation {
  readonly signatures: number;
  /** Signatures that the record of a certificate names. */
  readonly recorded: number;
  /** Signatures of the ca function that a record of it names: what they were for. */
  readonly caFunction: readonly { readonly event: SignEvent; readonly signature: SignatureRecord }[];
  /** Signatures that an intent explains which was open then. */
  readonly openIntents: readonly ({ readonly event: SignEvent } & Owner)[];
  /** Each is a reason for alarm. */
  readonly gaps: readonly Gap[];
}

/** CloudTrail's times have seconds, and the clocks of Lambda and KMS differ by less than this. */
const clockLeeway = 5_000;
/** A delivery signs within the time of its function (25 s), and its lease is longer. */
const deliveryMilliseconds = 30_000;
/** The timeout of the ca function (lib/services.ts). */
const caMilliseconds = 120_000;
/** A call to KMS is repeated once, after a reset connection (adapters/aws/kms-client.ts). */
const signaturesPerAttempt = 2;

/** Collects the ledger and the signatures of the ca function first, then the trail. */
export interface Reconciler {
  readonly addRecord: (record: LedgerRecord) => void;
  readonly addSignature: (record: SignatureRecord) => void;
  /** Each event once or more often: CloudTrail may deliver one twice. */
  readonly addEvent: (event: SignEvent) => void;
  readonly finish: () => Reconciliation;
}

/** What can explain a signature that no record names. */
interface Intent {
  readonly owner: Owner;
  readonly caKeyId: string;
  readonly role: string | undefined;
  /** How many signatures it can still explain. */
  left: number;
  readonly wasOpen: (at: Instant) => boolean;
}

export function reconciler({ from, to, keys, signRole, kubeadmRole, caRole }: ReconcileScope): Reconciler {
  const named = new Map<string, LedgerRecord>();
  const records: LedgerRecord[] = [];
  const namedByCa = new Map<string, SignatureRecord>();
  const signatures: SignatureRecord[] = [];
  const seen = new Set<string>();
  const signedAt = new Map<string, Instant>();
  const unnamed: SignEvent[] = [];
  const caFunction: { event: SignEvent; signature: SignatureRecord }[] = [];
  const foundAt = new Map<SignatureRecord, Instant>();
  const gaps: Gap[] = [];

  function ofRecord(record: LedgerRecord): Intent {
    const { uid, caKeyId, openedAt, notAfter, state, attempt } = record;
    // After half of its lifetime an intent is not signed any more (core/issue.ts).
    const lastTry = openedAt + (notAfter - openedAt) / 2 + deliveryMilliseconds;
    const end = state === 'issued' ? (signedAt.get(uid) ?? openedAt + deliveryMilliseconds) : lastTry;
    const left = attempt * signaturesPerAttempt - (signedAt.has(uid) ? 1 : 0);
    const role = uid.startsWith(kubeadmUidPrefix) ? kubeadmRole : signRole;
    return { owner: { uid }, caKeyId, role, left, wasOpen: (at) => isBetween(at, openedAt, end) };
  }

  function ofSignature(signature: SignatureRecord): Intent {
    const { caKeyId, at: begun, kmsRequestId } = signature;
    const named = foundAt.get(signature);
    const left = kmsRequestId === undefined ? signaturesPerAttempt : named === undefined ? 0 : signaturesPerAttempt - 1;
    const wasOpen = (at: Instant) => isBetween(at, begun, named ?? begun + caMilliseconds);
    return { owner: { signature }, caKeyId, role: caRole, left, wasOpen };
  }

  function attribute(event: SignEvent): void {
    const record = named.get(event.requestId);
    const signature = namedByCa.get(event.requestId);
    const wrongKey = (record ?? signature)?.caKeyId !== event.keyId;
    if (signature !== undefined && !wrongKey) foundAt.set(signature, event.at);
    if (record !== undefined) {
      if (wrongKey) gaps.push({ kind: 'otherKey', event, uid: record.uid });
      else signedAt.set(record.uid, event.at);
    } else if (signature !== undefined) {
      if (wrongKey) gaps.push({ kind: 'otherKey', event, signature });
      else caFunction.push({ event, signature });
    } else unnamed.push(event);
  }

  return {
    addRecord({ uid, serial, state, caKeyId, openedAt, notAfter, attempt, kmsRequestId }) {
      if (!keys.has(caKeyId)) return;
      const name = kmsRequestId === undefined ? {} : { kmsRequestId };
      const record = { uid, serial, state, caKeyId, openedAt, notAfter, attempt, ...name };
      records.push(record);
      if (kmsRequestId !== undefined) named.set(kmsRequestId, record);
    },
    addSignature(record) {
      if (!keys.has(record.caKeyId)) return;
      signatures.push(record);
      if (record.kmsRequestId !== undefined) namedByCa.set(record.kmsRequestId, record);
    },
    addEvent(event) {
      if (!keys.has(event.keyId) || event.at < from || event.at >= to || seen.has(event.eventId)) return;
      seen.add(event.eventId);
      attribute(event);
    },
    finish() {
      const intents = [...records.map(ofRecord), ...signatures.map(ofSignature)];
      const openIntents: ({ event: SignEvent } & Owner)[] = [];
      for (const event of unnamed.toSorted((a, b) => a.at - b.at)) {
        const intent = intents.find(
          ({ caKeyId, role, left, wasOpen }) =>
            caKeyId === event.keyId && role === event.principal && left > 0 && wasOpen(event.at),
        );
        if (intent === undefined) gaps.push({ kind: 'noRecord', event });
        else {
          openIntents.push({ event, ...intent.owner });
          intent.left -= 1;
        }
      }
      for (const record of records) {
        const { state, uid, openedAt, attempt, kmsRequestId } = record;
        // At either end its signature may be outside the time that is compared.
        const inside = openedAt >= from && openedAt + deliveryMilliseconds * attempt < to;
        if (state !== 'issued' || signedAt.has(uid) || !inside) continue;
        gaps.push(kmsRequestId === undefined ? { kind: 'unnamed', record } : { kind: 'noEvent', record });
      }
      for (const signature of signatures) {
        const { at, kmsRequestId } = signature;
        const inside = at >= from && at + caMilliseconds < to;
        if (kmsRequestId !== undefined && inside && !foundAt.has(signature)) gaps.push({ kind: 'noEvent', signature });
      }
      return { signatures: seen.size, recorded: signedAt.size, caFunction, openIntents, gaps };
    },
  };
}

function isBetween(at: Instant, begin: Instant, end: Instant): boolean {
  return at >= begin - clockLeeway && at <= end + clockLeeway;
}
