/** Evidence that is none (Cluster API's proposal): whoever comes first under a node name is that node. */
import { evidenceVersions } from '../settings/settings.ts';
import type { NodeProviderPort } from './provider.ts';

/** It never grows old; asking anew now and then costs nobody anything and finds a request that got lost. */
const staleAfterMilliseconds = 3_600_000;

export function insecureProvider(nodeName: string): NodeProviderPort {
  return {
    versions: evidenceVersions.insecure,
    renews: false,
    // All providers must name the machine (Cluster API's proposal); this one believes whatever it is called.
    describe: () => Promise.resolve({ providerId: `insecure:///${nodeName}`, names: [] }),
    makeEvidence: ({ now }) =>
      Promise.resolve({ data: JSON.stringify({ v: 1 }), staleAt: now + staleAfterMilliseconds }),
  };
}
