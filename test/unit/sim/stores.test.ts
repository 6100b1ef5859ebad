/** What the simulator calls a store is held to the same sentences as the stores that are used. */
import { attestationStoreContract } from '../../contract/attestation-store.ts';
import { certificateLedgerContract } from '../../contract/certificate-ledger.ts';
import { createSimulatedAttestations } from '../../sim/ports/attestations.ts';
import { createSimulatedLedger } from '../../sim/ports/ledger.ts';

certificateLedgerContract('simulated', async () => {
  const ledger = createSimulatedLedger();
  return { ledger, reopen: async () => ledger, other: createSimulatedLedger(), close: async () => {} };
});

attestationStoreContract('simulated', async () => {
  const made = createSimulatedAttestations();
  return {
    ...made,
    other: createSimulatedAttestations().store,
    reopen: async () => made,
    giveName: async (nodeName, identity) => made.giveName(nodeName, identity),
    close: async () => {},
  };
});
