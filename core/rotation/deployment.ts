/** The CAs and profiles of a cluster, as they are deployed: what a rotation knows besides the ledger and the cluster itself. */
import type { CaRecord } from '../ca/authority.ts';
import type { CaConfiguration, ClusterConfiguration } from '../configuration/model/cluster.ts';
import type { Profile } from '../policy/profile.ts';

export interface RotatingCa {
  readonly name: string;
  /** Absent: it is not in the deployed countersign.yaml any more. */
  readonly configuration?: CaConfiguration;
  /** Absent: it is not in force. */
  readonly record?: Pick<CaRecord, 'keyId' | 'certificate' | 'chain'>;
  /** Why it is not in force. */
  readonly fault?: string;
}

export type RotatingProfile = Pick<Profile, 'signerName' | 'kind' | 'ca' | 'maxTtlSeconds'>;

export interface Deployment {
  readonly cluster: string;
  readonly cas: readonly RotatingCa[];
  readonly profiles: readonly RotatingProfile[];
}

/** `find`: what is stored of a CA, also of one that is configured no more. `asked`: such a CA, or one of the configuration. */
export async function deploymentOf(
  { name: cluster, cas, profiles }: Pick<ClusterConfiguration, 'name' | 'cas' | 'profiles'>,
  asked: string,
  find: (name: string, configuration?: CaConfiguration) => Promise<Pick<RotatingCa, 'record' | 'fault'>>,
): Promise<Deployment> {
  const found: RotatingCa[] = [];
  for (const name of new Set([...cas.keys(), asked])) {
    const configuration = cas.get(name);
    const stored = await find(name, configuration);
    if (configuration !== undefined) found.push({ name, configuration, ...stored });
    else if (stored.record !== undefined) found.push({ name, ...stored });
  }
  const shown = [...profiles.values()].map(({ signerName, kind, ca, maxTtlSeconds }) => ({
    signerName,
    kind,
    ca,
    maxTtlSeconds,
  }));
  return { cluster, cas: found, profiles: shown };
}

/** The form of an answer in JSON: certificates in base64. */
type Encoded<T> = T extends Uint8Array ? string : T extends object ? { [P in keyof T]: Encoded<T[P]> } : T;
export type EncodedDeployment = Encoded<Deployment>;

export function encodeDeployment(deployment: Deployment): EncodedDeployment {
  const encode = (der: Uint8Array): string => Buffer.from(der).toString('base64');
  const cas = deployment.cas.map(({ record, ...ca }) => {
    if (record === undefined) return ca;
    const { keyId, certificate, chain } = record;
    return { ...ca, record: { keyId, certificate: encode(certificate), chain: chain.map(encode) } };
  });
  return { ...deployment, cas };
}

/** Reads what `encodeDeployment` of the same release wrote. */
export function decodeDeployment(encoded: EncodedDeployment): Deployment {
  const decode = (base64: string): Uint8Array => new Uint8Array(Buffer.from(base64, 'base64'));
  const cas = encoded.cas.map(({ record, ...ca }) => {
    if (record === undefined) return ca;
    const { keyId, certificate, chain } = record;
    return { ...ca, record: { keyId, certificate: decode(certificate), chain: chain.map(decode) } };
  });
  return { ...encoded, cas };
}
