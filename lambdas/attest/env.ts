import { readEnvironment } from '../../adapters/lambda/environment.ts';
import type { Environment } from '../../adapters/lambda/environment.ts';
import type { LogLevel } from '../../adapters/lambda/log.ts';
import { needsChallengeKey } from '../../core/attestation/providers.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';

export interface AttestSettings {
  readonly attestationsTable: string;
  /** ARN; present exactly if a provider of the cluster sends challenges. */
  readonly challengeKey?: string;
  readonly logLevel: LogLevel;
}

/** Throws MisconfigurationError with every problem. */
export function readSettings(environment: Environment, cluster: ClusterConfiguration): AttestSettings {
  const needsKey = cluster.attestation !== undefined && needsChallengeKey(cluster.attestation);
  return readEnvironment(environment, cluster, ({ text, keyArn, logLevel }) => ({
    attestationsTable: text('attestationsTable'),
    ...(needsKey ? { challengeKey: keyArn('challengeKey') } : {}),
    logLevel: logLevel(),
  }));
}
