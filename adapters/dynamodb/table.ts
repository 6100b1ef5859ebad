/**
 * The two tables of one cluster and the names of their items. A table holds items of several kinds; the prefix of the key
 * is the kind.
 *
 * certificates: `uid#` and `spki#` (ledger.ts), `ca#` (ca.ts), `revoked#` and `crl#` (revocations.ts), `signed#` (signatures.ts).
 * attestations: everything in attestations.ts and attestation-admin.ts.
 *
 * The actions that each role needs, with dynamodb:LeadingKeys. A transaction needs those of its reads, writes and checks.
 *
 *     attestations  attest    GetItem             id#* node#* once#* verdict#* machine#* lock#*
 *                             PutItem             id#* node#* once#* verdict#* audit#*
 *                             BatchGetItem        verdict#* refused#*
 *                             UpdateItem          id#* refused#*
 *                             ConditionCheckItem  node#* machine#*
 *                             DeleteItem          once#address#*
 *                   sign      GetItem             lock#*  (and id#* verdict#* if a profile enforces attestation)
 *                   operator  GetItem             id#* node#* once#* verdict#* machine#* lock#*
 *                             PutItem             id#* node#* once#address#* machine#* lock#* audit#*
 *                             UpdateItem          id#* machine#*
 *                             DeleteItem          id#* node#* once#address#* machine#* lock#*
 *                             Scan                (the whole table: a scan has no leading keys)
 *     certificates  sign      GetItem, PutItem, UpdateItem  uid#*
 *                             GetItem             ca#* crl#*
 *                             UpdateItem          spki#*     (only where a profile has freshKeys)
 *                   ca        GetItem, PutItem    ca#*
 *                             GetItem, PutItem, DeleteItem  crl#*
 *                             PutItem             signed#*
 *                             GetItem             revoked#*
 *                             Query               (the index by expiry: revoked#*)
 *                             GetItem, PutItem, UpdateItem  uid#kubeadm/*  (only with `kubeadm`, and of locks GetItem lock#node#* lock#key#*)
 *                   operator  GetItem             uid#* revoked#*
 *                             PutItem             revoked#*
 *                             Query               (the indexes by serial number and by expiry)
 */
import { MisconfigurationError, ThrottledError } from '../../core/ports/errors.ts';
import type { Instant } from '../../core/ports/instant.ts';

/** lib/signing-state.ts creates the tables with these names. */
export const certificatesTable = {
  partitionKey: 'pk',
  indexes: {
    /** Finds the request or CA of a serial number: lower-case hex, as in the certificate. */
    serial: { name: 'serial', partitionKey: 'serial' },
    /**
     * Finds the certificates that expire on a day: `<yyyy-mm-dd>#<last hex digit of the serial>`, so that a day on which a
     * whole cluster renews has sixteen partitions. The sort key is in milliseconds since 1970.
     */
    expiry: { name: 'expiry', partitionKey: 'expiry', sortKey: 'notAfter' },
  },
} as const;

/** The records of attestation, and the locks, which clusters without attestation have too. */
export const attestationsTable = {
  partitionKey: 'pk',
  /**
   * Seconds since 1970, on verdicts, spent evidence, counts of refusals and the node names of retired machines only. DynamoDB deletes
   * such items later than they expire.
   */
  timeToLive: 'ttl',
} as const;

type ItemKind =
  | 'uid'
  | 'ca'
  | 'spki'
  | 'revoked'
  | 'crl'
  | 'signed'
  | 'id'
  | 'node'
  | 'once'
  | 'verdict'
  | 'machine'
  | 'refused'
  | 'lock'
  | 'audit';

/** `kind#value…`. `#` and `%` inside a value are percent-encoded, so that different values have different keys. */
export function itemKey(kind: ItemKind, ...values: readonly string[]): string {
  return [kind, ...values.map((value) => value.replaceAll('%', '%25').replaceAll('#', '%23'))].join('#');
}

/** Partition key of the index by expiry. */
export function expiryPartition(notAfter: Instant, serial: string): string {
  return `${new Date(notAfter).toISOString().slice(0, 10)}#${serial.slice(-1)}`;
}

/** The last digits of serial numbers, in the order of the partitions of a day. */
export const expiryDigits: readonly string[] = Array.from('0123456789abcdef');

/** Errors of the table's or the account's limits, which end when fewer calls are made. */
const throttling = new Set([
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'ThrottlingException',
  'ThrottledException',
]);

export async function mapTableErrors<T>(send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    throw tableError(error);
  }
}

/** Throttling → ThrottledError; other 4xx, which an operator must correct → MisconfigurationError; the rest unchanged. */
export function tableError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { $metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode ?? 0;
  if (throttling.has(error.name)) return new ThrottledError('the table is busy', { cause: error });
  const conditional = /^(ConditionalCheckFailed|Transaction[A-Za-z]+)Exception$/.test(error.name);
  if (status < 400 || status > 499 || conditional) return error;
  return new MisconfigurationError(`the table cannot be used (${error.name})`, { cause: error });
}
