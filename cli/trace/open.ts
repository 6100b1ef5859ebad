/** Opens the records and logs about the requests of a cluster. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { environmentNames } from '../../adapters/lambda/environment.ts';
import { dynamoDbAttestations } from '../../adapters/dynamodb/attestations.ts';
import { dynamoDbAttestationAdmin } from '../../adapters/dynamodb/attestation-admin.ts';
import { dynamoDbCertificateReads } from '../../adapters/dynamodb/certificate-reads.ts';
import { dynamoDbLedger } from '../../adapters/dynamodb/ledger.ts';
import { dynamoDbRevocations } from '../../adapters/dynamodb/revocations.ts';
import { dynamoDbSignatureReads } from '../../adapters/dynamodb/signatures.ts';
import { openEmbeddedAttestations } from '../../adapters/embedded/attestations.ts';
import { attestationsFileIn, ledgerFileIn, revocationsFileIn } from '../../adapters/embedded/data.ts';
import { openEmbeddedLedger } from '../../adapters/embedded/ledger.ts';
import { openEmbeddedRevocations } from '../../adapters/embedded/revocations.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';
import { awsFailure } from '../aws/aws-failure.ts';
import { deployedOutputs } from '../aws/account.ts';
import { clientOptions, scanTimeout } from '../aws/client-options.ts';
import { requireEmbeddedFile } from '../runtime/embedded-file.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io, OpenTrace, TracePlace } from '../runtime/io.ts';
import { openFunctionLogs } from './function-logs.ts';

export async function openTrace(place: TracePlace, io: Io): Promise<OpenTrace> {
  return place.kind === 'embedded' ? openEmbedded(place.folder, io) : openDeployed(place, io);
}

/** The dev server writes its log to its standard output, so there is nothing to search. */
function openEmbedded(folder: string, io: Io): OpenTrace {
  const files = [ledgerFileIn(folder), attestationsFileIn(folder), revocationsFileIn(folder)] as const;
  requireEmbeddedFile(files[0], io);
  try {
    const { ledger, reads, close: closeLedger } = openEmbeddedLedger(files[0]);
    const attestations = io.fileExists(files[1]) ? openEmbeddedAttestations(files[1]) : undefined;
    const revocations = io.fileExists(files[2]) ? openEmbeddedRevocations(files[2]) : undefined;
    return {
      findRecord: (uid) => ledger.find(uid),
      findSerial: async (serial) => (await reads.findSerial(serial))?.uid,
      listByExpiry: (range) => reads.listByExpiry(range),
      findRevocation: async (caKeyId, serial) => revocations?.revocations.find(caKeyId, serial),
      async *listRevocations(caKeyId, now) {
        if (revocations !== undefined) yield* revocations.revocations.list(caKeyId, now);
      },
      async *listSignatures() {},
      output: async () => undefined,
      findVerdict: async (uid, now) => attestations?.store.findVerdict(uid, now),
      async *listAudit() {
        if (attestations !== undefined) yield* attestations.register.listAudit();
      },
      searchLog: async () => undefined,
      close() {
        closeLedger();
        attestations?.close();
        revocations?.close();
      },
    };
  } catch (error) {
    throw new CommandFailure(exitCodes.configuration, errorMessage(error));
  }
}

type Deployed = Extract<TracePlace, { kind: 'deployed' }>;

function openDeployed({ cluster, region }: Deployed, io: Io): OpenTrace {
  const where = region === undefined ? {} : { region };
  const client = new DynamoDBClient({ ...clientOptions(scanTimeout), ...where });
  const logs = openFunctionLogs(where);
  let asked: Promise<Readonly<Record<string, string>>> | undefined;
  /** Names that CloudFormation generated. Asked for once, and only if the environment does not name both tables. */
  const outputs = () => (asked ??= deployedOutputs(cluster, where));

  async function tableOf(variable: 'certificatesTable' | 'attestationsTable', output: string) {
    const tableName = io.environment[environmentNames[variable]] || (await outputs())[output];
    if (tableName === undefined)
      throw new CommandFailure(exitCodes.notFound, `the stack has no output ${output}: an earlier version deployed it`);
    return { client, tableName, randomBytes: (count: number) => io.randomBytes(count) };
  }
  const certificates = () => tableOf('certificatesTable', 'CertificatesTable');
  const attestations = () => tableOf('attestationsTable', 'AttestationsTable');

  return {
    findRecord: (uid) =>
      read('dynamodb:GetItem on the certificates table', async () => dynamoDbLedger(await certificates()).find(uid)),
    findSerial: (serial) =>
      read('dynamodb:Query on the index serial of the certificates table', async () => {
        const found = await dynamoDbCertificateReads(await certificates()).findSerial(serial);
        return found?.uid;
      }),
    async *listByExpiry(range) {
      try {
        yield* dynamoDbCertificateReads(await certificates()).listByExpiry(range);
      } catch (error) {
        throw readFailure('dynamodb:Query on the index expiry of the certificates table', error);
      }
    },
    findRevocation: (caKeyId, serial) =>
      read('dynamodb:GetItem on the certificates table', async () =>
        dynamoDbRevocations(await certificates()).find(caKeyId, serial),
      ),
    async *listRevocations(caKeyId, now) {
      try {
        yield* dynamoDbRevocations(await certificates()).list(caKeyId, now);
      } catch (error) {
        throw readFailure('dynamodb:Query on the index expiry of the certificates table', error);
      }
    },
    async *listSignatures(range) {
      try {
        yield* dynamoDbSignatureReads(await certificates()).list(range);
      } catch (error) {
        throw readFailure('dynamodb:Query on the index expiry of the certificates table', error);
      }
    },
    output: async (name) => (await outputs())[name],
    findVerdict: (uid, now) =>
      read('dynamodb:GetItem on the attestations table', async () =>
        dynamoDbAttestations(await attestations()).findVerdict(uid, now),
      ),
    async *listAudit() {
      const items = await read('dynamodb:Scan on the attestations table', async () =>
        Array.fromAsync(dynamoDbAttestationAdmin(await attestations()).listAudit()),
      );
      yield* items;
    },
    async searchLog(search) {
      const group = (await outputs())[search.of === 'sign' ? 'SignLogGroup' : 'AttestLogGroup'];
      return group === undefined ? undefined : logs.search(group, search);
    },
    close() {
      client.destroy();
      logs.close();
    },
  };
}

async function read<T>(permission: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw readFailure(permission, error);
  }
}

function readFailure(permission: string, error: unknown): CommandFailure {
  // An unreadable record or a bug: trying again does not help.
  if (error instanceof TypeError || error instanceof RangeError)
    return new CommandFailure(exitCodes.configuration, error.message);
  return awsFailure('DynamoDB', error, permission);
}
