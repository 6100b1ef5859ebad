/**
 * Evidence changed at random: characters of its text, and values of its keys. Each is refused with a name, or the machine is the one
 * that signed. The same seed gives the same changes.
 */
import { awsNitroTpmProvider } from '../../../../core/attestation/aws-nitrotpm/provider.ts';
import { nick, runCampaign } from '../../../harness/determinism/campaign.ts';
import type { Attempt, Campaign, Random } from '../../../harness/determinism/campaign.ts';
import type { Violation } from '../../../../core/outcome/outcome.ts';
import * as ec2 from '../aws-machine.ts';
import { casesBySubject } from './cases.ts';
import { dataOf, judge } from './judge.ts';

const originals = [{}, casesBySubject['evidence']![1]!].map((one) => dataOf(one).toString());
const identity = `aws#aws/${ec2.account}/${ec2.region}/${ec2.instanceId}`;

function mutated(random: Random): string {
  const text = originals[random(originals.length)] ?? '';
  return random(3) === 0 ? nick(Buffer.from(text), random).toString('latin1') : changedValue(text, random);
}

/** Still JSON, so that the checks behind the schema are reached too. */
function changedValue(text: string, random: Random): string {
  const data = JSON.parse(text) as Record<string, unknown>;
  const keys = Object.keys(data);
  const key = keys[random(keys.length)] ?? '';
  const value = data[key];
  const inner = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : data;
  const innerKeys = inner === data ? [key] : Object.keys(inner);
  const chosen = innerKeys[random(innerKeys.length)] ?? '';
  const old = inner[chosen];
  const odd: readonly unknown[] = [undefined, null, 0, '', [], {}, true, data['instance'], data['ak'], 'ecc-sec-p384'];
  inner[chosen] =
    typeof old === 'string' && old.length > 0 && random(4) > 0 ? nicked(old, random) : odd[random(odd.length)];
  return JSON.stringify(data);
}

/** Within its alphabet: what is encoded changes, and not its encoding. */
function nicked(text: string, random: Random): string {
  const at = random(text.length);
  const other = text[random(text.length)] ?? '';
  return text.slice(0, at) + other + text.slice(at + 1);
}

async function attempt(random: Random): Promise<Attempt> {
  const { outcome, machine } = await judge(awsNitroTpmProvider, { name: '' }, Buffer.from(mutated(random)));
  if (machine !== undefined)
    return { violations: [], ...(machine.identity === identity ? {} : { fault: `is ${machine.identity}` }) };
  const [code = '', message = ''] = outcome.split(/: (.*)/s);
  return { violations: [{ code, message } as Violation] };
}

export function runNitroTpmCampaign(seed: number, count: number): Promise<Campaign> {
  return runCampaign(seed, count, attempt);
}
