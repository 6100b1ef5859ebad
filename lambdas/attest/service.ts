/** The attest handler of one cluster over its table and what it may see of AWS. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { dynamoDbAttestations } from '../../adapters/dynamodb-attestations.ts';
import type { HttpHandler } from '../../adapters/lambda-http.ts';
import type { CallLogEntry } from '../../adapters/lambda-log.ts';
import type { AwsPorts } from '../../core/attestation/aws-endpoints.ts';
import { createProviders } from '../../core/attestation/providers.ts';
import type { ClusterConfiguration } from '../../core/configuration.ts';
import { MisconfigurationError } from '../../core/ports.ts';
import type { Instant } from '../../core/ports.ts';
import type { AttestSettings } from './env.ts';
import { createAttestHandler } from './handler.ts';

export interface AttestWorld {
  readonly dynamodb: DynamoDBClient;
  readonly aws: AwsPorts;
  readonly now: () => Instant;
  /** Cryptographically strong. */
  readonly randomBytes: (count: number) => Uint8Array;
  readonly log: (entry: CallLogEntry) => void;
}

export function createAttestService(
  cluster: ClusterConfiguration,
  { attestationsTable }: Omit<AttestSettings, 'logLevel'>,
  { dynamodb, aws, now, randomBytes, log }: AttestWorld,
): HttpHandler {
  if (cluster.attestation === undefined) throw new MisconfigurationError('there are no rules about attestation');
  const attestation = Promise.resolve({
    store: dynamoDbAttestations({ client: dynamodb, tableName: attestationsTable, randomBytes }),
    providers: createProviders(cluster.attestation, { aws }),
  });
  return createAttestHandler({
    cluster: (name) => (name === cluster.name ? cluster : undefined),
    attestation: () => attestation,
    now,
    randomBytes,
    log,
  });
}
