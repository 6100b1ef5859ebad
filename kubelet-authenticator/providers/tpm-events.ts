/**
 * What the firmware measured, by PCR, for an approver that refused the last request: with it the refusal names the event that changed
 * (docs/attestation/tpm.md). Digests only: the log also has boot entries, device paths and texts, which stay on the machine.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { decodeEventLog, digestsByPcr, mostLogBytes } from '../../core/attestation/tpm/event-log.ts';

export const eventLogFile = '/sys/kernel/security/tpm0/binary_bios_measurements';

/** 16 KiB, in base64 two thirds of what evidence may hold. */
const mostDigests = 512;

/**
 * Base64 of the digests, by PCR. PCRs with the fewest events first, as long as they fit. Absent: there is no log, or it cannot be read; evidence
 * is as good without it.
 */
export function readEvents(file: string, pcrs: readonly number[]): Readonly<Record<string, string>> | undefined {
  const log = decodeEventLog(readLog(file) ?? new Uint8Array());
  if (!log.ok) return undefined;
  const digests = [...digestsByPcr(log.value)]
    .filter(([pcr]) => pcrs.includes(pcr))
    .toSorted(([, one], [, other]) => one.length - other.length);
  let left = mostDigests;
  return Object.fromEntries(
    digests
      .filter(([, ofPcr]) => (left -= ofPcr.length) >= 0)
      .map(([pcr, ofPcr]) => [String(pcr), Buffer.concat(ofPcr).toString('base64')]),
  );
}

/** The kernel makes the file while it is read, and does not tell its size. */
function readLog(file: string): Uint8Array | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'r');
    const bytes = Buffer.alloc(mostLogBytes + 1);
    let length = 0;
    for (let read = 1; read > 0 && length < bytes.length; length += read)
      read = readSync(descriptor, bytes, length, bytes.length - length, null);
    return bytes.subarray(0, length);
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
