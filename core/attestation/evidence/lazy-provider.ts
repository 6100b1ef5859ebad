/**
 * A provider that is loaded when the first request with its evidence arrives. A cluster may take evidence of several providers,
 * and a library that verifies certificate chains costs each start of the attest function.
 */
import type { AttestationProvider } from './provider.ts';

/** `facts`: what is known of the provider before it is loaded; the loaded provider has the same. */
export function lazyProvider(
  facts: Omit<AttestationProvider, 'examine' | 'describe'>,
  load: () => Promise<AttestationProvider>,
): AttestationProvider {
  let loaded: Promise<AttestationProvider> | undefined;
  const provider = () => (loaded ??= load());
  return {
    ...facts,
    examine: async (evidence) => (await provider()).examine(evidence),
    describe: async (identity, now) => (await provider()).describe(identity, now),
  };
}
