/** Connects the kubeadm function to its bundled configuration and to its environment. */
import { randomBytes } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { kmsClientConfig } from '../../adapters/aws/kms-client.ts';
import { kmsKey } from '../../adapters/aws/kms-signer.ts';
import { dynamoDbAttestations } from '../../adapters/dynamodb/attestations.ts';
import { dynamoDbCaStore } from '../../adapters/dynamodb/ca.ts';
import { dynamoDbLedger, ledgerClientConfig } from '../../adapters/dynamodb/ledger.ts';
import { clusterConfiguration } from '../../adapters/lambda/bundle.ts';
import { writeOperatorLog } from '../../adapters/lambda/operator-call.ts';
import { loadAuthority } from '../../core/ca/authority.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import { readSettings } from './env.ts';
import { createKubeadmHandler } from './handler.ts';
import type { KubeadmHandler, KubeadmSite } from './handler.ts';

function connect(): KubeadmSite {
  const cluster = clusterConfiguration();
  const { certificatesTable, attestationsTable, caKeys } = readSettings(process.env, cluster);
  const { kubeadm } = cluster;
  if (kubeadm === undefined) throw new MisconfigurationError('the bundle has no rules for kubeadm');
  const kms = new KMSClient(kmsClientConfig);
  const client = new DynamoDBClient(ledgerClientConfig);
  const store = dynamoDbCaStore(client, certificatesTable);
  return {
    cluster: { ...cluster, kubeadm },
    ports: {
      ledger: dynamoDbLedger({ client, tableName: certificatesTable, randomBytes }),
      locks: dynamoDbAttestations({ client, tableName: attestationsTable, randomBytes }),
      loadCa: (ca) => loadAuthority(ca, kmsKey(kms, caKeys.get(ca.name) ?? ''), store),
      now: () => Date.now(),
      randomBytes,
    },
  };
}

let connected: KubeadmSite | undefined;

export const handler: KubeadmHandler = createKubeadmHandler({
  connect: () => (connected ??= connect()),
  log: writeOperatorLog,
});
