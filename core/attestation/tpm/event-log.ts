/**
 * The log of what the firmware measured, as Linux shows it (/sys/kernel/security/tpm0/binary_bios_measurements): TCG PC Client Platform
 * Firmware Profile, revision 1.06, section 10 ("Event Logging"), in the crypto-agile format. Numbers are little-endian. Attest never reads a log:
 * the node sends digests from its own, and an operator prints that of a reference machine.
 */
import type { Result } from '../../outcome/result.ts';
import { decodeStructure } from './structures/structure-reader.ts';
import type { StructureReader } from './structures/structure-reader.ts';

/** Logs of real machines have some 60 KiB. */
export const mostLogBytes = 1_048_576;

export interface EventLog {
  /** Those that were extended into a PCR, in their order. */
  readonly events: readonly LoggedEvent[];
  /** What PCR 0 began with: 3 or 4 if the measurement began before the first event (StartupLocality event), else 0. */
  readonly startupLocality: number;
}

export interface LoggedEvent {
  readonly pcr: number;
  /** 10.4.1: `EV_SEPARATOR` is 4. */
  readonly type: number;
  /** The SHA-256 digest that was extended. */
  readonly digest: Buffer;
  /** What was measured, or what describes it. The digest covers it for some types only. */
  readonly data: Buffer;
}

const noAction = 3;
const sha256 = 0x000b;
/** TPM 2.0 Part 2, 6.3: the sizes of the digests of each bank that a TPM may have. */
const digestSizes: ReadonlyMap<number, number> = new Map([
  [0x0004, 20], // SHA-1
  [sha256, 32],
  [0x000c, 48], // SHA-384
  [0x000d, 64], // SHA-512
  [0x0012, 32], // SM3
  [0x0027, 32], // SHA3-256
  [0x0028, 48], // SHA3-384
  [0x0029, 64], // SHA3-512
]);

/** The problem completes `the event log …`. */
export function decodeEventLog(bytes: Uint8Array): Result<EventLog, string> {
  return decodeStructure(bytes, mostLogBytes, readLog, { numbers: 'littleEndian', part: 'an event' });
}

function readLog(log: StructureReader): EventLog {
  const banks = readHeader(log);
  const events: LoggedEvent[] = [];
  let startupLocality = 0;
  while (log.remaining > 0) {
    const event = readEvent(log, banks);
    if (event.type !== noAction) events.push(event);
    else startupLocality = localityIn(event) ?? startupLocality;
  }
  return { events, startupLocality };
}

/** The digests of each PCR, in their order. */
export function digestsByPcr({ events }: EventLog): ReadonlyMap<number, readonly Buffer[]> {
  const digests = new Map<number, Buffer[]>();
  for (const { pcr, digest } of events) digests.set(pcr, [...(digests.get(pcr) ?? []), digest]);
  return digests;
}

/** 10.2.1: one event in the older format, whose data (TCG_EfiSpecIDEvent, 10.4.5.1) name the banks. */
function readHeader(log: StructureReader): readonly number[] {
  const [pcr, type, digest] = [log.uint32(), log.uint32(), log.take(20)];
  const data = log.within(log.uint32());
  const isHeader = pcr === 0 && type === noAction && digest.every((byte) => byte === 0);
  if (!isHeader || !begins(data, 'Spec ID Event03\0')) return log.refuse('is not in the crypto-agile format');
  // Platform class, minor and major version, errata, size of UINTN.
  data.take(8);
  const count = data.uint32();
  if (count === 0 || count > digestSizes.size) return log.refuse('names no or too many banks');
  const banks: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const bank = data.uint16();
    if (digestSizes.get(bank) !== data.uint16()) return log.refuse('names a bank of an unknown kind');
    if (banks.includes(bank)) return log.refuse('names a bank twice');
    banks.push(bank);
  }
  data.take(data.uint8());
  if (data.remaining > 0) return log.refuse('has a header with trailing bytes');
  return banks;
}

function begins(data: StructureReader, text: string): boolean {
  return data.remaining >= text.length && data.take(text.length).toString('latin1') === text;
}

/** TCG_PCR_EVENT2 (10.2.2): each event has one digest of each bank. */
function readEvent(log: StructureReader, banks: readonly number[]): LoggedEvent {
  const [pcr, type] = [log.uint32(), log.uint32()];
  // Events that are extended into no PCR may name a number that no PCR has.
  if (pcr > 23 && type !== noAction) return log.refuse('has an event of a PCR above 23');
  if (log.uint32() !== banks.length) return log.refuse('has an event with more or fewer digests than banks');
  const digests = new Map<number, Buffer>();
  for (let index = 0; index < banks.length; index += 1) {
    const bank = log.uint16();
    if (!banks.includes(bank) || digests.has(bank)) return log.refuse('has an event with digests of other banks');
    digests.set(bank, log.take(digestSizes.get(bank) ?? 0));
  }
  return {
    pcr,
    type,
    digest: digests.get(sha256) ?? log.refuse('has no digests of SHA-256'),
    data: log.take(log.uint32()),
  };
}

/** TCG_EfiStartupLocalityEvent (10.4.5.3). */
function localityIn({ pcr, data }: LoggedEvent): number | undefined {
  const at = 'StartupLocality\0'.length;
  const isOne = pcr === 0 && data.length === at + 1 && data.toString('latin1', 0, at) === 'StartupLocality\0';
  return isOne ? data[at] : undefined;
}
