/** A change of the attestations table in one transaction with its audit item. */
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { AuditItem, ChangeResult } from '../../core/ports/attestation-store.ts';
import { writesOf } from './attestation-items.ts';
import { newToken, transactWrite } from './transactions.ts';
import type { TransactionOptions } from './transactions.ts';

/** `items[0]` is the item that the change depends on: `missing` if it does not exist, `changed` if it differs. */
export async function auditedChange(
  options: TransactionOptions,
  audit: AuditItem,
  ...items: readonly TransactWriteItem[]
): Promise<ChangeResult> {
  const token = newToken(options.randomBytes);
  const auditWrite = writesOf(options.tableName).audit(audit, token);
  const answer = await transactWrite(options, token, [...items, auditWrite]);
  if (answer.kind === 'written') return answer;
  const existingAudit = answer.failed.at(-1);
  // An earlier try of this call has written the items, and its answer was lost.
  if (existingAudit?.['writer']?.S === token) return { kind: 'written' };
  if (existingAudit !== undefined) throw new Error('an audit item with this id exists already');
  const [existing] = answer.failed;
  return { kind: existing !== undefined && Object.keys(existing).length === 0 ? 'missing' : 'changed' };
}
