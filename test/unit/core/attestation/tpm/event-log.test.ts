import { describe, expect, test } from 'vitest';
import { decodeEventLog, digestsByPcr } from '../../../../../core/attestation/tpm/event-log.ts';
import { eventName } from '../../../../../core/attestation/tpm/event-names.ts';
import { logCases } from '../../../../corpus/attestation/tpm/log-cases.ts';
import { bootEvents, eventLog, eventType, startupLocality, variableData } from '../../../../harness/tpm/event-log.ts';
import type { WrittenEvent } from '../../../../harness/tpm/event-log.ts';

const decoded = (bytes: Buffer) => {
  const log = decodeEventLog(bytes);
  if (!log.ok) throw new Error(log.problem);
  return log.value;
};

test.for(logCases.map((one) => [one.name, one] as const))('a log: %s', ([, { bytes, problem }]) => {
  const log = decodeEventLog(bytes);
  expect(log.ok ? undefined : log.problem).toBe(problem);
});

test.for([[[0x000b]], [[0x0004, 0x000b]], [[0x000c, 0x000b]]] as const)('is read as it was written: %j', ([banks]) => {
  const written = bootEvents();
  const { events } = decoded(eventLog(written, banks));
  expect(events.map(({ pcr, type, data }) => ({ pcr, type, data }))).toEqual(
    written.map(({ pcr, type, data }) => ({ pcr, type, data })),
  );
  // printf firmware | sha256sum
  expect(events[0]?.digest.toString('hex')).toMatch(/^c3bf47ea1f4a4a60/);
});

test('what was measured into no PCR is not listed, and tells where PCR 0 began', () => {
  const localities = (...events: readonly WrittenEvent[]) =>
    decoded(eventLog([...events, ...bootEvents()])).startupLocality;
  expect(localities()).toBe(0);
  expect(localities(startupLocality(3))).toBe(3);
  expect(localities({ ...startupLocality(3), pcr: 1 })).toBe(0);
  expect(localities({ ...startupLocality(3), type: eventType.separator })).toBe(0);
  expect(localities({ ...startupLocality(3), data: Buffer.from('StartupLocality\0') })).toBe(0);
  expect(localities({ ...startupLocality(3), data: Buffer.from('startupLocality\0\u0003') })).toBe(0);
  const long = Buffer.concat([startupLocality(3).data, Buffer.of(0)]);
  expect(localities({ ...startupLocality(3), data: long })).toBe(0);
  expect(localities(startupLocality(4), { pcr: 0, type: 3, data: Buffer.alloc(17) })).toBe(4);
  expect(decoded(eventLog([startupLocality(3)])).events).toEqual([]);
});

test('digests by PCR, in their order', () => {
  const log = decoded(eventLog(bootEvents()));
  const digests = digestsByPcr(log);
  expect([...digests.keys()].toSorted((one, other) => one - other)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(digests.get(4)).toEqual(log.events.filter(({ pcr }) => pcr === 4).map(({ digest }) => digest));
  expect(digests.get(4)).toHaveLength(3);
});

describe('the name of an event', () => {
  const nameOf = (type: number, data: Buffer) => eventName({ pcr: 7, type, data, digest: Buffer.alloc(32) });
  test.for([
    [eventType.separator, Buffer.alloc(4), 'EV_SEPARATOR'],
    [eventType.variable, variableData('SecureBoot', Buffer.of(1)), 'EV_EFI_VARIABLE_DRIVER_CONFIG SecureBoot'],
    [0x800000e0, variableData('db', Buffer.alloc(3)), 'EV_EFI_VARIABLE_AUTHORITY db'],
    [eventType.action, Buffer.from('Exit Boot Services Invocation'), 'EV_EFI_ACTION Exit Boot Services Invocation'],
    [5, Buffer.from('Start Option ROM Scan'), 'EV_ACTION Start Option ROM Scan'],
    [5, Buffer.from('x'.repeat(64)), `EV_ACTION ${'x'.repeat(54)}`],
    [5, Buffer.from('x'.repeat(65)), 'EV_ACTION'],
    [0x80000003, Buffer.from('a path'), 'EV_EFI_BOOT_SERVICES_APPLICATION'],
    [0x8000ffff, Buffer.of(), '0x8000ffff'],
    [0x99, Buffer.of(), '0x00000099'],
    // What the log says is not trusted: nothing unprintable, nothing behind its end.
    [eventType.action, Buffer.from('red \u001b[31m'), 'EV_EFI_ACTION'],
    [eventType.action, Buffer.of(), 'EV_EFI_ACTION'],
    [eventType.variable, variableData('SecureBööt', Buffer.of(1)), 'EV_EFI_VARIABLE_DRIVER_CONFIG'],
    [eventType.variable, variableData('SecureBoot', Buffer.of()).subarray(0, -1), 'EV_EFI_VARIABLE_DRIVER_CONFIG'],
    [eventType.variable, Buffer.alloc(31, 0xff), 'EV_EFI_VARIABLE_DRIVER_CONFIG'],
    [eventType.variable, Buffer.alloc(32, 0xff), 'EV_EFI_VARIABLE_DRIVER_CONFIG'],
    [eventType.variable, Buffer.alloc(32), 'EV_EFI_VARIABLE_DRIVER_CONFIG'],
  ] as const)('%d %s → %s', ([type, data, name]) => {
    expect(nameOf(type, data)).toBe(name);
  });
});
