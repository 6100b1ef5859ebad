import { join } from 'node:path';

/**
 * The paths of a cluster's state in a data folder: its ledger, its attestation records, and one folder for each CA, where
 * `countersign ca show --data <data folder>/<cluster>` finds it.
 */
export function embeddedData(
  dataFolder: string,
  cluster: string,
): {
  readonly ledgerFile: string;
  readonly attestationsFile: string;
  readonly revocationsFile: string;
  readonly caFolder: string;
} {
  // Cluster names are DNS labels (core/configuration/schema/cluster.ts); another name could lead out of the folder.
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(cluster)) throw new Error('a cluster name is a DNS label');
  const folder = join(dataFolder, cluster);
  return {
    ledgerFile: ledgerFileIn(folder),
    attestationsFile: attestationsFileIn(folder),
    revocationsFile: revocationsFileIn(folder),
    caFolder: folder,
  };
}

/** `folder`: the folder of one cluster. */
export function ledgerFileIn(folder: string): string {
  return join(folder, 'ledger.sqlite');
}

/** `folder`: the folder of one cluster. */
export function attestationsFileIn(folder: string): string {
  return join(folder, 'attestations.sqlite');
}

/** `folder`: the folder of one cluster. */
export function revocationsFileIn(folder: string): string {
  return join(folder, 'revocations.sqlite');
}
