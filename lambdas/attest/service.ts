/** The attest handler of one cluster over its table and what it may see of AWS. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { dynamoDbAttestations } from '../../adapters/dynamodb/attestations.ts';
import { readAttestCall } from '../../adapters/lambda/attest-call.ts';
import type { AttestCall, AttestCallAnswer } from '../../adapters/lambda/attest-call.ts';
import type { CallerCheck } from '../../adapters/lambda/caller.ts';
import type { HttpAnswer, HttpEvent, LambdaContext } from '../../adapters/lambda/http.ts';
import type { CallLogEntry } from '../../adapters/lambda/log.ts';
import type { AwsPorts } from '../../core/attestation/aws/endpoints.ts';
import { createProviders } from '../../core/attestation/providers.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import type { Instant } from '../../core/ports/instant.ts';
import type { AttestSettings } from './env.ts';
import { createAttestHandler } from './handler.ts';

/** Told apart by the closed schema of the call: whatever else comes is for the HTTP side to refuse. */
export interface AttestFunction {
  (event: HttpEvent, context?: LambdaContext): Promise<HttpAnswer>;
  (event: AttestCall): Promise<AttestCallAnswer>;
}

export interface AttestDependencies {
  readonly caller: CallerCheck;
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
  { caller, dynamodb, aws, now, randomBytes, log }: AttestDependencies,
): AttestFunction {
  if (cluster.attestation === undefined) throw new MisconfigurationError('there are no rules about attestation');
  const attestation = Promise.resolve({
    store: dynamoDbAttestations({ client: dynamodb, tableName: attestationsTable, randomBytes }),
    providers: createProviders(cluster.attestation, { aws }),
  });
  const { http, call } = createAttestHandler({
    caller,
    cluster: (name) => (name === cluster.name ? cluster : undefined),
    attestation: () => attestation,
    now,
    randomBytes,
    log,
  });
  function serve(event: HttpEvent, context?: LambdaContext): Promise<HttpAnswer>;
  function serve(event: AttestCall): Promise<AttestCallAnswer>;
  function serve(event: HttpEvent | AttestCall, context?: LambdaContext): Promise<HttpAnswer | AttestCallAnswer> {
    const called = readAttestCall(event);
    return called === undefined ? http(event as HttpEvent, context) : call(called);
  }
  return serve;
}
