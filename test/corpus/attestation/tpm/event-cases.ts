/** Events of a boot beside a quote, and what a refusal says of them. */
import { createHash } from 'node:crypto';
import { quote } from '../../../harness/tpm/model-tpm.ts';
import type { Case } from './judge.ts';
import { ak, b64, bound, pcrs, quoteData } from './machine.ts';
import type { Json } from './machine.ts';

const digest = (event: number) => Buffer.alloc(32, event);
/** TPM2_PCR_Extend for each event, from a PCR that holds zeros but for its last byte. */
function extend(events: readonly number[], locality = 0): Buffer {
  const first = Buffer.concat([Buffer.alloc(31), Buffer.of(locality)]);
  return events.reduce<Buffer>(
    (value, event) => createHash('sha256').update(value).update(digest(event)).digest(),
    first,
  );
}

const names = ['EV_EFI_ACTION Calling', 'EV_SEPARATOR', 'EV_EFI_BOOT_SERVICES_APPLICATION', 'EV_EFI_GPT_EVENT'];
const boot = (...events: readonly number[]) =>
  events.map((event, index) => `${digest(event).toString('hex')} ${names[index]}`);
const policyOf = (pcr: number, boots: readonly (readonly number[])[], locality = 0) => ({
  bank: 'sha256' as const,
  values: { [pcr]: boots.map((events) => extend(events, locality).toString('hex')) },
  events: { [pcr]: boots.map((events) => boot(...events)) },
});

/** The machine went through `happened`, and says that it went through `told`. */
function sent(
  pcr: number,
  happened: readonly number[],
  told: readonly number[] | 'nothing' = happened,
  locality = 0,
): Json {
  const values = new Map([...pcrs, [pcr, extend(happened, locality)] as const]);
  const { events: _, ...quoted } = quoteData(quote(ak, bound, values), values);
  const events = told === 'nothing' ? {} : { events: { [pcr]: b64(Buffer.concat(told.map(digest))) } };
  return { quote: { ...quoted, ...events } };
}

const notAllowed = (check: string) =>
  ['IdentityNotAllowed', `the profile does not permit the value of ${check}`] as const;
const pcrAlone = notAllowed('PCR 4 (boot loader code)');
const recorded = policyOf(4, [[1, 2, 3]]);

export const eventCases: readonly Case[] = [
  { name: 'the recorded events', pcrs: recorded, data: sent(4, [1, 2, 3]), expect: 'accepted' },
  { name: 'a permitted value, and invented events', pcrs: recorded, data: sent(4, [1, 2, 3], [9]), expect: 'accepted' },
  {
    name: 'the last event differs',
    pcrs: recorded,
    data: sent(4, [1, 2, 9]),
    expect: notAllowed('PCR 4 (boot loader code; event 3 is not the recorded EV_EFI_BOOT_SERVICES_APPLICATION)'),
  },
  {
    name: 'every event differs',
    pcrs: recorded,
    data: sent(4, [7, 8, 9]),
    expect: notAllowed('PCR 4 (boot loader code; event 1 is not the recorded EV_EFI_ACTION Calling)'),
  },
  {
    name: 'the last event is missing',
    pcrs: recorded,
    data: sent(4, [1, 2]),
    expect: notAllowed('PCR 4 (boot loader code; event 3, EV_EFI_BOOT_SERVICES_APPLICATION, is missing)'),
  },
  {
    name: 'one event more',
    pcrs: recorded,
    data: sent(4, [1, 2, 3, 4]),
    expect: notAllowed('PCR 4 (boot loader code; event 4 was not recorded)'),
  },
  {
    name: 'of several recorded boots, the one that is like it for longest',
    pcrs: policyOf(4, [[9], [1, 2, 3, 4], [1, 5]]),
    data: sent(4, [1, 2, 3, 9]),
    expect: notAllowed('PCR 4 (boot loader code; event 4 is not the recorded EV_EFI_GPT_EVENT)'),
  },
  { name: 'other events than the PCR holds', pcrs: recorded, data: sent(4, [1, 2, 9], [1, 9, 9]), expect: pcrAlone },
  { name: 'the recorded events, of another boot', pcrs: recorded, data: sent(4, [9], [1, 2, 3]), expect: pcrAlone },
  { name: 'no events', pcrs: recorded, data: sent(4, [1, 2, 9], 'nothing'), expect: pcrAlone },
  {
    name: 'events, and no recorded boot',
    pcrs: { bank: recorded.bank, values: recorded.values },
    data: sent(4, [1, 2, 9]),
    expect: pcrAlone,
  },
  {
    name: 'events from another locality than a boot begins at',
    pcrs: recorded,
    data: sent(4, [9], [9], 3),
    expect: pcrAlone,
  },
  {
    name: 'events of PCR 0 from locality 3',
    pcrs: policyOf(0, [[1, 2]], 3),
    data: sent(0, [1, 9], [1, 9], 3),
    expect: notAllowed('PCR 0 (firmware code; event 2 is not the recorded EV_SEPARATOR)'),
  },
  {
    name: 'events of PCR 0 after a measurement of the firmware',
    pcrs: policyOf(0, [[1, 2]]),
    data: sent(0, [9], [9], 4),
    expect: notAllowed('PCR 0 (firmware code; event 1 is not the recorded EV_EFI_ACTION Calling)'),
  },
  {
    name: 'the recorded events of PCR 0 from another locality',
    pcrs: policyOf(0, [[1, 2]], 3),
    data: sent(0, [1, 2]),
    expect: notAllowed('PCR 0 (firmware code)'),
  },
  {
    name: 'events of a PCR above those of the firmware',
    pcrs: policyOf(12, [[1]]),
    data: sent(12, [9]),
    expect: notAllowed('PCR 12 (event 1 is not the recorded EV_EFI_ACTION Calling)'),
  },
];
