/**
 * Evidence of a VM changed at random: the DATA block, one part of the token, one value of its claims; and claims that Google signed with
 * the change in them, so that what is behind the signature is reached too. The same seed gives the same changes.
 */
import { gceProvider } from '../../../../core/attestation/gce/provider.ts';
import { nick, runCampaign } from '../../../harness/determinism/campaign.ts';
import type { Attempt, Campaign, Random } from '../../../harness/determinism/campaign.ts';
import { claimsOf, writeToken } from '../../../harness/fake-google/identity-token.ts';
import type { Claims } from '../../../harness/fake-google/identity-token.ts';
import { dataOf, evidenceOf, portsOf, tokenOf } from './judge.ts';
import * as world from './machine.ts';

const odd: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1e308,
  2 ** 53,
  '',
  '*',
  '../x',
  'worker-2',
  '424242424243',
  4242,
  [],
  {},
  [world.audience()],
  world.now / 1_000 + 61,
  world.now / 1_000 - 300,
];

/** One value, at any depth, replaced by an odd one or left out. */
function reworded(claims: Claims, random: Random): Claims {
  const entries = Object.entries(claims);
  const at = random(entries.length);
  return Object.fromEntries(
    entries.flatMap(([key, value], index) => {
      if (index !== at) return [[key, value] as const];
      if (typeof value === 'object' && value !== null && !Array.isArray(value) && random(4) > 0)
        return [[key, reworded(value as Claims, random)] as const];
      return random(4) === 0 ? [] : [[key, odd[random(odd.length)]] as const];
    }),
  );
}

const usualClaims = claimsOf(world.vm, world.audience(), world.now - 20_000);
const usualToken = tokenOf({});
const usualData = dataOf({});
/** Signs nothing, unlike `dataOf`. */
const dataWith = (token: string): Buffer => Buffer.from(JSON.stringify({ v: 1, token, nonce: world.nonce }));

/** `isSigned`: Google signed the changed claims. */
function mutated(random: Random): { readonly data: Buffer; readonly isSigned: boolean } {
  switch (random(6)) {
    case 0:
      return { data: nick(usualData, random), isSigned: false };
    case 1: {
      const parts = usualToken.split('.');
      const at = random(parts.length);
      const changed = nick(Buffer.from(parts[at] ?? '', 'base64url'), random).toString('base64url');
      return { data: dataWith(parts.with(at, changed).join('.')), isSigned: false };
    }
    case 2:
      return {
        data: dataWith(nick(Buffer.from(usualToken), random).toString('latin1')),
        isSigned: false,
      };
    case 3: {
      const text = nick(Buffer.from(JSON.stringify(usualClaims)), random).toString('latin1');
      return { data: dataOf({ claimsText: () => text }), isSigned: true };
    }
    case 4: {
      const header = reworded({ alg: 'RS256', kid: 'google-1', typ: 'JWT', jku: 'https://evil.example' }, random);
      const token = writeToken({ claims: usualClaims, key: world.keys.google, header: JSON.stringify(header) });
      return { data: dataWith(token), isSigned: true };
    }
    default: {
      const token = writeToken({ claims: reworded(usualClaims, random), key: world.keys.google });
      return { data: dataWith(token), isSigned: true };
    }
  }
}

const provider = gceProvider(world.policy, portsOf({}, []));

async function attempt(random: Random): Promise<Attempt> {
  const { data, isSigned } = mutated(random);
  const examined = await provider.examine(evidenceOf(data));
  const answer = examined.ok ? await examined.value.verify() : examined;
  if (!answer.ok) return { violations: answer.problem };
  // What Google signs may say anything of a VM, but never of one whose project is not that of the policy.
  const isRight =
    answer.value.identity.startsWith(`gce#${world.vm.projectNumber}/`) && (isSigned || statesTheSame(data));
  return { violations: [], ...(isRight ? {} : { fault: `accepted ${answer.value.identity}` }) };
}

export function runGceCampaign(seed: number, count: number): Promise<Campaign> {
  return runCampaign(seed, count, attempt);
}

/** A change of blanks, of the unused bits of a signature's last character, or none. */
function statesTheSame(data: Buffer): boolean {
  const { token } = JSON.parse(data.toString()) as { readonly token: string };
  const [head, body, signature = ''] = token.split('.');
  const [usualHead, usualBody, usualSignature = ''] = usualToken.split('.');
  const sameBytes = Buffer.from(signature, 'base64url').equals(Buffer.from(usualSignature, 'base64url'));
  return head === usualHead && body === usualBody && sameBytes;
}
