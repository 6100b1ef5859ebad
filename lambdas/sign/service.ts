/** The sign handler of one cluster with its KMS keys, its DynamoDB tables and its attest function. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { KMSClient } from '@aws-sdk/client-kms';
import type { LambdaClient } from '@aws-sdk/client-lambda';
import { invokeAttest } from '../../adapters/lambda/invocation.ts';
import { dynamoDbAttestations } from '../../adapters/dynamodb/attestations.ts';
import { dynamoDbCaStore } from '../../adapters/dynamodb/ca.ts';
import { dynamoDbLedger } from '../../adapters/dynamodb/ledger.ts';
import { dynamoDbCrls } from '../../adapters/dynamodb/revocations.ts';
import { kmsKey } from '../../adapters/aws/kms-signer.ts';
import type { CallPorts } from '../../adapters/lambda/caller.ts';
import type { HttpHandler } from '../../adapters/lambda/http.ts';
import { loadAuthority } from '../../core/ca/authority.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { CaNotInForceError, MisconfigurationError } from '../../core/ports/errors.ts';
import { version } from '../../core/version.ts';
import type { SignSettings } from './env.ts';
import { createSignHandler } from './handler.ts';

export interface SignDependencies extends CallPorts {
  readonly dynamodb: DynamoDBClient;
  readonly kms: KMSClient;
  readonly lambda: () => LambdaClient;
  /** `rulesFingerprint` of the cluster as it was deployed. Absent = `cluster` has all its rules. */
  readonly rulesSha256?: string;
}

export function createSignService(
  cluster: ClusterConfiguration,
  { certificatesTable, attestationsTable, caKeys, attestFunction }: Omit<SignSettings, 'logLevel'>,
  { dynamodb, kms, lambda, rulesSha256, ...ports }: SignDependencies,
): HttpHandler {
  const { randomBytes } = ports;
  const ledger = dynamoDbLedger({ client: dynamodb, tableName: certificatesTable, randomBytes });
  const crls = dynamoDbCrls({ client: dynamodb, tableName: certificatesTable, randomBytes });
  const caStore = dynamoDbCaStore(dynamodb, certificatesTable);

  async function load(name: string): Promise<Authority> {
    const [ca, keyArn] = [cluster.cas.get(name), caKeys.get(name)];
    if (ca === undefined || keyArn === undefined) throw new MisconfigurationError(`there is no key for CA ${name}`);
    const loaded = await loadAuthority(ca, kmsKey(kms, keyArn), caStore);
    if (loaded.ok) return loaded.value;
    const { why, message } = loaded.problem;
    throw why === 'Missing' || why === 'AwaitsImport'
      ? new CaNotInForceError(message)
      : new MisconfigurationError(message);
  }

  const attestationStore = dynamoDbAttestations({ client: dynamodb, tableName: attestationsTable, randomBytes });
  const attestations =
    attestFunction === undefined
      ? undefined
      : {
          ...attestationStore,
          attest: invokeAttest({ client: lambda, functionName: attestFunction, cluster: cluster.name }),
        };

  return createSignHandler({
    version,
    cluster: (name) => (name === cluster.name ? cluster : undefined),
    ledger: () => ledger,
    crls: () => crls,
    locks: () => attestationStore,
    authority: loadOnce(load),
    ...(rulesSha256 === undefined ? {} : { rulesSha256: () => rulesSha256 }),
    ...(attestations === undefined ? {} : { attestations: () => attestations }),
    ...ports,
  });
}

/** Loads each CA once per process; tries again after a failure, since the operator may have corrected its cause. */
function loadOnce(load: (ca: string) => Promise<Authority>): (cluster: string, ca: string) => Promise<Authority> {
  const loading = new Map<string, Promise<Authority>>();
  return (_, ca) => {
    const existing = loading.get(ca);
    if (existing !== undefined) return existing;
    const started = load(ca).catch((error: unknown) => {
      loading.delete(ca);
      throw error;
    });
    loading.set(ca, started);
    return started;
  };
}
