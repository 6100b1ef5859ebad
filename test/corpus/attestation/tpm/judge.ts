/** Puts one case to the provider: from the evidence as sent to the machine as told, and to the answer to its challenge. */
import { createHmac } from 'node:crypto';
import type { TpmPorts } from '../../../../core/attestation/tpm/ports.ts';
import type { AttestationProvider, Machine } from '../../../../core/attestation/evidence/provider.ts';
import type { TpmAttestation } from '../../../../core/configuration/providers/tpm.ts';
import type { PcrPolicy } from '../../../../core/policy/profile.ts';
import type { MachineEntry } from '../../../../core/ports/attestation-store.ts';
import { hasEndedAs, refused } from '../expected.ts';
import type { Expected } from '../expected.ts';
import * as world from './machine.ts';
import type { Json } from './machine.ts';

/** What differs from the one good request; what is absent is as the true machine has it. */
export interface Case {
  readonly name: string;
  readonly expect: TpmExpected;
  /** Besides or instead; `undefined` leaves one out. */
  readonly data?: Json;
  readonly text?: (text: string) => string;
  readonly policy?: Partial<TpmAttestation>;
  readonly pcrs?: PcrPolicy;
  /** What the operator's list has under the name of the machine. */
  readonly entry?: Partial<MachineEntry>;
  readonly now?: number;
  readonly audience?: string;
  readonly ports?: Partial<TpmPorts>;
}

/** `activated`: accepted, and the answer to a challenge is in the evidence. */
export type TpmExpected = Expected<'accepted' | 'activated'>;

export interface Judged {
  /** `accepted`, `activated`, or the code and every message. */
  readonly outcome: string;
  readonly machine?: Machine;
  readonly once?: readonly Json[];
  /** What was asked of the list of machines, and how often of the challenge key. */
  readonly asked: readonly string[];
}

export type ProviderOf = (policy: TpmAttestation, audience: string, ports: TpmPorts) => AttestationProvider;

export async function judge(tpmProvider: ProviderOf, one: Case): Promise<Judged> {
  const asked: string[] = [];
  const ports: TpmPorts = {
    challengeKey: {
      mac: (message) => {
        asked.push('mac');
        return Promise.resolve(createHmac('sha256', 'K').update(message).digest());
      },
    },
    randomBytes: (count) => Buffer.alloc(count, 0x5a),
    findMachine: (name) => {
      asked.push(name === world.entry.name ? 'list' : `list: ${name}`);
      return Promise.resolve(one.entry === undefined ? undefined : { ...world.entry, ...one.entry });
    },
    ...one.ports,
  };
  try {
    const provider = tpmProvider({ ...world.policy, ...one.policy }, one.audience ?? world.audience, ports);
    const examined = await provider.examine({
      version: 'tpm/v1',
      data: dataOf(one),
      request: undefined as never,
      nodeName: 'worker-3',
      clusterName: 'blue',
      binding: world.binding,
      ...(one.pcrs === undefined ? {} : { pcrs: one.pcrs }),
      now: one.now ?? world.now,
    });
    const answer = examined.ok ? await examined.value.verify() : examined;
    if (!answer.ok) return { outcome: refused(answer.problem), asked };
    const { once } = examined.ok ? examined.value : { once: [] };
    const outcome = answer.value.device?.activated === true ? 'activated' : 'accepted';
    return { outcome, machine: answer.value, once: once as never, asked };
  } catch (error) {
    const { name, message } = error as Error;
    // What only a mistake can throw is told apart from what says "later".
    return {
      outcome: `${['Error', 'MisconfigurationError'].includes(name) ? 'temporary' : 'crash'}: ${message}`,
      asked,
    };
  }
}

/** The DATA block of a case. */
export function dataOf({ data, text = (same) => same }: Pick<Case, 'data' | 'text'>): Buffer {
  return Buffer.from(text(JSON.stringify({ ...world.good, ...data })));
}

/** Whether a case ended as it says it must. */
export function isAsExpected({ expect }: Case, { outcome }: Pick<Judged, 'outcome'>): boolean {
  return hasEndedAs(expect, outcome);
}
