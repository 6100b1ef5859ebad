/** Empty evidence (Cluster API's proposal): the first machine that requests a node name gets it. */
import { evidenceVersions } from '../settings/settings.ts';
import type { NodeProviderPort } from './provider.ts';

/** The evidence does not expire, but a new request once an hour replaces one that was lost. */
const staleAfterMilliseconds = 3_600_000;

export function insecureProvider(nodeName: string): NodeProviderPort {
  return {
    versions: evidenceVersions.insecure,
    renews: false,
    // Every provider must name the machine (Cluster API's proposal). This one uses the node name, unverified.
    describe: () => Promise.resolve({ providerId: `insecure:///${nodeName}`, names: [] }),
    makeEvidence: ({ now }) =>
      Promise.resolve({ data: JSON.stringify({ v: 1 }), staleAt: now + staleAfterMilliseconds }),
  };
}
