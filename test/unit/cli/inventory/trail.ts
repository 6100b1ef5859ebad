/** The trail of two certificates: their records, exported, and log files as CloudTrail writes them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import type { IssuingRecord } from '../../../../core/ports/certificate-ledger.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { run } from '../run.ts';
import { day, ledgerFolder } from './ledger.ts';

export const key = 'arn:aws:kms:eu-central-1:111122223333:key/1';
export const now = Math.floor(Date.now() / 1_000) * 1_000;
export const signedAt = now - 5 * day;
export const seconds = (instant: number) => new Date(instant).toISOString().replace('.000Z', 'Z');

export const eventOf = (requestID: string, role = 'sign', keyId = key) => ({
  eventSource: 'kms.amazonaws.com',
  eventName: 'Sign',
  eventID: `event-${requestID}`,
  requestID,
  eventTime: seconds(signedAt),
  requestParameters: { keyId },
  resources: [{ ARN: keyId }],
  userIdentity: { sessionContext: { sessionIssuer: { arn: `arn:aws:iam::111122223333:role/${role}` } } },
});
const verify = { eventSource: 'kms.amazonaws.com', eventName: 'Verify' };

export async function twoCertificates() {
  const made = await ledgerFolder(key);
  const records = [await made.issued(signedAt), await made.issued(signedAt)];
  const { path: logs, remove } = temporaryFolder('trail');
  onTestFinished(remove);
  mkdirSync(join(logs, 'eu-central-1/2026'), { recursive: true });
  mkdirSync(join(logs, 'CloudTrail-Digest'));
  writeFileSync(join(logs, 'CloudTrail-Digest/digest.json'), '{}');
  const file = join(logs, 'export.jsonl');
  const exported = await run(
    ['cert', 'export', '--data', made.folder, '--from', seconds(signedAt - day), '--to', seconds(now + 60 * day)],
    { world: { now: () => now } },
  );
  // The CA of the ledger is a file here, whose signatures are not in KMS: the ca function's records are written into the export.
  const signature = {
    id: '01JD0000000000000000000000',
    caKeyId: key,
    ca: 'nodes',
    action: 'crl',
    tbsSha256: 'ab'.repeat(32),
    at: seconds(signedAt),
    kmsRequestId: 'crl-1',
  };
  const exportWith = (...signatures: readonly object[]) => {
    const [end = '', ...lines] = exported.out.trim().split('\n').toReversed();
    const last = end.replace('"signatures":0', `"signatures":${signatures.length}`);
    const own = signatures.map((each) => JSON.stringify({ signature: each }));
    writeFileSync(file, `${[...lines.toReversed(), ...own, last].join('\n')}\n`);
  };
  exportWith(signature);
  const log = (...events: readonly object[]) =>
    writeFileSync(
      join(logs, 'eu-central-1/2026/a.json.gz'),
      gzipSync(JSON.stringify({ Records: [verify, ...events] })),
    );
  const reconcile = (...flags: readonly string[]) =>
    run(
      [
        'audit',
        'reconcile',
        '--logs',
        logs,
        '--ledger',
        file,
        '--key',
        key,
        '--sign-role',
        'arn:aws:iam::111122223333:role/sign',
        '--ca-role',
        'arn:aws:iam::111122223333:role/ca',
        '--from',
        seconds(signedAt - 3_600_000),
        '--to',
        seconds(signedAt + 3_600_000),
        ...flags,
      ],
      { world: { now: () => now } },
    );
  return { records: records as [IssuingRecord, IssuingRecord], logs, log, reconcile, exportWith, signature };
}
