/** Writes event logs as firmware does (TCG PC Client Platform Firmware Profile, section 10), and what hostile firmware would. */
import { createHash } from 'node:crypto';

export interface WrittenEvent {
  readonly pcr: number;
  readonly type: number;
  /** What was measured, or instead its digest in SHA-256. */
  readonly data: Buffer;
  readonly digest?: Buffer;
}

export const eventType = {
  noAction: 3,
  separator: 4,
  action: 0x80000007,
  variable: 0x80000001,
  application: 0x80000003,
} as const;

const digestOf = {
  0x0004: (data: Buffer) => createHash('sha1').update(data).digest(),
  0x000b: (data: Buffer) => createHash('sha256').update(data).digest(),
  0x000c: (data: Buffer) => createHash('sha384').update(data).digest(),
} as const;
export type Bank = keyof typeof digestOf;

export const uint16 = (value: number) => Buffer.from(Uint16Array.of(value).buffer);
export const uint32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer);
const uint64 = (value: number) => Buffer.concat([uint32(value), uint32(0)]);

export function eventLog(events: readonly WrittenEvent[], banks: readonly Bank[] = [0x0004, 0x000b]): Buffer {
  return Buffer.concat([header(banks), ...events.map((event) => writeEvent(event, banks))]);
}

export function header(banks: readonly Bank[] = [0x0004, 0x000b]): Buffer {
  const algorithms = banks.map((bank) => Buffer.concat([uint16(bank), uint16(digestOf[bank](Buffer.of()).length)]));
  return headerOf(Buffer.concat([specification, uint32(banks.length), ...algorithms, Buffer.of(2), Buffer.from('us')]));
}

/** Signature, class 0, version 2.0, errata 0, UINTN of 64 bits. */
export const specification = Buffer.concat([Buffer.from('Spec ID Event03\0'), uint32(0), Buffer.of(0, 2, 0, 2)]);

export function headerOf(data: Buffer, { pcr = 0, type = 3, digest = Buffer.alloc(20) } = {}): Buffer {
  return Buffer.concat([uint32(pcr), uint32(type), digest, uint32(data.length), data]);
}

export function writeEvent(
  { pcr, type, data, digest }: WrittenEvent,
  banks: readonly Bank[] = [0x0004, 0x000b],
): Buffer {
  const digests = banks.map((bank) => {
    // Events without an action are in no PCR: their digests are zeros.
    const size = digestOf[bank](data).length;
    const value = type === eventType.noAction ? Buffer.alloc(size) : digestOf[bank](data);
    return Buffer.concat([uint16(bank), bank === 0x000b ? (digest ?? value) : value]);
  });
  return Buffer.concat([uint32(pcr), uint32(type), uint32(banks.length), ...digests, uint32(data.length), data]);
}

/** UEFI_VARIABLE_DATA. */
export function variableData(name: string, value: Buffer): Buffer {
  const text = Buffer.from(name, 'utf16le');
  return Buffer.concat([Buffer.alloc(16, 0xe1), uint64(name.length), uint64(value.length), text, value]);
}

export function startupLocality(locality: number): WrittenEvent {
  return {
    pcr: 0,
    type: eventType.noAction,
    data: Buffer.concat([Buffer.from('StartupLocality\0'), Buffer.of(locality)]),
  };
}

/** UEFI_PLATFORM_FIRMWARE_BLOB, and UEFI_IMAGE_LOAD_EVENT without a device path: where it was, which says nothing about it. */
const blob = Buffer.concat([uint64(0xff000000), uint64(0x1000)]);
const image = Buffer.concat([uint64(0x1000), uint64(0x2000), uint64(0), uint64(0)]);
const sha256 = digestOf[0x000b];

/** A boot of eight PCRs. */
export function bootEvents(bootLoader = 'boot loader'): readonly WrittenEvent[] {
  const separators = [0, 1, 2, 3, 4, 5, 6, 7].map((pcr) => ({ pcr, type: eventType.separator, data: Buffer.alloc(4) }));
  return [
    { pcr: 0, type: 0x80000008, data: blob, digest: sha256(Buffer.from('firmware')) },
    { pcr: 7, type: eventType.variable, data: variableData('SecureBoot', Buffer.of(1)) },
    { pcr: 7, type: eventType.variable, data: variableData('PK', Buffer.from('platform key')) },
    { pcr: 4, type: eventType.action, data: Buffer.from('Calling EFI Application from Boot Option') },
    ...separators,
    { pcr: 4, type: eventType.application, data: image, digest: sha256(Buffer.from(bootLoader)) },
  ];
}

/** What is extended into a PCR of SHA-256. */
export function digestIn({ data, digest }: WrittenEvent): Buffer {
  return digest ?? sha256(data);
}
