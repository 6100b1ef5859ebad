/** Puts one case to the x509 provider, from the evidence as sent to the machine as told. */
import type { KeyObject } from 'node:crypto';
import type { AttestationProvider, Machine } from '../../../../core/attestation/evidence/provider.ts';
import type { X509Attestation, X509Rule } from '../../../../core/configuration/providers/x509.ts';
import { keyOf } from '../../../harness/x509/certificate-writer.ts';
import { hasEndedAs, refused } from '../expected.ts';
import type { Expected } from '../expected.ts';
import * as world from './machine.ts';

/** What differs from the one good request; what is absent is as the true machine has it. */
export interface Case {
  readonly name: string;
  readonly expect: Expected<'accepted', 'AttestationInvalid' | 'IdentityNotAllowed'>;
  readonly chain?: readonly Buffer[];
  readonly key?: KeyObject;
  readonly nonce?: string;
  /** What is signed. */
  readonly content?: (nonce: string) => Buffer;
  readonly signature?: (usual: Buffer) => Buffer;
  /** Besides or instead; `undefined` leaves one out. */
  readonly data?: Readonly<Record<string, unknown>>;
  readonly dataText?: (text: string) => string;
  readonly policy?: Partial<X509Attestation>;
  readonly rule?: Partial<X509Rule>;
  /** Where it is accepted. */
  readonly machine?: Partial<Machine>;
}

export interface Judged {
  /** `accepted`, or the code and every message. */
  readonly outcome: string;
  readonly machine?: Machine;
  readonly once?: readonly { readonly kind: string; readonly id: string; readonly expiresAt: number }[];
}

type ProviderOf = (policy: X509Attestation) => AttestationProvider;

export function policyOf({ policy = {}, rule }: Pick<Case, 'policy' | 'rule'>): X509Attestation {
  return { ...world.policy, ...(rule === undefined ? {} : { rules: [{ ...world.rule, ...rule }] }), ...policy };
}

/** The DATA block of a case. */
export function dataOf(one: Omit<Case, 'name' | 'expect'>): Buffer {
  const {
    chain = [world.certificates.leaf, world.certificates.intermediate],
    key = keyOf('machine'),
    nonce = world.nonceAt(world.now - 20_000),
    content = world.contentFor,
  } = one;
  const usual = world.signatureOver(content(nonce), key);
  const data = {
    v: 1,
    chain: chain.map((der) => der.toString('base64')),
    signature: (one.signature?.(usual) ?? usual).toString('base64'),
    algorithm: world.algorithmOf(key).label,
    nonce,
    ...one.data,
  };
  const text = JSON.stringify(data);
  return Buffer.from(one.dataText?.(text) ?? text);
}

export const evidenceOf = (data: Uint8Array) => ({
  version: 'x509/v1',
  data,
  request: undefined as never,
  nodeName: world.nodeName,
  clusterName: 'blue',
  binding: world.binding,
  now: world.now,
});

export async function judge(x509Provider: ProviderOf, one: Case, data: Uint8Array = dataOf(one)): Promise<Judged> {
  try {
    const examined = await x509Provider(policyOf(one)).examine(evidenceOf(data));
    const answer = examined.ok ? await examined.value.verify() : examined;
    if (!answer.ok) return { outcome: refused(answer.problem) };
    if (!examined.ok) return { outcome: refused(examined.problem) };
    return { outcome: 'accepted', machine: answer.value, once: examined.value.once };
  } catch (error) {
    return { outcome: `crash: ${(error as Error).message}` };
  }
}

/** Whether a case ended as it says it must. */
export function isAsExpected({ expect }: Case, { outcome }: Pick<Judged, 'outcome'>): boolean {
  return hasEndedAs(expect, outcome);
}
