import { readEnvironment } from '../../adapters/lambda/environment.ts';
import type { LogLevel } from '../../adapters/lambda/log.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

/** What the infrastructure tells the sign function. Policy is not among it: that is in the bundle. */
export const environmentNames = {
  /** Must be the cluster whose rules are in the bundle. */
  cluster: 'COUNTERSIGN_CLUSTER',
  certificatesTable: 'COUNTERSIGN_CERTIFICATES_TABLE',
  /** JSON: KMS key ARN by CA name. */
  caKeys: 'COUNTERSIGN_CA_KEYS',
  /** Locks, of every cluster; also verdicts and machines. */
  attestationsTable: 'COUNTERSIGN_ATTESTATIONS_TABLE',
  /** Only where machines prove themselves. */
  attestFunction: 'COUNTERSIGN_ATTEST_FUNCTION',
  /** `info` (default), `warn` or `error`. */
  logLevel: 'COUNTERSIGN_LOG_LEVEL',
} as const;

export interface SignSettings {
  readonly certificatesTable: string;
  /** A KMS key ARN for each CA of the configuration. */
  readonly caKeys: ReadonlyMap<string, string>;
  readonly attestationsTable: string;
  /** Who makes verdicts: present exactly when a profile demands proof. */
  readonly attestFunction?: string;
  readonly logLevel: LogLevel;
}

export type ParsedSettings =
  { readonly ok: true; readonly settings: SignSettings } | { readonly ok: false; readonly problems: readonly string[] };

const keyArn = /^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key\/[A-Za-z0-9-]+$/;

/** Reads the environment and holds it against the rules in the bundle: what does not fit together must not serve. */
export function parseSettings(
  environment: Readonly<Record<string, string | undefined>>,
  cluster: ClusterConfiguration,
): ParsedSettings {
  const { problems, text, logLevel: level } = readEnvironment(environment, cluster, environmentNames.cluster);
  const certificatesTable = text(environmentNames.certificatesTable);
  const caKeys = keysByCa(text(environmentNames.caKeys));
  for (const ca of cluster.cas.keys())
    if (!keyArn.test(caKeys.get(ca) ?? ''))
      problems.push(`${environmentNames.caKeys} has no KMS key ARN for the CA ${ca}`);
  const proofs = wantsProof(cluster);
  const attestationsTable = text(environmentNames.attestationsTable);
  const attestFunction = proofs ? text(environmentNames.attestFunction) : '';
  const logLevel = level(environmentNames.logLevel);
  if (logLevel === undefined || problems.length > 0) return { ok: false, problems };
  return {
    ok: true,
    settings: { certificatesTable, attestationsTable, caKeys, ...(proofs ? { attestFunction } : {}), logLevel },
  };
}

/** Audited profiles are signed for without anybody's verdict. */
function wantsProof({ profiles }: ClusterConfiguration): boolean {
  return [...profiles.values()].some(({ attestation }) => attestation?.mode === 'enforce');
}

/** Whatever is wrong with it shows as a CA without a key. */
function keysByCa(json: string): ReadonlyMap<string, string> {
  try {
    const parsed: unknown = JSON.parse(json);
    const entries = typeof parsed === 'object' && parsed !== null ? Object.entries(parsed) : [];
    return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
  } catch {
    return new Map();
  }
}
