/** Puts one case to the gce provider, from the evidence as sent to the machine as told. */
import type { AttestationProvider, Machine } from '../../../../core/attestation/evidence/provider.ts';
import type { GcePorts } from '../../../../core/attestation/gce/provider.ts';
import type { VmDescription } from '../../../../core/attestation/google/compute.ts';
import type { GceAttestation } from '../../../../core/configuration/providers/gce.ts';
import { claimsOf, writeToken } from '../../../harness/fake-google/identity-token.ts';
import type { Claims, SignedToken } from '../../../harness/fake-google/identity-token.ts';
import { hasEndedAs, refused } from '../expected.ts';
import type { Expected } from '../expected.ts';
import * as world from './machine.ts';

/** What differs from the one good request; what is absent is as the true VM has it. */
export interface Case extends Partial<Pick<SignedToken, 'key' | 'header' | 'signature'>> {
  readonly name: string;
  readonly expect: Expected;
  /** Besides or instead; `undefined` leaves one out. */
  readonly claims?: Claims;
  /** Of `google.compute_engine`, alike. */
  readonly engine?: Claims;
  readonly claimsText?: (usual: string) => string;
  readonly token?: (usual: string) => unknown;
  /** Of the DATA block, alike. */
  readonly data?: Claims;
  readonly dataText?: (text: string) => string;
  readonly policy?: Partial<GceAttestation>;
  readonly keySet?: unknown;
  readonly vm?: Partial<VmDescription> | 'notFound';
  /** How many calls to Google, where the case is about them. */
  readonly calls?: number;
  /** Where it is accepted. */
  readonly machine?: Partial<Machine>;
}

export interface Judged {
  /** `accepted`, or the code and every message. */
  readonly outcome: string;
  readonly machine?: Machine;
  readonly once?: readonly { readonly kind: string; readonly id: string; readonly expiresAt: number }[];
  readonly machines?: readonly string[];
  /** `keys`, `describe <place>`. */
  readonly asked: readonly string[];
}

type ProviderOf = (policy: GceAttestation, ports: GcePorts) => AttestationProvider;

export function tokenOf(one: Omit<Case, 'name' | 'expect'>): string {
  const usual = claimsOf(world.vm, world.audience(), world.now - 20_000);
  const { compute_engine: engine } = usual['google'] as { readonly compute_engine: Claims };
  const claims = { ...usual, google: { compute_engine: { ...engine, ...one.engine } }, ...one.claims };
  const { key = world.keys.google, header, signature } = one;
  return writeToken({
    claims: one.claimsText?.(JSON.stringify(claims)) ?? claims,
    key,
    ...(header === undefined ? {} : { header }),
    ...(signature === undefined ? {} : { signature }),
  });
}

/** The DATA block of a case. */
export function dataOf(one: Omit<Case, 'name' | 'expect'>): Buffer {
  const token = tokenOf(one);
  const data = { v: 1, token: one.token === undefined ? token : one.token(token), nonce: world.nonce, ...one.data };
  const text = JSON.stringify(data);
  return Buffer.from(one.dataText?.(text) ?? text);
}

export const evidenceOf = (data: Uint8Array, now = world.now) => ({
  version: 'gce/v1',
  data,
  request: undefined as never,
  nodeName: world.vm.name,
  clusterName: 'blue',
  binding: world.binding,
  now,
});

/** Google, as the case has it; `asked` collects the calls. */
export function portsOf({ vm = {}, keySet = world.keySet }: Pick<Case, 'vm' | 'keySet'>, asked: string[]): GcePorts {
  return {
    keySet: () => {
      asked.push('keys');
      return Promise.resolve(keySet);
    },
    compute: {
      describeInstance: ({ projectNumber, zone, instanceId }) => {
        asked.push(`describe ${projectNumber}/${zone}/${instanceId}`);
        return Promise.resolve(vm === 'notFound' ? vm : { ...world.described, ...vm });
      },
      signingKey: () => Promise.reject(new Error('this provider asks for no signing key')),
    },
  };
}

export async function judge(gceProvider: ProviderOf, one: Case, data: Uint8Array = dataOf(one)): Promise<Judged> {
  const asked: string[] = [];
  try {
    const provider = gceProvider({ ...world.policy, ...one.policy }, portsOf(one, asked));
    const examined = await provider.examine(evidenceOf(data));
    if (examined.ok && asked.length > 0) return { outcome: 'crash: examine asked Google', asked };
    const answer = examined.ok ? await examined.value.verify() : examined;
    if (!answer.ok) return { outcome: refused(answer.problem), asked };
    if (!examined.ok) return { outcome: refused(examined.problem), asked };
    const { once, machines } = examined.value;
    return { outcome: 'accepted', machine: answer.value, once, machines, asked };
  } catch (error) {
    const { name, message } = error as Error;
    return { outcome: `${name === 'Error' ? 'temporary' : 'crash'}: ${message}`, asked };
  }
}

/** Whether a case ended as it says it must. */
export function isAsExpected({ expect, calls }: Case, { outcome, asked }: Pick<Judged, 'outcome' | 'asked'>): boolean {
  if (calls !== undefined && asked.length !== calls) return false;
  return hasEndedAs(expect, outcome);
}
