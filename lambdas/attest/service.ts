/** The attest handler of one cluster with its DynamoDB table, STS and EC2. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { dynamoDbAttestations } from '../../adapters/dynamodb/attestations.ts';
import { readAttestCall } from '../../adapters/lambda/attest-call.ts';
import type { AttestCall, AttestCallAnswer } from '../../adapters/lambda/attest-call.ts';
import type { CallPorts } from '../../adapters/lambda/caller.ts';
import type { HttpAnswer, HttpEvent, LambdaContext } from '../../adapters/lambda/http.ts';
import type { AwsPorts } from '../../core/attestation/aws/endpoints.ts';
import { createProviders } from '../../core/attestation/providers.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import type { AttestSettings } from './env.ts';
import { createAttestHandler } from './handler.ts';

/** Answers an AttestCall of the sign function; every other event goes to the HTTP handler. */
export interface AttestFunction {
  (event: HttpEvent, context?: LambdaContext): Promise<HttpAnswer>;
  (event: AttestCall, context?: LambdaContext): Promise<AttestCallAnswer>;
}

export interface AttestDependencies extends CallPorts {
  readonly dynamodb: DynamoDBClient;
  readonly aws: AwsPorts;
}

export function createAttestService(
  cluster: ClusterConfiguration,
  { attestationsTable }: Omit<AttestSettings, 'logLevel'>,
  { dynamodb, aws, ...ports }: AttestDependencies,
): AttestFunction {
  if (cluster.attestation === undefined)
    throw new MisconfigurationError(`cluster ${cluster.name} has no attestation section`);
  const attestation = Promise.resolve({
    store: dynamoDbAttestations({ client: dynamodb, tableName: attestationsTable, randomBytes: ports.randomBytes }),
    providers: createProviders(cluster.attestation, { aws }),
  });
  const { http, call } = createAttestHandler({
    ...ports,
    cluster: (name) => (name === cluster.name ? cluster : undefined),
    attestation: () => attestation,
  });
  function serve(event: HttpEvent, context?: LambdaContext): Promise<HttpAnswer>;
  function serve(event: AttestCall, context?: LambdaContext): Promise<AttestCallAnswer>;
  function serve(event: HttpEvent | AttestCall, context?: LambdaContext): Promise<HttpAnswer | AttestCallAnswer> {
    const called = readAttestCall(event);
    return called === undefined ? http(event as HttpEvent, context) : call(called, context);
  }
  return serve;
}
