/** Opens what attestation remembers, and tells in an operator's words why it cannot be had. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { AwsRefusal, callerArn, stackOutput } from '../../adapters/aws/query-api.ts';
import type { AwsQueryOptions } from '../../adapters/aws/query-api.ts';
import { dynamoDbAttestations } from '../../adapters/dynamodb/attestations.ts';
import { dynamoDbAttestationAdmin } from '../../adapters/dynamodb/attestation-admin.ts';
import { openEmbeddedAttestations } from '../../adapters/embedded/attestations.ts';
import { attestationsFileIn } from '../../adapters/embedded/data.ts';
import { awsFailure } from '../aws/aws-failure.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io, OpenRegister, RegisterPlace } from '../runtime/io.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export function openRegister(place: RegisterPlace, io: Io): Promise<OpenRegister> {
  return place.kind === 'embedded' ? openEmbedded(place.folder, io) : openDeployed(place, io);
}

async function openEmbedded(folder: string, io: Io): Promise<OpenRegister> {
  const file = attestationsFileIn(folder);
  // Opening would make one, and an operator who mistyped the folder would look at nothing.
  if (!io.fileExists(file))
    throw new CommandFailure(
      exitCodes.notFound,
      `there is no ${file}`,
      'the dev server keeps a cluster NAME in its --data folder under NAME: --data ./data/NAME',
    );
  try {
    const opened = openEmbeddedAttestations(file);
    return { ...opened, by: async () => io.userName() };
  } catch (error) {
    throw new CommandFailure(exitCodes.configuration, errorMessage(error));
  }
}

type Deployed = Extract<RegisterPlace, { kind: 'deployed' }>;

/** A person waits for it, and a scan of a large table takes its time. */
const requestHandler = { connectionTimeout: 5_000, requestTimeout: 30_000, throwOnRequestTimeout: true };

async function openDeployed(place: Deployed, io: Io): Promise<OpenRegister> {
  const { region } = place;
  const client = new DynamoDBClient({ maxAttempts: 3, requestHandler, ...(region === undefined ? {} : { region }) });
  const asking: AwsQueryOptions = { login: client.config, now: () => io.now(), environment: io.environment };
  try {
    const tableName = place.table ?? (await tableOf(place.cluster, asking));
    const options = { client, tableName, randomBytes: (count: number) => io.randomBytes(count) };
    return {
      register: dynamoDbAttestationAdmin(options),
      store: dynamoDbAttestations(options),
      // Asked only where something is changed, and before it is.
      by: () => callerArn(asking).catch((error: unknown) => Promise.reject(awsFailure('STS', error))),
      close: () => client.destroy(),
    };
  } catch (error) {
    client.destroy();
    throw error;
  }
}

/** The table has a generated name: one that is left behind by a stack must not stand in the way of the next. */
async function tableOf(cluster: string, asking: AwsQueryOptions): Promise<string> {
  const hint = 'npx cdk deploy makes it; --region, --table and COUNTERSIGN_ATTESTATIONS_TABLE say where else to look';
  let table: string | undefined;
  try {
    table = await stackOutput(asking, cluster, 'AttestationsTable');
  } catch (error) {
    if (!(error instanceof AwsRefusal)) throw awsFailure('CloudFormation', error);
    if (error.code === 'ValidationError')
      throw new CommandFailure(exitCodes.notFound, `there is no stack ${cluster} in this account and region`, hint);
    const denied = awsFailure('CloudFormation', error);
    throw new CommandFailure(
      denied.code,
      denied.message,
      'without cloudformation:DescribeStacks, --table or COUNTERSIGN_ATTESTATIONS_TABLE names the table',
    );
  }
  if (table !== undefined && table !== '') return table;
  throw new CommandFailure(
    exitCodes.notFound,
    `stack ${cluster} has no output AttestationsTable: an earlier version deployed it`,
    hint,
  );
}
