/**
 * The PCR policy of a profile. A refusal names each PCR that differs and, if the profile has a recorded boot and the machine sent the
 * digests of its events, the first event that differs. The quote proves these digests, or they are not looked at. A digest does not
 * cover the name of its event, so names come from the profile, never from the machine.
 */
import { leadsTo } from '../../encoding/pcr-extend.ts';
import type { PcrPolicy } from '../../policy/profile.ts';
import type { VerifiedQuote } from './quote.ts';

/** TCG PC Client Platform Firmware Profile, §3.3.4: what is measured into each PCR. */
const measured: readonly string[] = [
  'firmware code',
  'firmware configuration',
  'option ROM code',
  'option ROM configuration',
  'boot loader code',
  'boot loader configuration and partition table',
  'platform manufacturer events',
  'Secure Boot policy',
];

/** Why the machine may not join in its state; `undefined` if the policy permits it. A whole sentence without its stop. */
export function checkPcrs(policy: PcrPolicy, quote: Pick<VerifiedQuote, 'pcrs' | 'events'>): string | undefined {
  const wrong: string[] = [];
  for (const [pcr, permitted] of Object.entries(policy.values)) {
    const bytes = quote.pcrs?.get(Number(pcr));
    if (bytes === undefined) return `the profile permits values of PCR ${pcr}, and the evidence does not hold it`;
    const value = Buffer.from(bytes).toString('hex');
    if (!permitted.includes(value)) wrong.push(describePcr(Number(pcr), value, policy, quote.events));
  }
  return wrong.length === 0 ? undefined : `the profile does not permit the value of ${wrong.join(', ')}`;
}

function describePcr(pcr: number, value: string, policy: PcrPolicy, events: VerifiedQuote['events']): string {
  const digests = events.get(pcr) ?? [];
  const boots = policy.events?.[pcr] ?? [];
  const change = leadsTo(value, pcr, digests) ? firstChange(boots, digests) : undefined;
  const notes = [measured[pcr], change].filter((note) => note !== undefined);
  return notes.length === 0 ? `PCR ${pcr}` : `PCR ${pcr} (${notes.join('; ')})`;
}

/** Compared with the recorded boot that has the most events in common from the first on. */
function firstChange(boots: readonly (readonly string[])[], digests: readonly Uint8Array[]): string | undefined {
  const sent = digests.map((digest) => Buffer.from(digest).toString('hex'));
  const compared = boots.map((boot) => {
    const differs = boot.findIndex((event, index) => event.slice(0, 64) !== sent[index]);
    return { boot, same: differs === -1 ? boot.length : differs };
  });
  const [closest] = compared.toSorted((one, other) => other.same - one.same);
  if (closest === undefined) return undefined;
  const { boot, same } = closest;
  const recorded = boot[same]?.slice(65);
  // Of PCR 0 the same events lead to another value if the measurement began at another locality.
  if (recorded === undefined && same === sent.length) return undefined;
  if (recorded === undefined) return `event ${same + 1} was not recorded`;
  return same < sent.length
    ? `event ${same + 1} is not the recorded ${recorded}`
    : `event ${same + 1}, ${recorded}, is missing`;
}
