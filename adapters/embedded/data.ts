import { join } from 'node:path';

/**
 * Where one cluster's state lies under a data folder: its ledger, what attestation remembers, and beside them a folder for each CA, where
 * `countersign ca show --data <data folder>/<cluster>` finds them.
 */
export function embeddedData(
  dataFolder: string,
  cluster: string,
): { readonly ledgerFile: string; readonly attestationsFile: string; readonly caFolder: string } {
  // Cluster names are DNS labels (core/configuration/schema/cluster.ts); this is where any other would leave the folder.
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(cluster)) throw new Error('a cluster name is a DNS label');
  const folder = join(dataFolder, cluster);
  return {
    ledgerFile: join(folder, 'ledger.sqlite'),
    attestationsFile: attestationsFileIn(folder),
    caFolder: folder,
  };
}

/** `folder`: one cluster's. */
export function attestationsFileIn(folder: string): string {
  return join(folder, 'attestations.sqlite');
}
