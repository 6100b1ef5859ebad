/** Opens the attestation records, or throws CommandFailure with the reason. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { dynamoDbAttestations } from '../../adapters/dynamodb/attestations.ts';
import { dynamoDbAttestationAdmin } from '../../adapters/dynamodb/attestation-admin.ts';
import { openEmbeddedAttestations } from '../../adapters/embedded/attestations.ts';
import { attestationsFileIn } from '../../adapters/embedded/data.ts';
import { callerArn, stackOutputs } from '../aws/account.ts';
import { clientOptions, scanTimeout } from '../aws/client-options.ts';
import { requireEmbeddedFile } from '../runtime/embedded-file.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io, OpenRegister, RegisterPlace } from '../runtime/io.ts';
import { stackNames } from '../../core/configuration/resolve/deployment.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export function openRegister(place: RegisterPlace, io: Io): Promise<OpenRegister> {
  return place.kind === 'embedded' ? openEmbedded(place.folder, io) : openDeployed(place, io);
}

async function openEmbedded(folder: string, io: Io): Promise<OpenRegister> {
  const file = attestationsFileIn(folder);
  requireEmbeddedFile(file, io);
  try {
    const opened = openEmbeddedAttestations(file);
    return { ...opened, by: async () => io.userName() };
  } catch (error) {
    throw new CommandFailure(exitCodes.configuration, errorMessage(error));
  }
}

type Deployed = Extract<RegisterPlace, { kind: 'deployed' }>;

async function openDeployed(place: Deployed, io: Io): Promise<OpenRegister> {
  const where = place.region === undefined ? {} : { region: place.region };
  const client = new DynamoDBClient({ ...clientOptions(scanTimeout), ...where });
  try {
    const tableName = place.table ?? (await tableOf(place.cluster, where));
    const options = { client, tableName, randomBytes: (count: number) => io.randomBytes(count) };
    return {
      register: dynamoDbAttestationAdmin(options),
      store: dynamoDbAttestations(options),
      // Only commands that change something call it, before the change.
      by: () => callerArn(where),
      close: () => client.destroy(),
    };
  } catch (error) {
    client.destroy();
    throw error;
  }
}

/** The table has a generated name, so that a table which a deleted stack left behind does not block the next stack. */
async function tableOf(cluster: string, where: { readonly region?: string }): Promise<string> {
  const hint =
    'npm run cdk -- deploy creates it; --region, --table and COUNTERSIGN_ATTESTATIONS_TABLE select another one';
  const permissionHint =
    'without cloudformation:DescribeStacks, --table or COUNTERSIGN_ATTESTATIONS_TABLE names the table';
  const stack = stackNames(cluster).service;
  const outputs = await stackOutputs(stack, where, permissionHint);
  if (outputs === undefined)
    throw new CommandFailure(exitCodes.notFound, `there is no stack ${stack} in this account and region`, hint);
  const table = outputs['AttestationsTable'] ?? '';
  if (table !== '') return table;
  throw new CommandFailure(
    exitCodes.notFound,
    `stack ${stack} has no output AttestationsTable: an earlier version deployed it`,
    hint,
  );
}
