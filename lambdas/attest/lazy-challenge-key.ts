import type { ChallengeKey } from '../../core/ports/challenge-key.ts';

/** The client of KMS is loaded with the first challenge, since each client delays the start of the function. */
export function lazyChallengeKey(load: () => Promise<ChallengeKey>): ChallengeKey {
  let loaded: Promise<ChallengeKey> | undefined;
  return { mac: async (message) => (await (loaded ??= load())).mac(message) };
}
