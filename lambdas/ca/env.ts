import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';

/** The environment variables of the ca function. The CAs themselves are configured in the bundle. */
export const environmentNames = {
  /** Must be the cluster of the bundled configuration. */
  cluster: 'COUNTERSIGN_CLUSTER',
  certificatesTable: 'COUNTERSIGN_CERTIFICATES_TABLE',
  /** JSON: KMS key ARN by CA name. */
  caKeys: 'COUNTERSIGN_CA_KEYS',
} as const;

export interface CaSettings {
  readonly certificatesTable: string;
  /** A KMS key ARN for each CA of the configuration. */
  readonly caKeys: ReadonlyMap<string, string>;
}

const keyArn = /^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key\/[A-Za-z0-9-]+$/;

/** Throws MisconfigurationError with every problem. */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
  cluster: ClusterConfiguration,
): CaSettings {
  const [name, certificatesTable = ''] = [
    environment[environmentNames.cluster],
    environment[environmentNames.certificatesTable],
  ];
  const caKeys = keysByCa(environment[environmentNames.caKeys] ?? '');
  const keyless = [...cluster.cas.keys()].filter((ca) => !keyArn.test(caKeys.get(ca) ?? ''));
  const problems = [
    ...(name === cluster.name
      ? []
      : [`${environmentNames.cluster} is not ${cluster.name}, the cluster of the bundled configuration`]),
    ...(certificatesTable === '' ? [`${environmentNames.certificatesTable} is not set`] : []),
    ...keyless.map((ca) => `${environmentNames.caKeys} has no KMS key ARN for the CA ${ca}`),
  ];
  if (problems.length > 0) throw new MisconfigurationError(problems.join('; '));
  return { certificatesTable, caKeys };
}

/** Malformed JSON gives no keys: the caller then reports the CAs without a key. */
function keysByCa(json: string): ReadonlyMap<string, string> {
  try {
    const parsed: unknown = JSON.parse(json);
    const entries = typeof parsed === 'object' && parsed !== null ? Object.entries(parsed) : [];
    return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
  } catch {
    return new Map();
  }
}
