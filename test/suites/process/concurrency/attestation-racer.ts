/** One process of the race over one file: looks when told to, says so, and claims when told to. */
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import type { Claim, ClaimResult, Lookup, LookupResult } from '../../../../core/ports/attestation-store.ts';
import { now } from '../../../contract/attestation-scene.ts';

export type ToRacer = { readonly look: Lookup } | { readonly claim: Claim } | { readonly mac: string };
/** Over the channel `undefined` in lists becomes null. */
export type FromRacer =
  | { readonly seen: LookupResult }
  | { readonly wrote: ClaimResult }
  /** Hex. */
  | { readonly mac: string }
  | { readonly failed: string };

const { store, challengeKey } = openEmbeddedAttestations(process.argv[2] ?? '');

async function answer(message: ToRacer): Promise<FromRacer> {
  try {
    if ('mac' in message) {
      const mac = await challengeKey.mac(Buffer.from(message.mac));
      return { mac: Buffer.from(mac).toString('hex') };
    }
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
// The parent process is gone.
process.on('disconnect', () => process.exit());
