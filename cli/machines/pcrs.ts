/** `countersign machines pcrs`: the PCR policy that one boot of a machine satisfies, from its event log. */
import { decodeEventLog } from '../../core/attestation/tpm/event-log.ts';
import { eventName } from '../../core/attestation/tpm/event-names.ts';
import { extended } from '../../core/encoding/pcr-extend.ts';
import { quoted } from '../../core/outcome/printable-text.ts';
import type { PcrPolicy } from '../../core/policy/profile.ts';
import { readBytes } from '../cluster/cluster-choice.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

/** Throws CommandFailure if the file is no event log, or has no event of a wanted PCR. */
export async function recordedPolicy(file: string, pcrs: readonly string[], io: Io): Promise<PcrPolicy> {
  for (const pcr of pcrs)
    // A node quotes no others.
    if (!/^[0-7]$/.test(pcr)) throw new CommandFailure(exitCodes.usage, `${quoted(pcr)} is not a PCR from 0 to 7`);
  const log = decodeEventLog(await readBytes(file, io));
  if (!log.ok)
    throw new CommandFailure(
      exitCodes.refused,
      `${file}: the event log ${log.problem}`,
      'root reads it on the machine in /sys/kernel/security/tpm0/binary_bios_measurements',
    );
  const values: Record<string, readonly string[]> = {};
  const events: Record<string, readonly (readonly string[])[]> = {};
  for (const pcr of pcrs) {
    const boot = log.value.events.filter((event) => event.pcr === Number(pcr));
    if (boot.length === 0) throw new CommandFailure(exitCodes.refused, `${file} has no event of PCR ${pcr}`);
    const digests = boot.map(({ digest }) => digest);
    values[pcr] = [extended(digests, pcr === '0' ? log.value.startupLocality : 0)];
    events[pcr] = [boot.map((event) => `${event.digest.toString('hex')} ${eventName(event)}`)];
  }
  return { bank: 'sha256', values, events };
}
