/** Event logs, and what each is refused for. */
import {
  bootEvents,
  eventLog,
  header,
  headerOf,
  specification,
  uint16,
  uint32,
  writeEvent,
} from '../../../harness/tpm/event-log.ts';

const [event] = bootEvents();
const written = writeEvent(event!);
const banksOf = (...banks: readonly (readonly [id: number, size: number])[]) =>
  headerOf(
    Buffer.concat([
      specification,
      uint32(banks.length),
      ...banks.flatMap(([id, size]) => [uint16(id), uint16(size)]),
      Buffer.of(0),
    ]),
  );
/** An event of PCR 0 with these digests. */
const withDigests = (...digests: readonly (readonly [id: number, bytes: Buffer])[]) =>
  Buffer.concat([
    uint32(0),
    uint32(4),
    uint32(digests.length),
    ...digests.flatMap(([id, bytes]) => [uint16(id), bytes]),
    uint32(4),
    Buffer.alloc(4),
  ]);
const [sha1, sha256] = [Buffer.alloc(20, 1), Buffer.alloc(32, 2)];
const changed = (bytes: Buffer, change: (bytes: Buffer) => void): Buffer => {
  const copy = Buffer.from(bytes);
  change(copy);
  return copy;
};
const notAgile = 'is not in the crypto-agile format';
const otherBanks = 'has an event with digests of other banks';

/** `problem` is missing where the log is right. */
export const logCases: readonly { readonly name: string; readonly bytes: Buffer; readonly problem?: string }[] = [
  { name: 'a boot', bytes: eventLog(bootEvents()) },
  { name: 'a boot of SHA-256 alone', bytes: eventLog(bootEvents(), [0x000b]) },
  { name: 'a boot of three banks', bytes: eventLog(bootEvents(), [0x0004, 0x000b, 0x000c]) },
  { name: 'no event', bytes: header() },
  { name: 'an event of PCR 23', bytes: eventLog([{ ...event!, pcr: 23 }]) },
  { name: 'no action for no PCR', bytes: eventLog([{ pcr: 0xffffffff, type: 3, data: Buffer.of(1) }]) },
  { name: 'digests in another order', bytes: Buffer.concat([header(), withDigests([0x000b, sha256], [0x0004, sha1])]) },
  {
    name: 'every bank that there is',
    bytes: banksOf([4, 20], [11, 32], [12, 48], [13, 64], [18, 32], [39, 32], [40, 48], [41, 64]),
  },
  { name: 'nothing', bytes: Buffer.of(), problem: 'ends inside an event' },
  { name: 'more than it may be', bytes: Buffer.alloc(1_048_577), problem: 'is larger than 1048576 bytes' },
  { name: 'as much as it may be', bytes: Buffer.alloc(1_048_576), problem: notAgile },
  { name: 'the older format', bytes: headerOf(Buffer.alloc(4), { type: 4 }), problem: notAgile },
  { name: 'a header of PCR 1', bytes: headerOf(header().subarray(32), { pcr: 1 }), problem: notAgile },
  { name: 'a header that is an action', bytes: headerOf(header().subarray(32), { type: 5 }), problem: notAgile },
  {
    name: 'a header with a digest',
    bytes: headerOf(header().subarray(32), { digest: Buffer.alloc(20, 1) }),
    problem: notAgile,
  },
  {
    name: 'a header of an earlier specification',
    bytes: headerOf(changed(header().subarray(32), (bytes) => bytes.write('2', 14))),
    problem: notAgile,
  },
  { name: 'a header that is short', bytes: headerOf(Buffer.from('Spec ID')), problem: notAgile },
  { name: 'a header without banks', bytes: banksOf(), problem: 'names no or too many banks' },
  {
    name: 'a header with nine banks',
    bytes: banksOf(...Array.from({ length: 9 }, () => [11, 32] as const)),
    problem: 'names no or too many banks',
  },
  {
    name: 'a bank that is not known',
    bytes: banksOf([11, 32], [0x10, 32]),
    problem: 'names a bank of an unknown kind',
  },
  { name: 'a bank of another size', bytes: banksOf([11, 20]), problem: 'names a bank of an unknown kind' },
  { name: 'a bank twice', bytes: banksOf([11, 32], [11, 32]), problem: 'names a bank twice' },
  {
    name: 'a header with a trailing byte',
    bytes: headerOf(Buffer.concat([header().subarray(32), Buffer.of(0)])),
    problem: 'has a header with trailing bytes',
  },
  {
    name: 'a header whose vendor says more than there is',
    bytes: headerOf(changed(header().subarray(32), (bytes) => bytes.writeUInt8(3, bytes.length - 3))),
    problem: 'ends inside an event',
  },
  { name: 'without SHA-256', bytes: eventLog(bootEvents(), [0x0004]), problem: 'has no digests of SHA-256' },
  { name: 'an event of PCR 24', bytes: eventLog([{ ...event!, pcr: 24 }]), problem: 'has an event of a PCR above 23' },
  {
    name: 'an event with one digest',
    bytes: Buffer.concat([header(), withDigests([0x000b, sha256])]),
    problem: 'has an event with more or fewer digests than banks',
  },
  {
    name: 'an event with three digests',
    bytes: Buffer.concat([header(), withDigests([0x0004, sha1], [0x000b, sha256], [0x000b, sha256])]),
    problem: 'has an event with more or fewer digests than banks',
  },
  {
    name: 'an event with a digest twice',
    bytes: Buffer.concat([header(), withDigests([0x000b, sha256], [0x000b, sha256])]),
    problem: otherBanks,
  },
  {
    name: 'an event with a digest of a bank that the header does not name',
    bytes: Buffer.concat([header(), withDigests([0x000c, Buffer.alloc(48)], [0x000b, sha256])]),
    problem: otherBanks,
  },
  { name: 'cut in its last event', bytes: eventLog(bootEvents()).subarray(0, -1), problem: 'ends inside an event' },
  {
    name: 'a trailing byte',
    bytes: Buffer.concat([eventLog(bootEvents()), Buffer.of(0)]),
    problem: 'ends inside an event',
  },
  {
    name: 'an event of four gigabytes',
    bytes: Buffer.concat([header(), changed(written, (bytes) => bytes.writeUInt32LE(0xffffffff, 68))]),
    problem: 'ends inside an event',
  },
];
