/** The attest handler of one cluster with its DynamoDB table, STS and EC2. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { dynamoDbAttestations } from '../../adapters/dynamodb/attestations.ts';
import { readAttestCall } from '../../adapters/lambda/attest-call.ts';
import type { AttestCall, AttestCallAnswer } from '../../adapters/lambda/attest-call.ts';
import type { CallPorts } from '../../adapters/lambda/caller.ts';
import type { HttpAnswer, HttpEvent, LambdaContext } from '../../adapters/lambda/http.ts';
import type { AwsPorts } from '../../core/attestation/aws/endpoints.ts';
import type { ScheduledLook } from '../../core/attestation/retirement/schedule.ts';
import { createProviders } from '../../core/attestation/providers.ts';
import type { ProviderPorts } from '../../core/attestation/providers.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { ChallengeKey } from '../../core/ports/challenge-key.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import type { AttestSettings } from './env.ts';
import { createAttestHandler } from './handler.ts';
import { isScheduledLook } from './look.ts';
import type { LookAnswer } from './look.ts';

/** Answers an AttestCall of the sign function and the event of its schedule; every other event goes to the HTTP handler. */
export interface AttestFunction {
  (event: HttpEvent, context?: LambdaContext): Promise<HttpAnswer>;
  (event: AttestCall, context?: LambdaContext): Promise<AttestCallAnswer>;
  (event: ScheduledLook, context?: LambdaContext): Promise<LookAnswer>;
}

/** `compute` and `googleKeySet` are absent in tests of clusters that take no evidence of Google's VMs. */
export interface AttestDependencies extends CallPorts, Pick<ProviderPorts, 'compute' | 'googleKeySet'> {
  readonly dynamodb: DynamoDBClient;
  readonly aws: AwsPorts;
  /** Only called if the settings name a challenge key. */
  readonly challengeKey: (keyArn: string) => ChallengeKey;
}

export function createAttestService(
  cluster: ClusterConfiguration,
  { attestationsTable, challengeKey: keyArn }: Omit<AttestSettings, 'logLevel'>,
  { dynamodb, aws, challengeKey, compute, googleKeySet, ...ports }: AttestDependencies,
): AttestFunction {
  if (cluster.attestation === undefined)
    throw new MisconfigurationError(`cluster ${cluster.name} has no attestation section`);
  const { randomBytes } = ports;
  const store = dynamoDbAttestations({ client: dynamodb, tableName: attestationsTable, randomBytes });
  const findMachine = (machine: string) => store.findMachine(machine);
  const providers = createProviders(cluster.attestation, {
    aws,
    ...(compute === undefined ? {} : { compute }),
    ...(googleKeySet === undefined ? {} : { googleKeySet }),
    ...(keyArn === undefined ? {} : { tpm: { challengeKey: challengeKey(keyArn), randomBytes, findMachine } }),
  });
  const attestation = Promise.resolve({ store, providers });
  const { http, call, scheduledLook } = createAttestHandler({
    ...ports,
    cluster: (name) => (name === cluster.name ? cluster : undefined),
    attestation: () => attestation,
  });
  function serve(event: HttpEvent, context?: LambdaContext): Promise<HttpAnswer>;
  function serve(event: AttestCall, context?: LambdaContext): Promise<AttestCallAnswer>;
  function serve(event: ScheduledLook, context?: LambdaContext): Promise<LookAnswer>;
  function serve(
    event: HttpEvent | AttestCall | ScheduledLook,
    context?: LambdaContext,
  ): Promise<HttpAnswer | AttestCallAnswer | LookAnswer> {
    if (isScheduledLook(event)) return scheduledLook(cluster.name, context);
    const called = readAttestCall(event);
    return called === undefined ? http(event as HttpEvent, context) : call(called, context);
  }
  return serve;
}
