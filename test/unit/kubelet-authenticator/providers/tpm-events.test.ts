import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readEvents } from '../../../../kubelet-authenticator/providers/tpm-events.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { bootEvents, digestIn, eventLog } from '../../../harness/tpm/event-log.ts';
import type { WrittenEvent } from '../../../harness/tpm/event-log.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder('events');
});
afterEach(() => folder.remove());

function read(bytes: Buffer, pcrs: readonly number[] = [0, 1, 2, 3, 4, 5, 6, 7]) {
  const file = join(folder.path, 'log');
  writeFileSync(file, bytes);
  return readEvents(file, pcrs);
}

const separators = (pcr: number, count: number) =>
  Array.from({ length: count }, (): WrittenEvent => ({ pcr, type: 4, data: Buffer.alloc(4) }));
const counted = (events: Readonly<Record<string, string>> | undefined) =>
  Object.fromEntries(Object.entries(events ?? {}).map(([pcr, text]) => [pcr, Buffer.from(text, 'base64').length / 32]));

test('the digests of the wanted PCRs, in their order, and nothing else of the log', () => {
  const events = bootEvents();
  const four = Buffer.concat(events.filter(({ pcr }) => pcr === 4).map(digestIn)).toString('base64');
  expect(read(eventLog(events), [4, 12])).toEqual({ 4: four });
  expect(counted(read(eventLog(events)))).toEqual({ 0: 2, 1: 1, 2: 1, 3: 1, 4: 3, 5: 1, 6: 1, 7: 3 });
});

test('as many as evidence may hold: the PCRs with the fewest events', () => {
  const log = (one: number) => eventLog([...separators(1, one), ...separators(4, 12), ...separators(7, 100)]);
  expect(counted(read(log(400)))).toEqual({ 1: 400, 4: 12, 7: 100 });
  expect(counted(read(log(401)))).toEqual({ 4: 12, 7: 100 });
  expect(JSON.stringify(read(log(400))).length).toBeLessThan(23_000);
});

test('no log, a log that is too large, and an unreadable log: the evidence is sent without it', () => {
  expect(readEvents(join(folder.path, 'missing'), [4])).toBeUndefined();
  expect(readEvents(folder.path, [4])).toBeUndefined();
  expect(read(Buffer.of())).toBeUndefined();
  expect(read(eventLog(bootEvents()).subarray(0, -1))).toBeUndefined();
  const large = eventLog([{ pcr: 4, type: 4, data: Buffer.alloc(1_048_576) }]);
  expect(read(large)).toBeUndefined();
});
