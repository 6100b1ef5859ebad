/** One process of the race over one file: looks when told to, says so, and claims when told to. */
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import type { Claim, ClaimResult, Lookup, LookupResult } from '../../../../core/ports/attestation-store.ts';
import { now } from '../../../contract/attestation-scene.ts';

export type ToRacer = { readonly look: Lookup } | { readonly claim: Claim };
/** Over the channel `undefined` in lists becomes null. */
export type FromRacer = { readonly seen: LookupResult } | { readonly wrote: ClaimResult } | { readonly failed: string };

const { store } = openEmbeddedAttestations(process.argv[2] ?? '');

async function answer(message: ToRacer): Promise<FromRacer> {
  try {
    return 'look' in message
      ? { seen: await store.lookup(message.look) }
      : { wrote: await store.claim(message.claim, now) };
  } catch (error) {
    return { failed: String(error) };
  }
}

process.on('message', (message: ToRacer) => {
  void answer(message).then((reply) => process.send?.(reply));
});
// Whoever started us is gone.
process.on('disconnect', () => process.exit());
