/** What an operator calls an event of the log: its type and, where the log tells it, the UEFI variable or the action. Printable ASCII. */
import type { LoggedEvent } from './event-log.ts';

/** TCG PC Client Platform Firmware Profile, revision 1.06, 10.4.1. */
const types: ReadonlyMap<number, string> = new Map([
  [0x00, 'EV_PREBOOT_CERT'],
  [0x01, 'EV_POST_CODE'],
  [0x04, 'EV_SEPARATOR'],
  [0x05, 'EV_ACTION'],
  [0x06, 'EV_EVENT_TAG'],
  [0x07, 'EV_S_CRTM_CONTENTS'],
  [0x08, 'EV_S_CRTM_VERSION'],
  [0x09, 'EV_CPU_MICROCODE'],
  [0x0a, 'EV_PLATFORM_CONFIG_FLAGS'],
  [0x0b, 'EV_TABLE_OF_DEVICES'],
  [0x0c, 'EV_COMPACT_HASH'],
  [0x0d, 'EV_IPL'],
  [0x0e, 'EV_IPL_PARTITION_DATA'],
  [0x0f, 'EV_NONHOST_CODE'],
  [0x10, 'EV_NONHOST_CONFIG'],
  [0x11, 'EV_NONHOST_INFO'],
  [0x12, 'EV_OMIT_BOOT_DEVICE_EVENTS'],
  [0x80000001, 'EV_EFI_VARIABLE_DRIVER_CONFIG'],
  [0x80000002, 'EV_EFI_VARIABLE_BOOT'],
  [0x80000003, 'EV_EFI_BOOT_SERVICES_APPLICATION'],
  [0x80000004, 'EV_EFI_BOOT_SERVICES_DRIVER'],
  [0x80000005, 'EV_EFI_RUNTIME_SERVICES_DRIVER'],
  [0x80000006, 'EV_EFI_GPT_EVENT'],
  [0x80000007, 'EV_EFI_ACTION'],
  [0x80000008, 'EV_EFI_PLATFORM_FIRMWARE_BLOB'],
  [0x80000009, 'EV_EFI_HANDOFF_TABLES'],
  [0x8000000a, 'EV_EFI_PLATFORM_FIRMWARE_BLOB2'],
  [0x8000000b, 'EV_EFI_HANDOFF_TABLES2'],
  [0x8000000c, 'EV_EFI_VARIABLE_BOOT2'],
  [0x80000010, 'EV_EFI_HCRTM_EVENT'],
  [0x800000e0, 'EV_EFI_VARIABLE_AUTHORITY'],
  [0x800000e1, 'EV_EFI_SPDM_FIRMWARE_BLOB'],
  [0x800000e2, 'EV_EFI_SPDM_FIRMWARE_CONFIG'],
]);

/** Those whose data are an UEFI_VARIABLE_DATA (10.2.6). */
const ofVariables: ReadonlySet<number> = new Set([0x80000001, 0x80000002, 0x8000000c, 0x800000e0]);
/** Those whose data are text. */
const ofText: ReadonlySet<number> = new Set([0x05, 0x80000007]);

/** At most 64 characters. */
export function eventName({ type, data }: LoggedEvent): string {
  const detail = ofVariables.has(type) ? variableName(data) : ofText.has(type) ? data.toString('latin1') : undefined;
  const name = types.get(type) ?? `0x${type.toString(16).padStart(8, '0')}`;
  // A log is what a machine says: of unprintable text nothing is shown.
  return detail === undefined || !/^[ -~]{1,64}$/.test(detail) ? name : `${name} ${detail}`.slice(0, 64);
}

/** GUID, the length of the name in characters (64 bits), that of the value, the name in UTF-16. */
function variableName(data: Buffer): string | undefined {
  if (data.length < 32) return undefined;
  const length = data.readBigUInt64LE(16) * 2n;
  return length > BigInt(data.length - 32) ? undefined : data.toString('utf16le', 32, 32 + Number(length));
}
