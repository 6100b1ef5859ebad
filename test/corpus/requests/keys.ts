import { newKey } from '../../harness/x509/requests.ts';
import type { TestKey } from '../../harness/x509/requests.ts';
import type { Random } from './random.ts';

/** Every kind of key that the profiles of the kubernetes.io signers permit. */
export const corpusKeyKinds = ['RSA-2048', 'RSA-3072', 'RSA-4096', 'P-256', 'P-384', 'P-521', 'Ed25519'] as const;
export type CorpusKeyKind = (typeof corpusKeyKinds)[number];

/** A few of each, made when first asked for: RSA keys take up to seconds. */
export interface KeyPool {
  take(kind: CorpusKeyKind, random: Random): TestKey;
}

const poolSizes: Readonly<Record<CorpusKeyKind, number>> = {
  'RSA-2048': 3,
  'RSA-3072': 1,
  'RSA-4096': 1,
  'P-256': 5,
  'P-384': 5,
  'P-521': 5,
  Ed25519: 5,
};

export function createKeyPool(): KeyPool {
  const pool = new Map<string, TestKey>();
  return {
    take(kind, random) {
      const slot = `${kind}/${random.int(poolSizes[kind])}`;
      const key = pool.get(slot) ?? newKey(kind);
      pool.set(slot, key);
      return key;
    },
  };
}
