/**
 * A boot of a software TPM: every event of the log is extended into it. tpm2-tools read the log too; what `countersign machines pcrs`
 * prints of it admits the machine, and after another boot the refusal names the event.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { decodeEventLog } from '../../../../core/attestation/tpm/event-log.ts';
import { eventName } from '../../../../core/attestation/tpm/event-names.ts';
import { tpmProvider } from '../../../../core/attestation/tpm/provider.ts';
import type { TpmAttestation } from '../../../../core/configuration/providers/tpm.ts';
import { refusalMessage } from '../../../../core/outcome/outcome.ts';
import type { PcrPolicy } from '../../../../core/policy/profile.ts';
import { bootEvents, digestIn, eventLog } from '../../../harness/tpm/event-log.ts';
import { startSoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import type { SoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import { evidenceOf } from '../../../harness/tpm/tpm-evidence.ts';
import { requireTools } from '../../../tools/tools.ts';
import { run } from '../../../unit/cli/run.ts';

const { skip } = await requireTools('swtpm');

/** As tpm2_eventlog prints it. */
interface SeenLog {
  readonly events: readonly {
    readonly PCRIndex: bigint;
    readonly EventType: string;
    readonly Digests?: readonly { readonly AlgorithmId: string; readonly Digest: string }[];
  }[];
  readonly pcrs: { readonly sha256: Readonly<Record<string, bigint>> };
}

describe.skipIf(skip)('a boot', () => {
  let tpm: SoftwareTpm;
  let policy: PcrPolicy;
  const inFolder = (file: string) => join(tpm.folder, file);

  /** As the firmware does it: each event into its PCR, and into the log. */
  async function boot(bootLoader: string, file: string): Promise<void> {
    const events = bootEvents(bootLoader);
    for (const event of events)
      await tpm.tool('tpm2_pcrextend', `${event.pcr}:sha256=${digestIn(event).toString('hex')}`);
    writeFileSync(inFolder(file), eventLog(events));
  }
  /** What attest says of the machine whose operating system shows the log `file`. */
  async function answer(file: string, refused: boolean): Promise<string> {
    const node = { tpm, directory: inFolder('cache'), eventLog: inFolder(file) };
    const { digest, evidence } = await evidenceOf(node, undefined, refused);
    expect(evidence.quote.events !== undefined).toBe(refused && file !== 'missing');
    const trust: TpmAttestation = {
      roots: [],
      intermediates: [],
      endorsementKeys: [],
      machines: 'listed',
      nodeNames: [],
    };
    const provider = tpmProvider(trust, 'a/b/c', {
      challengeKey: { mac: () => Promise.reject(new Error('asked')) },
      randomBytes: (count) => Buffer.alloc(count),
      findMachine: () => Promise.resolve(undefined),
    });
    const examined = await provider.examine({
      version: 'tpm/v1',
      data: Buffer.from(JSON.stringify(evidence)),
      request: undefined as never,
      nodeName: 'edge-1',
      clusterName: 'demo',
      binding: () => digest.toString('hex'),
      pcrs: policy,
      now: Date.now(),
    });
    return examined.ok ? 'permitted' : refusalMessage(examined.problem);
  }

  beforeAll(async () => {
    tpm = await startSoftwareTpm();
    await boot('boot loader', 'log');
    const printed = await run(['machines', 'pcrs', 'log'], { files: { log: tpm.read('log') } });
    policy = parse(printed.out) as PcrPolicy;
  });
  afterAll(() => tpm?.stop());

  test('tpm2-tools read the same events, and the TPM has the same values', async () => {
    const seen = parse(await tpm.tool('tpm2_eventlog', 'log'), { intAsBigInt: true }) as SeenLog;
    const log = decodeEventLog(tpm.read('log'));
    if (!log.ok) throw new Error(log.problem);
    const [, ...events] = seen.events;
    expect(
      log.value.events.map((event) => [event.pcr, eventName(event).split(' ')[0], event.digest.toString('hex')]),
    ).toEqual(
      events.map(({ PCRIndex, EventType, Digests = [] }) => [
        Number(PCRIndex),
        EventType,
        Digests.find(({ AlgorithmId }) => AlgorithmId === 'sha256')?.Digest,
      ]),
    );
    const read = parse(await tpm.tool('tpm2_pcrread', 'sha256:0,2,4,7'), { intAsBigInt: true }) as SeenLog['pcrs'];
    const hex = (value: bigint | undefined) => value?.toString(16).padStart(64, '0');
    for (const [pcr, [value]] of Object.entries(policy.values)) {
      expect([pcr, value]).toEqual([pcr, hex(read.sha256[pcr])]);
      expect([pcr, value]).toEqual([pcr, hex(seen.pcrs.sha256[pcr])]);
    }
  });

  test('is permitted as it was recorded, and another one is refused by the event that differs', async () => {
    expect(await answer('log', false)).toBe('permitted');
    expect(await answer('log', true)).toBe('permitted');
    await tpm.restart({ orderly: true });
    await boot('another boot loader', 'other');
    const about = 'the profile does not permit the value of PCR 4 (boot loader code';
    expect(await answer('other', false)).toBe(`${about})`);
    expect(await answer('other', true)).toBe(`${about}; event 3 is not the recorded EV_EFI_BOOT_SERVICES_APPLICATION)`);
    // A log of another boot proves nothing about this one.
    expect(await answer('log', true)).toBe(`${about})`);
    expect(await answer('missing', true)).toBe(`${about})`);
  });
});
