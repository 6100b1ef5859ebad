/** The value of a PCR of the SHA-256 bank after the events that were measured into it (TPM 2.0 Part 1, 17.4: Extend). */
import { sha256 } from './digest.ts';

/**
 * Last byte of the value with which a PCR begins: zero, except that of PCR 0, which tells where the measurement began: TPM2_Startup at
 * locality 3, or a measurement before it (TCG PC Client Platform Firmware Profile, StartupLocality event).
 */
const ordinary: readonly number[] = [0];
const ofFirst: readonly number[] = [0, 3, 4];

/** Whether the events, by their digests of 32 bytes, lead to this value (lower-case hex). */
export function leadsTo(value: string, pcr: number, digests: readonly Uint8Array[]): boolean {
  return (pcr === 0 ? ofFirst : ordinary).some((locality) => extended(digests, locality) === value);
}

/** Lower-case hex. */
export function extended(digests: readonly Uint8Array[], locality = 0): string {
  const first = Buffer.alloc(32);
  first.writeUInt8(locality, 31);
  return digests.reduce<Buffer>((value, digest) => sha256(Buffer.concat([value, digest])), first).toString('hex');
}
